"""mSCTP-CMT: Budzisz and others, "On Concurrent Multipath Transfer in SCTP-based handover scenarios", 2009.

`model` has the paper's equations.
"""
