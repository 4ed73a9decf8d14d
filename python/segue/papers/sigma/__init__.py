"""SIGMA: Fu, Atiquzzaman, Ivancic, "Effect of Layer 2 Connection Setup on SIGMA performance", 2005.

`experiment` says what is run, `figures` draws figures 4 to 15, `trace` and `claims` judge S1 to S9, `location` judges
S10, `zigzag` runs and judges S11, `reproduce` ties them together.
"""
