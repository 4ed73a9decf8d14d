"""docs/agent.md: its walk-through, each line as it stands there, and the file that it shows."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import agents
import build
import name_server
import pytest

REASON = agents.missing()
pytestmark = [pytest.mark.waits, pytest.mark.skipif(REASON is not None, reason=REASON or "")]
TEXT = (build.ROOT / "docs" / "agent.md").read_text()
WALKS = [
    "\n".join(re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL))
    for text in re.split(r"^## (?:Names|Mobile IPv6)\n", TEXT, flags=re.MULTILINE)
]
FILES = re.findall(r"^```toml\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
NAMES = ("mobile", "router", "peer", "home")


def said(walk: str, folder: Path) -> str:
    """What the commands of a walk-through print. The names are made this process's own, and namespaces are gone."""
    for name in NAMES:
        own = f"sg-lab-{os.getpid()}-0{name}"
        walk = re.sub(rf"((?:netns (?:add|exec|delete)|-n|netns) ){name}\b(?!\.)", rf"\g<1>{own}", walk)
    script = "set -e -m\n" + re.sub(r"\bsegue agent\b", str(agents.program()), walk)
    try:
        done = subprocess.run(
            ["bash", "-c", script], cwd=folder, check=False, capture_output=True, text=True, timeout=90
        )
    finally:
        for name in NAMES:
            subprocess.run(["ip", "netns", "del", f"sg-lab-{os.getpid()}-0{name}"], check=False, capture_output=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("walk", [WALKS[0], WALKS[2]], ids=["ilnp", "mobile-ipv6"])
def test_the_walk_through_does_what_it_says(tmp_path: Path, walk: str) -> None:
    """A transfer goes on through both moves."""
    out = said(walk, tmp_path)
    assert "receiver" in out, out
    assert "eth1 is used from now on" in out
    # moved by hand, and away from the link that went down
    last = out.rpartition("\ninterface ")[2]
    assert re.search(r"^eth0 +in use", last, re.MULTILINE), last
    assert last.count(" ms") >= 2, last
    if walk is WALKS[2]:
        assert "local 2001:db8:f::1:7" in out, out
        assert re.search(r"^2001:db8:3::7 +direct$", last, re.MULTILINE), last


@pytest.mark.skipif(name_server.missing() is not None, reason=name_server.missing() or "")
def test_the_walk_through_names_does_what_it_says(tmp_path: Path) -> None:
    """The peer is found by its name, before and after both have lost their networks."""
    tmp_path.chmod(0o755)
    out = said(WALKS[1], tmp_path)
    before, _, after = out.partition("fd53:6567:7565:1:2aa::2")
    assert before.startswith("10 2001:db8:3:0\n"), out
    assert "receiver" in after, out
    last = out.rpartition("\ninterface ")[2]
    assert re.search(r"^eth1 +in use", last, re.MULTILINE), last
    assert re.search(r"^peer.example +fd53:6567:7565:1:2aa::2 +dns +2001:db8:4:0", last, re.MULTILINE), last
    assert re.search(r"^mobile.example +2001:db8:2:0 +published, within ", last, re.MULTILINE), last
    assert re.search(r"^names: .*look_ups [2-9]", last, re.MULTILINE), last
    assert last.endswith("10 2001:db8:4:0\n"), last


@pytest.mark.parametrize("text", FILES)
def test_the_file_of_the_document_is_right(tmp_path: Path, text: str) -> None:
    """`check` has nothing to say of it."""
    file = tmp_path / "agent.toml"
    file.write_text(text)
    file.chmod(0o600)
    done = subprocess.run([agents.program(), "check", file], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
