"""Captures are private to the user who makes them: prompts, data and weights' values can be read back from them."""

from __future__ import annotations

import errno
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

_NO_LINK = getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)


def private_file(path: Path, *, fresh: bool = False) -> BinaryIO:
    """Open a file for writing, empty, that only its user can read; with `fresh` it must not exist yet.
    Raises OSError."""
    kind = os.O_EXCL if fresh else os.O_TRUNC
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | kind | _NO_LINK, 0o600), "wb")


def private_index(path: Path) -> None:
    """Make sure that an index exists, private to its user: SQLite gives its other files the mode of this one."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | _NO_LINK, 0o600))


def replace_private(path: Path, content: bytes, *, synchronised: bool = False) -> None:
    """Put a file that only its user can read in the place of what is there, whole or not at all: where that fails,
    what was there stays and nothing is left beside it. `synchronised`: it outlives a loss of power too, which what only
    living processes tell each other need not. Raises OSError."""
    number, partial = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:40]}-", suffix=".part")
    try:
        with os.fdopen(number, "wb") as file:
            file.write(content)
            if synchronised:
                file.flush()
                os.fsync(number)
        Path(partial).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(partial).unlink(missing_ok=True)
        raise


def folder_for(path: Path) -> Path:
    """Make a folder that is private to its user, where it is not there yet. Raises OSError where a link is in its
    place: somebody's capture must not choose where this program writes or removes."""
    path.mkdir(mode=0o700, exist_ok=True)
    if path.is_symlink():
        raise OSError(errno.ELOOP, f"{path} is a link")
    return path
