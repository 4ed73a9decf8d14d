"""Many figures at a time: drawing one takes most of a second, and an interpreter draws one after the other.

`python -m segue.figures.parallel` draws the figures that it reads, and is the other half of `render_all`.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from matplotlib.figure import Figure

from segue.figures.style import Rendered, render
from segue.running import available_threads

MOST_PROCESSES = 8
WORTH = 3
"""Fewer figures than this for each process are drawn sooner than it has started."""


def render_all(
    figures: Sequence[Figure], *, threads: int | None = None, progress: Callable[[int], object] | None = None
) -> list[Rendered]:
    """PNG and SVG of each, in their order, as `segue.figures.style.render` has them.

    Args:
        figures: To be drawn, each once.
        threads: Processes that draw, this one among them; as many as this process may use, if left out.
        progress: Told how many have been drawn, as far as this process knows.
    """
    tell = progress or (lambda _: None)
    count = max(1, min(threads or available_threads(), MOST_PROCESSES, len(figures) // WORTH))
    shares = [figures[own::count] for own in range(count)]
    with ThreadPoolExecutor(count) as pool:
        others = [pool.submit(_elsewhere, share) for share in shares[1:]]
        own: list[Rendered] = []
        for figure in shares[0]:
            tell(min(len(own) * count, len(figures)))
            own.append(render(figure))
        drawn = [own, *map(Future.result, others)]
    tell(len(figures))
    return [drawn[index % count][index // count] for index in range(len(figures))]


def _elsewhere(figures: Sequence[Figure]) -> list[Rendered]:
    command = [sys.executable, "-P", "-m", "segue.figures.parallel"]
    done = subprocess.run(command, input=pickle.dumps(list(figures)), stdout=subprocess.PIPE, check=True)
    drawn: list[Rendered] = pickle.loads(done.stdout)
    return drawn


if __name__ == "__main__":
    sys.stdout.buffer.write(pickle.dumps([render(figure) for figure in pickle.load(sys.stdin.buffer)]))
