"""Large transfers over links that lose, duplicate and reorder packets, each way, against both implementations."""

from __future__ import annotations

import pytest
from judge import Judge
from peers import Settings

# By implementation: the emulated machine is slow.
MESSAGES = {"usrsctp": 71_500, "linux": 4_000}
SIZE = 1400
SETTINGS = Settings(rto_initial=300, sack=20, association_retrans=20, path_retrans=10, heartbeat=30_000)
# As much as the slowest sender takes when it shares the machine with the other tests.
PATIENCE = 120.0
IMPAIRMENTS = ("delay {link} 500", "loss {link} 0.01", "duplicate {link} 0.005", "reorder {link} 0.005")


def impair(judge: Judge) -> None:
    """Both links lose 1 % of all packets, deliver 0.5 % twice, and hold 0.5 % back."""
    for link in range(2):
        for command in IMPAIRMENTS:
            judge.network.command(command.format(link=link))


@pytest.mark.parametrize("ours_sends", [True, False], ids=["ours-sends", "other-sends"])
def test_every_byte_arrives_over_links_that_lose_packets(judge: Judge, *, ours_sends: bool) -> None:
    messages = MESSAGES[judge.name]
    size = messages * SIZE
    # what is sent begins after the impairments, so that set-up is not part of it
    data = (f"--bytes={size} B", f"--size={SIZE} B") if ours_sends else ("--verify",)
    own, other = judge.connect(SETTINGS, *data, ours_connects=ours_sends)
    impair(judge)
    if not ours_sends:
        other.tell(f"send {messages} {SIZE} 0")
        other.wait_for("sent", timeout=PATIENCE)
        other.tell("shutdown")
    own.wait_for("closed", timeout=PATIENCE)
    summary = own.wait_for("summary", timeout=PATIENCE).fields
    end = other.wait_for("end", timeout=PATIENCE).fields
    received = (end["bytes"], end["wrong"]) if ours_sends else (summary["received_bytes"], "0")
    assert received == (str(size), "0")
    # the losses were there, and what repaired them is in the capture
    judge.network.relay.wait_for("delay", timeout=1)
    judge.packets()
    lost = sum(int(value.split("/")[1]) for value in judge.network.relay.find("end")[-1].fields.values())
    assert lost > messages * 0.005
