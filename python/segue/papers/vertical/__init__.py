"""Vertical handover: Cottingham and Vidales, "Is Latency the Real Enemy in Next Generation Networks?", 2005.

`model` has the paper's equations, `experiment` says what is run and what is kept of each run, `figures` draws
figures 5 to 9, `claims` judges V1 to V9, `reproduce` ties them together.
"""
