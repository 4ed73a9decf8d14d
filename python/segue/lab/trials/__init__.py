"""`segue lab compare`: schemes and events, each combination several times with real hosts, as one table and one figure.

`plan` says what is run, `runs` runs it, `results` says what it came to; `outputs` writes files. The figure is
`segue.figures.trials`'s, the table on the terminal `segue.cli.trials`'s.
"""
