"""The Debian package of segue-agent: what is in it, what lintian says, and that it installs into a tree of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import agents
import build
import pytest

TREE = build.ROOT / "packaging"
REASON = (
    None if shutil.which("dpkg-deb") else "dpkg-deb is missing, so there is no Debian package (Debian package dpkg)"
)
pytestmark = pytest.mark.skipif(REASON is not None, reason=REASON or "")
EXAMPLES = {"ilnp", "mobile-node", "home-agent", "correspondent"}
CONTENTS = {
    "etc/segue/agent.toml": "-rw-------",
    "lib/systemd/system/segue-agent.service": "-rw-r--r--",
    "usr/lib/sysusers.d/segue-agent.conf": "-rw-r--r--",
    "usr/sbin/segue-agent": "-rwxr-xr-x",
    "usr/share/man/man8/segue-agent.8.gz": "-rw-r--r--",
    "usr/share/doc/segue-agent/copyright": "-rw-r--r--",
} | {f"usr/share/doc/segue-agent/examples/{name}.toml": "-rw-r--r--" for name in EXAMPLES}


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made from the program that the other tests run."""
    return agents.debian_package(tmp_path_factory.mktemp("package"))


def run(*command: str | Path, **more: str) -> subprocess.CompletedProcess[str]:
    """What a command says, whatever its status."""
    return subprocess.run(command, check=False, capture_output=True, text=True, env=os.environ | more)


def unpacked(package: Path, folder: Path) -> Path:
    """Its files, as they are installed."""
    subprocess.run(["dpkg-deb", "--extract", package, folder], check=True)
    return folder


def test_the_package_has_what_it_is_to_have_and_belongs_to_root(package: Path) -> None:
    lines = [line.split() for line in run("dpkg-deb", "--contents", package).stdout.splitlines()]
    there = {line[5].removeprefix("./"): (line[0], line[1]) for line in lines}
    for path, mode in CONTENTS.items():
        assert there.get(path) == (mode, "root/root"), (path, there.get(path))
    conffiles = run("dpkg-deb", "--info", package, "conffiles").stdout.split()
    assert conffiles == ["/etc/segue/agent.toml"]


def test_the_same_program_makes_the_same_package(package: Path, tmp_path: Path) -> None:
    assert agents.debian_package(tmp_path).read_bytes() == package.read_bytes()


@pytest.mark.skipif(shutil.which("lintian") is None, reason="lintian is missing (Debian package lintian)")
def test_lintian_has_nothing_to_say(package: Path) -> None:
    # nothing is closed by the first upload of something that nobody uploads
    said = run("lintian", "--allow-root", "--suppress-tags", "initial-upload-closes-no-bugs", package)
    assert (said.returncode, said.stdout) == (0, ""), said.stdout + said.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="needs to be root to install")
def test_it_installs_makes_its_user_and_goes(package: Path, tmp_path: Path) -> None:
    root = tmp_path / "root"
    for folder in ("var/lib/dpkg/info", "var/lib/dpkg/updates", "etc"):
        (root / folder).mkdir(parents=True)
    (root / "var/lib/dpkg/status").touch()
    command = ["dpkg", f"--root={root}", "--force-script-chrootless", "--force-depends", "--log=/dev/null"]
    done = run(*command, "--install", package)
    assert done.returncode == 0, done.stderr
    assert "segue-agent:" in (root / "etc/passwd").read_text()
    assert run(
        "dpkg-query", f"--admindir={root}/var/lib/dpkg", "-W", "-f=${db:Status-Status}", "segue-agent"
    ).stdout == ("installed")
    assert not list(root.rglob("*.wants")), "started by itself"
    # what somebody has written into the file stays when the package goes, until it is purged
    file = root / "etc/segue/agent.toml"
    file.write_text("[agent]\n")
    assert run(*command, "--remove", "segue-agent").returncode == 0
    assert file.read_text() == "[agent]\n"
    assert not (root / "usr/sbin/segue-agent").exists()
    assert run(*command, "--purge", "segue-agent").returncode == 0
    assert not file.exists()


def test_the_installed_program_takes_the_examples(package: Path, tmp_path: Path) -> None:
    root = unpacked(package, tmp_path / "root")
    program = root / "usr/sbin/segue-agent"
    for name in EXAMPLES:
        file = tmp_path / f"{name}.toml"
        shutil.copy(root / f"usr/share/doc/segue-agent/examples/{name}.toml", file)
        file.chmod(0o600)
        done = run(program, "check", file)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
    # the file of the service has nothing in it, and one line says so
    done = run(program, "check", root / "etc/segue/agent.toml")
    assert done.returncode == 2
    assert "missing field `agent`" in done.stderr


@pytest.mark.skipif(shutil.which("man") is None, reason="man is missing (Debian package man-db)")
def test_the_manual_page_reads_well(package: Path, tmp_path: Path) -> None:
    page = unpacked(package, tmp_path / "root") / "usr/share/man/man8/segue-agent.8.gz"
    shown = run("man", "--warnings", "-E", "UTF-8", "-l", page, LC_ALL="C.UTF-8", MANROFFSEQ="", MANWIDTH="100")
    assert (shown.returncode, shown.stderr) == (0, "")
    for words in ("SEGUE-AGENT(8)", "segue-agent status", "hold_down", "/etc/segue/agent.toml", "EXIT STATUS"):
        assert words in shown.stdout, words


@pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd-analyze is missing (Debian package systemd)"
)
def test_the_installed_unit_starts_the_installed_program(package: Path, tmp_path: Path) -> None:
    root = unpacked(package, tmp_path / "root")
    unit = (root / "lib/systemd/system/segue-agent.service").read_text()
    (program,) = [line for line in unit.splitlines() if line.startswith("ExecStart=")]
    assert program == "ExecStart=/usr/sbin/segue-agent run %d/agent.toml"
    assert "/usr/local" not in unit
