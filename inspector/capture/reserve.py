"""Space that a capture keeps free for its last words: how a run ended is written even where the disk filled up.

It is a file without a name in the capture's folder, so nothing of it is left where the process is killed.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

RESERVED_BYTES, LEAST_BYTES = 64 << 10, 16 << 10
"""The rows of a run's end change six pages of the index at most, each once in its log and once in the index: mostly
three. On a disk that is nearly full less is kept, down to so much."""


class Reserve:
    """RESERVED_BYTES on the disk of a folder, until they are given; none where there is no room for them."""

    def __init__(self, folder: Path) -> None:
        self._descriptor = -1
        self._identity: tuple[int, ...] = ()
        if hasattr(os, "posix_fallocate"):
            with contextlib.suppress(OSError):
                self._descriptor = _without_a_name(folder)
                _allocate(self._descriptor)
                self._identity = _identity(self._descriptor)

    def give(self) -> None:
        """Free the space; idempotent. A child of this process may hold the file open: so it is cut too.

        A model may have closed the descriptor, whose number is another file's now: that one is left alone. It may have
        the same number on the disk too, but a name, or another length.
        """
        descriptor, self._descriptor = self._descriptor, -1
        with contextlib.suppress(OSError):
            if descriptor >= 0 and _identity(descriptor) == self._identity:
                try:
                    os.ftruncate(descriptor, 0)
                finally:
                    os.close(descriptor)


def _without_a_name(folder: Path) -> int:
    """A descriptor of a new file in a folder. Raises OSError."""
    if hasattr(os, "O_TMPFILE"):
        with contextlib.suppress(OSError):  # a file system that has none
            return os.open(folder, os.O_RDWR | os.O_TMPFILE | os.O_CLOEXEC, 0o600)
    descriptor, name = tempfile.mkstemp(dir=folder)
    Path(name).unlink()
    return descriptor


def _allocate(descriptor: int) -> None:
    """As much as there is, up to RESERVED_BYTES; nothing where that is too little."""
    size = RESERVED_BYTES
    while size >= LEAST_BYTES:
        try:
            os.posix_fallocate(descriptor, 0, size)
        except OSError:  # what was allocated before there was no more is given back
            os.ftruncate(descriptor, 0)
            size //= 2
        else:
            return


def _identity(descriptor: int) -> tuple[int, ...]:
    found = os.fstat(descriptor)
    return found.st_dev, found.st_ino, found.st_nlink, found.st_size
