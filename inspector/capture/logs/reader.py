"""The protocol of a log reader and of the files that it opens, and the registry of readers."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import Protocol

from inspector.capture.layout import CaptureError
from inspector.capture.logs.growing import Floats
from inspector.capture.logs.run_log import RunLog
from inspector.registry import Registry

HEAD = 4096
"""Bytes of a file that a reader is shown to decide by."""


class CancelledError(CaptureError):
    """Reading was cancelled."""


class ReplacedError(Exception):
    """A file is another one than was read before: what it brought is forgotten, and it is read anew."""


class NotThisFormatError(CaptureError):
    """A file looked like a log of this format and is none; in a folder it is passed over."""


class Intake:
    """Where a file puts what it has: runs by name, and how far it has come.

    A reader names a run within its file, "" for the only one; the run's whole name has the file's folder in front.
    """

    def __init__(self, name_of: Callable[[str], RunLog], progress: Callable[[int], None]) -> None:
        self._run, self._progress = name_of, progress

    def run(self, name: str = "") -> RunLog:
        """The run of that name in this file."""
        return self._run(name)

    def progress(self, read: int) -> None:
        """Bytes of the file that were read so far. Raises CancelledError where reading is to stop."""
        self._progress(read)


class LogFile(Protocol):
    """One open log file."""

    def read(self, into: Intake) -> None:
        """Read what is new since the last call. An incomplete end is left for the next call.

        Raises ReplacedError where what was read before is not in the file any more, OSError, CaptureError.
        """

    def histogram(self, where: int, name: str) -> tuple[Floats, Floats]:
        """(edges (n + 1,), counts (n,)) of a histogram that `RunLog.histogram` was told of. Raises CaptureError."""


class LogReader(Protocol):
    """One log format.

    Attributes:
        title, summary: what it is called, and one sentence.
        magic: first bytes by which its files are recognised.
        names: patterns of its files' names (as in a shell), asked where no reader knows the first bytes.
        order: which of several that know a file has it, small first.
        certain: whether a name alone is enough in a folder, which may have other tables too.
    """

    title: str
    summary: str
    magic: tuple[bytes, ...]
    names: tuple[str, ...]
    order: int
    certain: bool

    def sniff(self, path: Path, head: bytes) -> bool:
        """Whether the first bytes of a file are of this format. `magic` need not be looked for."""

    def open(self, path: Path) -> LogFile:
        """A file, not read yet. Raises CaptureError or OSError."""

    def run_of(self, path: Path, root: Path) -> str:
        """The run that a file below the folder `root` belongs to: "" for the folder's own; see `folder_of`."""

    def chosen(self, files: list[Path]) -> list[Path]:
        """Of the files of one run those that are read, in the order in which they were written."""


LOGS: Registry[LogReader] = Registry("logs", "inspector.capture.logs.readers")


class OneFile:
    """A part of most readers: no further look into the file, a run for each folder, all of its files."""

    magic: tuple[bytes, ...] = ()
    names: tuple[str, ...] = ()
    order = 50
    certain = True

    def sniff(self, path: Path, head: bytes) -> bool:
        """The magic bytes are enough."""
        return False

    def run_of(self, path: Path, root: Path) -> str:
        """The folder of the file."""
        return folder_of(path, root)

    def chosen(self, files: list[Path]) -> list[Path]:
        """All of them, by name."""
        return sorted(files)

    def histogram(self, where: int, name: str) -> tuple[Floats, Floats]:
        """There are none."""
        raise CaptureError(f"{name} is not a histogram.")


def folder_of(path: Path, root: Path) -> str:
    """The folder of a file below a root, with slashes; "" for the root itself."""
    found = path.parent.relative_to(root).as_posix() if path != root else ""
    return "" if found == "." else found


def folder_or_name(path: Path, root: Path, usual: Collection[str]) -> str:
    """The folder of a file, or its own name below that where the name says which run it is: where it is none of the
    `usual` ones."""
    folder = folder_of(path, root)
    if path == root or path.stem.lower() in usual:
        return folder
    return f"{folder}/{path.stem}" if folder else path.stem
