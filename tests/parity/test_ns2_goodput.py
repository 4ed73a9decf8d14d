"""SCTP under random loss: Segue beside ns-2's SCTP, which nobody here wrote."""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

PEERS = Path(__file__).parents[2] / "benches" / "peers" / "ns2"
DURATION_S = 300
SEEDS = range(1, 6)

# ns-2 counts windows in units of the MTU less its headers, as RFC 9260 does with PMDCS; RFC 4960 counts whole MTUs,
# which at 5 % loss, where windows are a few packets, makes room for one packet more:
# with its constants Segue gets 1.37 of what ns-2 gets there.
SCENARIO = """
name = "lossy"
duration = "{duration} s"

[sctp]
profile = "rfc9260"
receive_buffer = "1 MiB"
send_buffer = "2 MiB"

[[host]]
name = "a"

[[host]]
name = "b"

[[link]]
between = ["a", "b"]
rate = "10 Mbit/s"
delay = "20 ms"
queue = "1000 packets"
loss = {{ model = "bernoulli", probability = {loss} }}

[[application]]
kind = "bulk"
from = "a"
to = "b"
"""


def ns2_goodput(loss: float) -> float:
    """Median goodput of ns-2 over the seeds, bit/s."""
    script = PEERS / "lossy_sctp.tcl"
    return statistics.median(
        float(
            subprocess.run(
                ["ns", str(script), str(loss), str(seed), str(DURATION_S)],
                check=True,
                capture_output=True,
                text=True,
                timeout=120,
            ).stdout
        )
        for seed in SEEDS
    )


def segue_goodput(loss: float, folder: Path) -> float:
    """Median goodput of Segue over the seeds, bit/s."""
    file = folder / "lossy.toml"
    file.write_text(SCENARIO.format(duration=DURATION_S, loss=loss))
    segue = Path(sys.executable).with_name("segue")
    values = []
    for seed in SEEDS:
        command = [str(segue), "run", str(file), "--seed", str(seed), "--json"]
        output = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
        values.append(float(json.loads(output.stdout)["throughput_bps"]))
    return statistics.median(values)


@pytest.mark.skipif(shutil.which("ns") is None, reason="ns-2 is not installed")
@pytest.mark.parametrize("loss", [0.001, 0.005, 0.01, 0.02, 0.05])
def test_goodput_under_loss_agrees_with_ns2(loss: float, tmp_path: Path) -> None:
    """Two implementations of one specification, each with its own random losses, agree within 15 %."""
    ratio = segue_goodput(loss, tmp_path) / ns2_goodput(loss)
    assert 0.85 <= ratio <= 1.15, f"loss {loss}: Segue gets {ratio:.2f} of what ns-2 gets"
