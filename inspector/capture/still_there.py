"""Whether the files that a writer has open are still those that have their names.

The system goes on writing to a file that was removed or replaced, and says nothing: what is acknowledged then is gone
once the file is closed. So it is looked at before each commit, which takes some microseconds.
"""

from __future__ import annotations

from pathlib import Path

from inspector.capture.appending import PageAppender
from inspector.capture.identity import Identity, identity
from inspector.capture.layout import INDEX, CaptureError, page_file
from inspector.capture.snapshot import WAL
from inspector.capture.target import HEADER_BYTES, has_our_id


class StillThere:
    """Of one capture that is being written."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._log: Identity | None = None
        self._size = 0

    def committed(self) -> None:
        """Note how the index and its log are after a commit."""
        self._size = _size(self._folder / INDEX)
        self._log = self._log or identity(self._folder / f"{INDEX}{WAL}")

    def forget(self) -> None:
        """Another index begins there."""
        self._size, self._log = 0, None

    def check(self, pages: PageAppender) -> None:
        """Raises CaptureError where the index was overwritten or cut, or its log or the page file is another one."""
        index = self._folder / INDEX
        if _size(index) < self._size or not _is_ours(index):
            raise self._told(INDEX, "overwritten or cut")
        if self._log is not None and identity(self._folder / f"{INDEX}{WAL}") != self._log:
            raise self._told(f"{INDEX}{WAL}", "removed or replaced")
        present = pages.present
        if present is not None and identity(self._folder / page_file(present[0])) != present[1]:
            raise self._told(page_file(present[0]), "removed or replaced")

    def _told(self, name: str, what: str) -> CaptureError:
        return CaptureError(
            f"{self._folder / name} was {what} by another program while the run was writing to it; the capture ends "
            "there."
        )


def _is_ours(index: Path) -> bool:
    """Whether an index begins as one does. A process that may open no more files cannot look."""
    try:
        with index.open("rb") as file:
            return has_our_id(file.read(HEADER_BYTES))
    except OSError:
        return True


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
