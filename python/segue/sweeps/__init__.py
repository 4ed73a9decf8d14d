"""Sweeps: a scenario at every combination of some keys' values, with several seeds.

`axes` says at which values, `columns` what is measured of a run, `stopping` how many seeds there are, `plan` which runs
that makes; `execution` makes them on this machine, `cluster` on a Ray cluster (its
`worker` with `files` that the scenario names, rows as they come in `parts`); `result` is what came of it, and
`running` has `sweep`, which puts all of it together. The figure is `segue.figures.sweep`'s, the command line
`segue.cli.sweep`'s.
"""
