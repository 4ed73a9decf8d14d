"""Figures from frames. Each function takes frames as `segue.Run` has them and gives a `Figure` back.

`style` holds palette, sizes and rendering; `sequence`, `window`, `sweep`, `tsn`, `ladder` and `position` a kind of
figure each. None of them knows a paper: titles, windows of time and names of series are arguments.
"""
