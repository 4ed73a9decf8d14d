"""Make the Debian package of segue-agent from a program that is built: `debian_package.py PROGRAM --out DIR`.

What is in it is in packaging/; the manual page is what the program prints of itself. The package is the same for the
same program and the same $SOURCE_DATE_EPOCH (that of the last commit, if it is not set).
"""

from __future__ import annotations

import argparse
import gzip
import os
import re
import shutil
import subprocess
import tempfile
import tomllib
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGING = ROOT / "packaging"
DOC = "usr/share/doc/segue-agent"


def output(*command: str | Path) -> str:
    """What a command prints."""
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def version() -> str:
    """Of the workspace."""
    manifest = tomllib.loads((ROOT / "Cargo.toml").read_text())
    found: str = manifest["workspace"]["package"]["version"]
    return found


def epoch() -> int:
    """The time that everything in the package has, seconds."""
    named = os.environ.get("SOURCE_DATE_EPOCH")
    return int(named or output("git", "log", "-1", "--format=%ct"))


def depends(program: bytes) -> str:
    """The C library that the program wants at least, by the versions of its symbols."""
    versions = {tuple(int(part) for part in found.split(b".")) for found in re.findall(rb"GLIBC_(\d+\.\d+)", program)}
    newest = ".".join(str(part) for part in max(versions))
    return f"libc6 (>= {newest}), libgcc-s1, systemd"


def crates() -> str:
    """The crates that are in the program, with their licences."""
    lines = output(
        "cargo", "tree", "--locked", "--package=segue-agent", "--edges=normal", "--prefix=none", "--format={p}: {l}"
    )
    # without the folder of those of this repository
    return "".join(sorted({re.sub(r" \([^)]*\)", "", line) + "\n" for line in lines.splitlines()}))


def put(path: Path, content: bytes | str, mode: int = 0o644) -> None:
    """A file with these permissions."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    path.chmod(mode)


def compressed(text: str) -> bytes:
    """As Debian has it, without a name or a time."""
    return gzip.compress(text.encode(), compresslevel=9, mtime=0)


def lay_out(tree: Path, program: Path) -> None:
    """Everything that the package has."""
    binary = tree / "usr/sbin/segue-agent"
    binary.parent.mkdir(parents=True)
    shutil.copy(program, binary)
    binary.chmod(0o755)
    if shutil.which("strip"):
        subprocess.run(["strip", "--strip-unneeded", binary], check=True)
    unit = (PACKAGING / "segue-agent.service").read_text()
    installed = re.sub(r"^# [^\n]*\n(# [^\n]*\n)*\n", "", unit).replace("/usr/local/bin/", "/usr/sbin/")
    put(tree / "lib/systemd/system/segue-agent.service", installed)
    put(tree / "usr/lib/sysusers.d/segue-agent.conf", (PACKAGING / "segue-agent.sysusers").read_bytes())
    put(tree / "etc/segue/agent.toml", (PACKAGING / "agent.toml").read_bytes(), 0o600)
    for example in sorted((PACKAGING / "examples").iterdir()):
        put(tree / DOC / "examples" / example.name, example.read_bytes())
    put(tree / "usr/share/man/man8/segue-agent.8.gz", compressed(output(program.resolve(), "man")))
    put(tree / DOC / "agent.md.gz", compressed((ROOT / "docs/agent.md").read_text()))
    terms = (ROOT / "LICENSE-MIT").read_text().split("\n\n", 2)[2].rstrip()
    expat = "".join(f" {line or '.'}\n" for line in terms.splitlines())
    put(tree / DOC / "copyright", (PACKAGING / "debian/copyright").read_text() + expat)
    put(tree / DOC / "crates.txt", crates())
    put(tree / "usr/share/lintian/overrides/segue-agent", (PACKAGING / "debian/lintian-overrides").read_bytes())
    date = format_datetime(datetime.fromtimestamp(epoch(), UTC))
    entry = (
        f"segue-agent ({version()}) unstable; urgency=medium\n\n  * As it is in the repository: see its CHANGELOG.md.\n"
    )
    signed = f"{entry}\n -- The Segue developers <segue@example.org>  {date}\n"
    put(tree / DOC / "changelog.gz", compressed(signed))
    control = (PACKAGING / "debian/control").read_text()
    size = sum(-(-path.stat().st_size // 1024) for path in tree.rglob("*") if path.is_file())
    said = control.format(
        version=version(),
        architecture=output("dpkg", "--print-architecture").strip(),
        depends=depends(program.read_bytes()),
        size=size,
    )
    put(tree / "DEBIAN/control", said)
    put(tree / "DEBIAN/conffiles", (PACKAGING / "debian/conffiles").read_bytes())
    for script in ("postinst", "prerm", "postrm"):
        put(tree / "DEBIAN" / script, (PACKAGING / "debian" / script).read_bytes(), 0o755)
    for folder in tree.rglob("*"):
        if folder.is_dir():
            folder.chmod(0o755)


def build(program: Path, out: Path) -> Path:
    """The package, which is in `out` then."""
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        lay_out(tree, program)
        tree.chmod(0o755)
        made = out / f"segue-agent_{version()}_{output('dpkg', '--print-architecture').strip()}.deb"
        environment = os.environ | {"SOURCE_DATE_EPOCH": str(epoch())}
        command = ["dpkg-deb", "--root-owner-group", "-Zxz", "--build", str(tree), str(made)]
        subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
    return made


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", type=Path, help="segue-agent, as cargo has built it")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="folder of the package (dist)")
    given = parser.parse_args()
    if shutil.which("dpkg-deb") is None:
        parser.error("dpkg-deb is missing: expected a Debian, or its package dpkg")
    print(build(given.program, given.out))


if __name__ == "__main__":
    main()
