"""Captures are private to the user who makes them: prompts, data and weights' values can be read back from them."""

from __future__ import annotations

import errno
import os
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


def folder_for(path: Path) -> Path:
    """Make a folder that is private to its user, where it is not there yet. Raises OSError where a link is in its
    place: somebody's capture must not choose where this program writes or removes."""
    path.mkdir(mode=0o700, exist_ok=True)
    if path.is_symlink():
        raise OSError(errno.ELOOP, f"{path} is a link")
    return path
