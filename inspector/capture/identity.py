"""Which file has a name: another one may have it by now."""

from __future__ import annotations

import os
from pathlib import Path

Identity = tuple[int, int]
"""Device and number of a file on it."""


def identity(file: Path | int) -> Identity | None:
    """Of the file that has a name, or of an open one by its descriptor; None where there is none."""
    try:
        found = os.fstat(file) if isinstance(file, int) else file.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
