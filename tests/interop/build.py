"""The programs that tests run, compiled when first needed: those of this workspace, and the C ones of `peers/`."""

from __future__ import annotations

import fcntl
import functools
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = Path(__file__).resolve().parent / "peers"
BUILT = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
TARGET = BUILT / "interop"
# The build that tests share (make sets no other).
PROFILE = os.environ.get("SEGUE_INTEROP_PROFILE", "checked")
COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
FLAGS = ["-std=gnu17", "-O2", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]

# Program, its sources, and what it is linked with.
PROGRAMS: dict[str, tuple[list[str], list[str]]] = {
    "relay": (["relay.c"], []),
    "usrsctp_peer": (["peer.c", "stack_usrsctp.c"], ["-lusrsctp", "-lpthread"]),
    # Runs in a guest that has no libraries.
    "linux_peer": (["peer.c", "stack_linux.c"], ["-static", "-lpthread"]),
    "linux_init": (["linux_init.c"], ["-static"]),
    "tcp_peer": (["tcp_peer.c"], []),
    "flood": (["flood.c"], []),
    # Loaded into a program.
    "sleep.so": (["sleep.c"], ["-shared", "-fPIC", "-ldl"]),
}


def missing_compiler() -> str | None:
    """Why nothing can be compiled here; None if it can."""
    return None if COMPILER else "no C compiler, so no peers to test against (Debian package gcc)"


def missing_header(header: str, package: str) -> str | None:
    """Why a program that includes `header` cannot be compiled; None if it can."""
    if COMPILER is None:
        return missing_compiler()
    test = subprocess.run(
        [COMPILER, "-E", "-xc", "-"], check=False, input=f"#include <{header}>", capture_output=True, text=True
    )
    return None if test.returncode == 0 else f"{header} is missing (Debian package {package})"


@functools.cache
def program(name: str) -> Path:
    """The path of a program, compiled unless it is newer than all sources."""
    sources, libraries = PROGRAMS[name]
    assert COMPILER is not None
    TARGET.mkdir(parents=True, exist_ok=True)
    path = TARGET / name
    with (TARGET / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        newest = max(source.stat().st_mtime for source in SOURCES.iterdir())
        if not path.exists() or path.stat().st_mtime < newest:
            files = [str(SOURCES / source) for source in sources]
            partial = path.with_suffix(".partial")
            subprocess.run([COMPILER, *FLAGS, "-o", str(partial), *files, *libraries], check=True)
            partial.rename(path)
    return path


@functools.cache
def tool(name: str) -> Path:
    """A program of this workspace: the one that a variable names ($SEGUE_SCTP for `segue-sctp`), else cargo's.

    Built as for the Rust tests, all at once. Of one package alone it would have other features, with which all below it
    would be compiled again.
    """
    named = os.environ.get(name.upper().replace("-", "_"))
    if named:
        return Path(named)
    path = BUILT / PROFILE / name
    if not path.exists():
        print(f"building {name}, which takes minutes the first time", file=sys.stderr, flush=True)
    command = ["cargo", "test", "--workspace", "--profile", PROFILE, "--locked", "--no-run"]
    # as the Makefile has it, or the extension would be built anew
    made = ROOT / ".venv"
    found = {"PYO3_PYTHON": str(made / "bin/python"), "VIRTUAL_ENV": str(made)} if made.exists() else {}
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, env=found | os.environ)
    return path
