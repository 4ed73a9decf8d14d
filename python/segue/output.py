"""Writing files, whole or not at all; and reading what is one."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

PART = ".part"
"""What names of temporary files end in."""
YOUNG_S = 60.0
"""Temporary files that are younger may not have their lock yet."""
PAGES = (".html", ".htm")
"""What names of reports end in."""


def write_file(path: Path, content: bytes | str) -> Path:
    """Write `content` under a temporary name in the same directory, then rename it: `path` is never half-written.

    The directory is made if it is missing. A write that fails or is interrupted leaves neither name behind; what one
    leaves that is killed, the next of the same file removes. A link is followed: what it points to is replaced, not the
    link.

    Raises:
        OSError: It cannot be written, or is there and is no regular file (a device must not be replaced by a file).
    """
    is_link = path.is_symlink()
    given = path
    with contextlib.suppress(RuntimeError):
        path = path.resolve()
    # Of links in a circle, Python before 3.13 says so itself.
    if path.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(given))
    if path.exists() and not path.is_file():
        raise OSError(errno.EEXIST, "expected a regular file, or none", str(path))
    data = content.encode() if isinstance(content, str) else content
    # Where a link points to is no place that was asked for: what is missing there is not made.
    if not is_link:
        path.parent.mkdir(parents=True, exist_ok=True)
    prefix = f".{path.name[:100]}."
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=prefix, suffix=PART)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    try:
        with os.fdopen(handle, "wb") as file:
            with contextlib.suppress(OSError):
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _remove_left_behind(path.parent, prefix)
            file.write(data)
        Path(name).chmod(0o666 & ~_umask())
        Path(name).replace(path)
    except BaseException as error:
        with contextlib.suppress(FileNotFoundError):
            Path(name).unlink()
        if isinstance(error, OSError):
            # A full disk is reported of the descriptor, which has no name, or of the temporary one.
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise
    return path


def _remove_left_behind(folder: Path, prefix: str) -> None:
    """Remove temporary files whose process was killed: who writes one has a lock on it."""
    name = re.compile(rf"{re.escape(prefix)}[a-z0-9_]{{8}}{re.escape(PART)}")
    with contextlib.suppress(OSError):
        left = [entry for entry in os.scandir(folder) if name.fullmatch(entry.name)]
        for entry in left:
            with contextlib.suppress(OSError):
                _remove_if_forgotten(entry)


def _remove_if_forgotten(entry: os.DirEntry[str]) -> None:
    if not entry.is_file(follow_symlinks=False) or time.time() - entry.stat().st_mtime < YOUNG_S:
        return
    with Path(entry.path).open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        Path(entry.path).unlink()


def read_file(path: Path) -> bytes:
    """What is in a regular file; a pipe or a device may have no end.

    Raises:
        OSError: It cannot be read, or is none.
    """
    if path.exists() and not path.is_file() and not path.is_dir():
        raise OSError(errno.EINVAL, "expected a regular file", str(path))
    return path.read_bytes()


def check_directory(path: Path) -> None:
    """Make sure that files can be written into `path`, before long work begins.

    Nothing is made: what is refused later leaves no empty directory. A missing one is made with its first file.

    Raises:
        OSError: It cannot be made or written to.
    """
    there = path
    while not there.exists() and there.parent != there:
        there = there.parent
    if not there.is_dir():
        raise OSError(errno.ENOTDIR, "expected a directory", str(path if there == path else there))
    try:
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as error:
        # Of a directory that is there: that of the system's own files says that it is not.
        reason = "it takes no files" if error.errno == errno.ENOENT else str(error.strerror)
        where = "cannot be written to" if there == path else f"cannot be made in {there}"
        raise OSError(error.errno, f"{where}: {reason}", str(path)) from error


def check_file(path: Path, made: Iterable[Path | None] = ()) -> None:
    """Make sure that a file of this name can be written: into a directory that is there, or that is made anyway.

    A name whose directory is missing is more often wrong than right.

    Args:
        path: The file.
        made: Directories that are made, with those above them.

    Raises:
        OSError: It cannot.
    """
    parent = path.absolute().parent
    whole = [directory.absolute() for directory in made if directory is not None]
    if parent.exists() or any(parent in (directory, *directory.parents) for directory in whole):
        check_directory(parent)
        return
    raise OSError(errno.ENOENT, f"expected a directory that is there, not {path.parent}", str(path))


def check_report(path: Path) -> None:
    """Make sure that a report's file has a name by which it is taken for the page that it is.

    Raises:
        OSError: It is a directory, or ends in something else.
    """
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "is a directory, expected the name of an HTML file", str(path))
    if path.suffix.lower() not in PAGES:
        raise OSError(errno.EINVAL, "expected a name that ends in .html or .htm", str(path))


@contextlib.contextmanager
def directories(*paths: Path | None) -> Iterator[None]:
    """Make sure that files can be written into these directories; if it fails, those that were made go again.

    Raises:
        OSError: As `check_directory`.
    """
    missing: list[Path] = []
    for path in paths:
        ancestors = [] if path is None else [path.absolute(), *path.absolute().parents]
        missing += [directory for directory in ancestors if not directory.exists() and directory not in missing]
    try:
        for path in paths:
            if path is not None:
                check_directory(path)
        yield
    except BaseException:
        for directory in sorted(missing, key=lambda each: len(each.parts), reverse=True):
            with contextlib.suppress(OSError):
                directory.rmdir()
        raise


def check_apart(path: Path, sources: Iterable[Path]) -> None:
    """Make sure that writing `path` replaces none of the files that are read.

    Raises:
        OSError: It would.
    """
    if path.exists() and any(source.exists() and path.samefile(source) for source in sources):
        raise OSError(errno.EEXIST, "is read itself, expected another name", str(path))


def check_outputs(files: Iterable[Path], sources: Iterable[Path] = ()) -> None:
    """Make sure that files can be written that replace neither each other, nor a directory, nor what is read.

    Args:
        files: All that are to be written, in directories that may be missing yet.
        sources: Files that are read.

    Raises:
        OSError: They would.
    """
    read, seen = list(sources), set[Path]()
    for path in files:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, "is a directory, expected a regular file or none", str(path))
        check_apart(path, read)
        place = path.absolute()
        # links in a circle are told of when they are written to
        with contextlib.suppress(RuntimeError):
            place = path.resolve()
        if place in seen:
            raise OSError(errno.EEXIST, "is written twice: expected two names or directories", str(path))
        seen.add(place)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
