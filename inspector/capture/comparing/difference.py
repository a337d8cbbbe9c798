"""Two references that a window shows as one: of any captures (`Pair`), or a run and the edited run (`Difference`)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from inspector.capture.comparable import TIMES, Reference
from inspector.capture.comparing.comparison import Comparison
from inspector.capture.damage import Damage
from inspector.capture.reader import Capture

__all__ = ["TIMES", "Difference", "Pair"]


class Pair(Comparison):
    """The change of the second reference against the first; everything else is that of the second one's capture.

    Attributes:
        capture, first_capture: what the second and the first side are read from.
        first, second: their frames.
    """

    def __init__(self, before: Reference, after: Reference, *, edited: bool = False) -> None:
        self.capture: Any = after.view
        self.first_capture: Any = before.view
        self.first, self.second = before.frame, after.frame
        super().__init__(before, after, edited=edited)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.capture, name)

    @property
    def sides(self) -> tuple[Reference, Reference]:
        """The first and the second side."""
        return self.before, self.after

    @property
    def one_capture(self) -> bool:
        """Whether both are frames of one capture."""
        views = (self.capture, self.first_capture)
        one, other = (getattr(view, "view", view) for view in views)
        return one is other

    def frame_of(self, name: str, frame: int = -1) -> int:
        """Always the second."""
        return self.second

    @property
    def damage(self) -> tuple[Damage, ...]:
        """What is lost of either side's capture; of the first one's frame as if it were the second's."""
        own: tuple[Damage, ...] = tuple(self.capture.damage)
        if self.one_capture:
            return own
        also = (one for one in self.first_capture.damage if one.frame in (-1, self.first))
        return *own, *(
            replace(one, frame=-1 if one.frame < 0 else self.second, sentence=f"{self.before.name}: {one.sentence}")
            for one in also
        )

    @contextmanager
    def noting(self) -> Iterator[set[tuple[str, int]]]:
        """Note what is read of the second side's capture, and of the first one's as if it were the second's."""
        with self.capture.noting() as read:
            if self.one_capture:
                yield read
                return
            with self.first_capture.noting() as also:
                yield read
            read |= {(name, self.second) for name, _ in also}


class Difference(Pair):
    """The change of the frame `second` of a capture against the frame `first`, which is the run before an edit."""

    def __init__(self, capture: Capture, first: int, second: int) -> None:
        names = (f"frame {first}", f"frame {second}")
        super().__init__(Reference(capture, first, names[0]), Reference(capture, second, names[1]), edited=True)
