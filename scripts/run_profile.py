#!/usr/bin/env python3
"""Run the simulator and the analysis of captures, and write down for the compiler what code they spend their time in.

With that profile the compiler lays out what runs together side by side, and what never runs elsewhere: `make wheel`
and `make bench` build with it. Two instrumented programs are built and run: the simulator by itself (`segue-bench`),
and the Python extension. They run the scenarios of scenarios/ but for those of scenarios/bench/, which are measured
with the result.

Prints the path of the profile. Standard library only. Wants `llvm-profdata` of the compiler's own version: exit
status 2 without it.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# One scenario of each paper, and those that come with the package: all schemes, access networks and TCPs.
TRAINING = sorted(
    path.relative_to(ROOT)
    for folder in ("scenarios", "scenarios/papers", "scenarios/handoff")
    for path in (ROOT / folder).glob("*.toml")
)
# An analysis takes a tenth of the time that a simulation with captures does.
ANALYSES = 10


def profdata() -> Path | None:
    """`llvm-profdata` of the toolchain in use: an older one does not read what its programs write.

    Where it is not there, rustup is asked for it.
    """
    name = "llvm-profdata.exe" if os.name == "nt" else "llvm-profdata"
    root = subprocess.run(["rustc", "--print", "sysroot"], check=True, capture_output=True, text=True).stdout.strip()

    def find() -> Path | None:
        return next(iter(Path(root).glob(f"lib/rustlib/*/bin/{name}")), None)

    found = find()
    if found is None and shutil.which("rustup"):
        command = ["rustup", "component", "add", "llvm-tools", "--toolchain", Path(root).name]
        subprocess.run(command, check=False, stdout=sys.stderr)
        found = find()
    return found


def build(target: Path, raw: Path) -> tuple[Path, Path]:
    """The instrumented simulator, and a folder with the package and its instrumented extension."""
    environment = {**os.environ, "RUSTFLAGS": f"-Cprofile-generate={raw}", "CARGO_INCREMENTAL": "0"}
    command = ["cargo", "build", "--release", "--locked", "--target-dir", str(target)]
    # One after the other, as they are built to be used: in a profile names depend on the features of every package.
    for package in (["segue-bench"], ["segue-python", "--features", "extension-module"]):
        subprocess.run([*command, "--package", *package], check=True, cwd=ROOT, env=environment)
    site = target / "site"
    shutil.rmtree(site, ignore_errors=True)
    shutil.copytree(ROOT / "python" / "segue", site / "segue", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    library = next(path for path in (target / "release").glob("*_native.*") if path.suffix in (".so", ".dylib", ".dll"))
    shutil.copy(library, site / "segue" / ("_native.pyd" if library.suffix == ".dll" else "_native.abi3.so"))
    return target / "release" / "segue-bench", site


def train(bench: Path, site: Path, folder: Path) -> None:
    """Runs everything once: simulations alone, with captures and tables, and the analysis of the captures."""

    def run(*command: str | Path) -> None:
        environment = {**os.environ, "PYTHONPATH": str(site)}
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"profile: {shlex.join(map(str, command))}: status {done.returncode}\n{done.stderr}")

    segue = (sys.executable, "-c", "from segue.cli import main; main()")
    for scenario in TRAINING:
        run(bench, scenario)
        captures = folder / scenario.stem
        run(*segue, "run", scenario, "--json", "--pcap", captures, "--trace", captures)
        for capture in sorted(captures.glob("*.pcapng")):
            for _ in range(ANALYSES):
                run(*segue, "analyze", capture, "--json")


def main() -> int:
    """Writes the profile and prints where it is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "folder", type=Path, nargs="?", default=ROOT / "target" / "profile", help="where to build and run"
    )
    folder: Path = parser.parse_args().folder.absolute()
    merge = profdata()
    if merge is None:
        print(
            "profile: no llvm-profdata of this Rust compiler; `rustup component add llvm-tools` brings it",
            file=sys.stderr,
        )
        return 2
    raw, runs, profile = folder / "raw", folder / "runs", folder / "segue.profdata"
    for old in (raw, runs):
        shutil.rmtree(old, ignore_errors=True)
    bench, site = build(folder / "build", raw)
    # what the interpreter and the build scripts wrote on the way is no run
    shutil.rmtree(raw, ignore_errors=True)
    train(bench, site, runs)
    subprocess.run([merge, "merge", "--output", profile, raw], check=True)
    shutil.rmtree(runs)
    print(profile)
    return 0


if __name__ == "__main__":
    sys.exit(main())
