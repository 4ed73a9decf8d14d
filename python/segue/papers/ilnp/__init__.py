"""ILNPv6: Phoomikiattisak and Bhatti, "End-To-End Mobility for the Internet Using ILNP", 2019.

`experiment` says what is run and what is kept of each run, `figures` draws figures 9 to 19, `claims` judges I1 to I7,
`extras` runs and judges what the paper argues without measuring it (I8, I10 to I14), `baseline` runs SCTP over
Mobile IPv6 in SIGMA's scenario (S12), `reproduce` ties them together.
"""
