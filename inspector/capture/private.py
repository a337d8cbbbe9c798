"""Captures are private to the user who makes them: prompts, data and weights' values can be read back from them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO


def private_folder(path: Path) -> None:
    """Make a folder that only its user can open; one that exists keeps its mode. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        path.mkdir(mode=0o700)
    except FileExistsError:
        path.mkdir(exist_ok=True)  # raises where it is no folder


def private_file(path: Path) -> BinaryIO:
    """Open a file for writing, empty, that only its user can read. Raises OSError."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
    return os.fdopen(os.open(path, flags, 0o600), "wb")
