"""Writing files: whole or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path


def write_file(path: Path, content: bytes | str) -> Path:
    """Write `content` under a temporary name in the same directory, then rename it: `path` is never half-written.

    The directory is made if it is missing. A write that fails or is interrupted leaves neither name behind.
    """
    data = content.encode() if isinstance(content, str) else content
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(name).chmod(0o666 & ~_umask())
        Path(name).replace(path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            Path(name).unlink()
        raise
    return path


def check_directory(path: Path) -> None:
    """Make sure that files can be written into `path`, before long work begins; it is made if it is missing.

    Raises:
        OSError: It cannot be made or written to.
    """
    path.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=path):
        pass


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
