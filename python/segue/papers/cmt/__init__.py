"""mSCTP-CMT: Budzisz and others, "On Concurrent Multipath Transfer in SCTP-based handover scenarios", 2009.

`model` has the paper's equations, `experiment` says what is run and what is kept of each run, `buffers` how much
receive buffer is enough, `figures` draws figures 5 to 7, `claims` judges C1 to C5, `ablation` switches the mechanisms
off one at a time (C6), `remedies` tries what has been proposed since, `reproduce` ties them together.
"""
