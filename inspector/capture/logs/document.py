"""A log that is one JSON document, written anew whenever it has more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from inspector.capture.layout import CaptureError
from inspector.capture.logs.json_values import BadJsonError, parsed
from inspector.capture.logs.reader import Intake, OneFile, ReplacedError
from inspector.capture.logs.tail import changed
from inspector.capture.regular import open_regular

LARGEST = 256 << 20
"""Bytes of the largest document: all of it is in memory at once."""


class Document(OneFile):
    """One file; `take` puts its contents into a run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._read: Any = None

    def read(self, into: Intake) -> None:
        """Read it once. Raises ReplacedError where it was written anew, CaptureError where it cannot be read.

        A document that is being written is not whole: what was read before stays until it is.
        """
        now = changed(self.path)
        if now is not None and now == self._read:
            return
        with open_regular(self.path) as file:
            data = file.read(LARGEST + 1)
        if len(data) > LARGEST:
            raise CaptureError(f"{self.path.name} has more than the {LARGEST >> 20} MB that are read.")
        try:
            found = parsed(data)
        except BadJsonError as problem:
            if self._read is not None:
                return
            raise CaptureError(f"{self.path.name} cannot be read: {problem}.") from None
        if self._read is not None:
            raise ReplacedError
        self.take(found, into)
        self._read = now
        into.progress(len(data))

    def take(self, found: Any, into: Intake) -> None:
        """Put what was read into a run. Raises CaptureError for another document."""
        raise NotImplementedError
