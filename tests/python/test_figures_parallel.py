from __future__ import annotations

import pytest
from matplotlib.figure import Figure

from segue.figures.parallel import render_all
from segue.figures.style import new_figure, render


def figures(count: int) -> list[Figure]:
    drawn = []
    for number in range(count):
        figure, (axes,) = new_figure(f"Figure {number}", "A line that rises")
        axes.plot([0, 1 + number], [0, 1])
        drawn.append(figure)
    return drawn


@pytest.mark.parametrize("count", [0, 1, 9])
def test_they_are_what_they_are_one_by_one_and_in_their_order(count: int) -> None:
    told: list[int] = []
    assert render_all(figures(count), threads=2, progress=told.append) == [render(figure) for figure in figures(count)]
    assert told == sorted(told)
    assert told[-1] == count
