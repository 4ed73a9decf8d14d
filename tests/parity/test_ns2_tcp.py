"""TCP under random loss: Segue beside ns-2's TCP/Linux, which runs the Linux kernel's own congestion control (2.6.22).

What is compared is the congestion control. Segue's profile is the nearest that it has, `linux-3.9`, in which
acknowledgements are counted rather than bytes and which has neither RACK nor tail loss probes. What that kernel has
beyond ns-2's agent (PRR, early retransmit, F-RTO, undo) matters at 5 % loss at most, where timeouts decide: with all of
it off and a timer like ns-2's, no ratio moves by more than 0.06.

ns-2 has ways of its own: it takes a segment for lost only when the fourth above it has been SACKed, forgets its
scoreboard at the end of a recovery, and cuts ssthresh again at each timeout and at each loss that it finds after one.
Its Reno, and nothing else, counts bytes unless it is told not to (`lossy_tcp.tcl`). CUBIC is not compared, since its
version there is an old one.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import segue

SCRIPT = Path(__file__).parents[2] / "benches" / "peers" / "ns2" / "lossy_tcp.tcl"
DURATION_S = 100
SEEDS = range(1, 9)
LOSSES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05)
ALGORITHMS = ("reno", "hybla", "veno")
# The standard error of a ratio is 2 to 4 %.
TOLERANCE = 0.20

SCENARIO = """
name = "lossy"
duration = "{duration} s"

[tcp]
profile = "linux-3.9"
congestion_control = "{algorithm}"

[[host]]
name = "a"

[[host]]
name = "b"

[[link]]
between = ["a", "b"]
rate = "10 Mbit/s"
delay = "20 ms"
queue = "50 packets"
loss = {{ model = "bernoulli", probability = {loss} }}

[[application]]
kind = "bulk"
transport = "tcp"
from = "a"
to = "b"
"""


def ns2_run(algorithm: str, loss: float, seed: int) -> float:
    """Goodput of one run of ns-2, bit/s."""
    command = ["ns", str(SCRIPT), algorithm, str(loss), str(seed), str(DURATION_S)]
    output = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout
    # it also repeats the commands that it was given
    lines = [line.split() for line in output.splitlines()]
    return float(next(line[1] for line in lines if line[:1] == ["goodput_bps"]))


def ns2_goodput(algorithm: str, loss: float) -> float:
    """Mean goodput of ns-2 over the seeds, bit/s."""
    with ThreadPoolExecutor(2) as pool:
        return statistics.fmean(pool.map(lambda seed: ns2_run(algorithm, loss, seed), SEEDS))


def segue_goodput(algorithm: str, loss: float) -> float:
    """Mean goodput of Segue over the seeds, bit/s."""
    text = SCENARIO.format(duration=DURATION_S, algorithm=algorithm, loss=loss)
    runs = (segue.run(text, seed=seed, trace=False) for seed in SEEDS)
    return statistics.fmean(run.metrics.throughput_bps for run in runs)


@pytest.mark.skipif(shutil.which("ns") is None, reason="ns-2 is not installed")
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_goodput_under_loss_agrees_with_ns2(algorithm: str, loss: float) -> None:
    """Each with its own random losses, the two agree within 20 %."""
    ratio = segue_goodput(algorithm, loss) / ns2_goodput(algorithm, loss)
    assert abs(ratio - 1) <= TOLERANCE, f"{algorithm}, loss {loss}: Segue gets {ratio:.2f} of what ns-2 gets"
