"""A capture of many pages is opened in the background: its index is read as a whole, about 15 µs a page."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import cast

import numpy as np

from inspector.capture import Capture, CaptureError, LogView, TooLargeError, open_capture
from inspector.capture.layout import INDEX
from inspector.gui.state.followed_log import LogOpening
from inspector.gui.state.placed_frames import placed
from inspector.gui.state.switch_interval import giving_way
from inspector.records import STEP_DOMAIN

LONG_INDEX, LARGE_PACK = 300_000, 20_000_000
"""Bytes of an index (5,000 pages have as many), and of a packed capture, above which reading it holds the window up."""

LOOK_SECONDS, FIRST = 1.0, ("state", "gate", "output", "gradient")
"""How long pages are read before a capture is shown at most, and of which kinds of channels first."""


def takes_long(path: Path) -> bool:
    """Whether opening a capture takes longer than a window may answer nothing."""
    try:
        if path.is_file():
            return path.stat().st_size > LARGE_PACK
        log = path / f"{INDEX}-wal"  # of a run that goes on
        return (path / INDEX).stat().st_size + (log.stat().st_size if log.is_file() else 0) > LONG_INDEX
    except OSError:
        return False  # opening it says what is wrong


class CaptureOpening(LogOpening):
    """Opens a capture in a thread; from then on it is read by the window's alone."""

    @property
    def capture(self) -> Capture | None:
        """What was opened, once it was."""
        return cast("Capture | None", self.view)

    def _look(self, capture: Capture) -> None:
        """Put frames in order and place them, and read what panels look at first, a whole channel in few cells: that
        reads and checks all its pages."""
        placed(capture)
        end = time.monotonic() + LOOK_SECONDS
        known = [channel for channel in capture.channels.values() if channel.dims[:1] == (STEP_DOMAIN,)]
        for channel in sorted(known, key=lambda one: FIRST.index(one.kind) if one.kind in FIRST else len(FIRST)):
            if self.cancelled or time.monotonic() > end:
                return
            if 1 <= len(channel.dims) <= 2 and np.dtype(channel.dtype).kind == "f":
                with contextlib.suppress(TooLargeError):
                    capture.overview(channel.name)

    def _open(self) -> None:
        try:
            with giving_way():
                capture = open_capture(self.path)
                self._look(capture)
        except CaptureError as problem:
            self.problem = str(problem)
        except Exception as fault:  # noqa: BLE001 - a thread that ends without a word would leave the window waiting
            self.problem = f"{self.path.name} could not be read: {type(fault).__name__}: {fault}"
        else:
            self.view = cast(LogView, capture)
            if self.cancelled:
                capture.close()
