"""Figures from frames. Each function takes frames as `segue.Run` has them and gives a `Figure` back.

`style` holds palette, sizes and rendering; the others a kind of figure each: `draw_...` draws it on axes, for
`segue.plot` too, and the function beside it makes the figure, with its title. None of them knows a paper: titles,
windows of time and names of series are arguments.
"""
