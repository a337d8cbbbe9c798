"""Two frames of one capture as one: a run and the edited run. The special case of a comparison that a window shows."""

from __future__ import annotations

from typing import Any

from inspector.capture.comparable import TIMES, Reference
from inspector.capture.comparison import Comparison
from inspector.capture.reader import Capture

__all__ = ["TIMES", "Difference"]


class Difference(Comparison):
    """The change of the frame `second` against the frame `first`; everything else is the capture's."""

    def __init__(self, capture: Capture, first: int, second: int) -> None:
        self.capture, self.first, self.second = capture, first, second
        names = (f"frame {first}", f"frame {second}")
        super().__init__(Reference(capture, first, names[0]), Reference(capture, second, names[1]), edited=True)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.capture, name)

    def frame_of(self, name: str, frame: int = -1) -> int:
        """Always the second."""
        return self.second
