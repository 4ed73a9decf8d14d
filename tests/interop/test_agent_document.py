"""docs/agent.md: its walk-through, each line as it stands there, and the file that it shows."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import agents
import build
import pytest

REASON = agents.missing()
pytestmark = [pytest.mark.alone, pytest.mark.skipif(REASON is not None, reason=REASON or "")]
TEXT = (build.ROOT / "docs" / "agent.md").read_text()
WALK = "\n".join(re.findall(r"^```sh\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL))
FILES = re.findall(r"^```toml\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
NAMES = ("mobile", "router", "peer")


def test_the_walk_through_does_what_it_says(tmp_path: Path) -> None:
    """A transfer goes on through both moves, and namespaces are gone. The names are made this process's own."""
    walk = WALK
    for name in NAMES:
        own = f"sg-lab-{os.getpid()}-0{name}"
        walk = re.sub(rf"((?:netns (?:add|exec|delete)|-n|netns) ){name}\b(?!\.)", rf"\g<1>{own}", walk)
    script = "set -e -m\n" + re.sub(r"\bsegue agent\b", str(agents.program()), walk)
    try:
        done = subprocess.run(
            ["bash", "-c", script], cwd=tmp_path, check=False, capture_output=True, text=True, timeout=90
        )
    finally:
        for name in NAMES:
            subprocess.run(["ip", "netns", "del", f"sg-lab-{os.getpid()}-0{name}"], check=False, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert "receiver" in done.stdout, done.stdout
    assert "eth1 is used from now on" in done.stdout
    # moved by hand, and away from the link that went down
    last = done.stdout.rpartition("\ninterface ")[2]
    assert re.search(r"^eth0 +in use", last, re.MULTILINE), last
    assert last.count(" ms") >= 2, last


@pytest.mark.parametrize("text", FILES)
def test_the_file_of_the_document_is_right(tmp_path: Path, text: str) -> None:
    """`check` has nothing to say of it."""
    file = tmp_path / "agent.toml"
    file.write_text(text)
    done = subprocess.run([agents.program(), "check", file], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
