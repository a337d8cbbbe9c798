"""What a panel reads before it draws, in slices: thousands of pages take as long as a window may answer nothing."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from inspector.capture import Capture, CaptureError
from inspector.gui.panel.drawn_when_seen import DrawnWhenSeen
from inspector.records import Channel

SLICE_SECONDS = 0.015
"""CPU time of one slice."""
MUCH, MUCH_BYTES = 300, 6 << 20
"""Pages, and bytes in them, that are read in slices; fewer are read while the panel is drawn, in some milliseconds."""


class ReadingAhead(DrawnWhenSeen):
    """Of the channels that are drawn those of the place in view. Nothing here may raise: drawing says what cannot be
    read."""

    capture: Capture | None

    @property
    def frame(self) -> int:
        """The frame that is shown; -1 for the newest."""
        raise NotImplementedError

    def channels(self) -> list[Channel]:
        """What is shown."""
        raise NotImplementedError

    def has_much_to_read(self) -> bool:
        """Whether there are thousands of pages, or large ones."""
        if type(self.capture) is not Capture:
            return False
        capture, first = self.capture, self._read_first()
        if sum(capture.unread(one.name, self.frame) for one in first) > MUCH:
            return True
        return sum(capture.unread_bytes(one.name, self.frame) for one in first) > MUCH_BYTES

    def read_some(self) -> bool:
        """The next slice."""
        if type(self.capture) is not Capture or not self.has_much_to_read():
            return True
        try:
            return self._read_slice(self.capture, time.thread_time() + SLICE_SECONDS)
        except (CaptureError, OSError, ValueError, MemoryError):
            return True  # which is said where it is drawn

    def _read_slice(self, capture: Capture, until: float) -> bool:
        for channel in self._read_first():
            if not capture.read_ahead(channel.name, self.frame, max(0.0, until - time.thread_time())):
                return False
        return True

    def _read_first(self) -> Sequence[Channel]:
        return list(self._of_one_place())

    def _of_one_place(self) -> Iterator[Channel]:
        try:
            found = self.channels()
        except Exception:  # noqa: BLE001 - a panel of another package may raise anything; it is said where it is drawn
            return
        places = [channel.place for channel in found]
        looked_at = self.looking.position.place
        place = looked_at if looked_at in places else places[0] if places else ""
        yield from (channel for channel in found if channel.place == place)
