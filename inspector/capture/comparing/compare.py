"""Comparing any two things that were captured: opened where they are given by path, aligned by their tokens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from inspector.capture.comparable import Reference
from inspector.capture.comparing.aligned import aligned
from inspector.capture.comparing.alignment import Alignment
from inspector.capture.comparing.comparison import Comparison
from inspector.capture.logs.view import LogView
from inspector.capture.reader import Capture
from inspector.capture.references import NEWEST, checked_frame, name_of, open_reference


def compare(first: Any, second: Any, *, align: bool = True) -> Comparison:
    """Compare two references; see `inspector.compare`. Raises CaptureError, and then nothing stays open."""
    opened: list[Any] = []
    try:
        sides = [reference_of(one, opened) for one in (first, second)]
        names = [side.name for side in sides]
        if names[0] == names[1]:
            names = [f"first {names[0]}", f"second {names[1]}"]
        before, after = (Reference(side.view, side.frame, name) for side, name in zip(sides, names, strict=True))
        found: dict[str, Alignment] = {}
        if align:
            before, after, found = aligned(before, after)
    except BaseException:
        for view in opened:
            view.close()
        raise
    both = Comparison(before, after)
    both.alignments, both.opened = found, tuple(opened)
    return both


def reference_of(given: Any, opened: list[Any]) -> Reference:
    """What was given as a reference; what had to be opened for it is added to `opened`. Raises CaptureError."""
    if isinstance(given, Reference):
        return given
    view, frame = given if isinstance(given, tuple) else (given, NEWEST)
    if isinstance(view, (str, Path)):
        text = str(view) if not isinstance(given, tuple) else f"{view}#{frame}"
        found = open_reference(text)
        opened.append(found.view)
        return found
    if not isinstance(view, (Capture, LogView)):
        raise TypeError(
            f"A {type(view).__name__} cannot be compared; expected a path, PATH#FRAME, a capture, (capture, frame) or "
            "a Reference."
        )
    return Reference(view, checked_frame(view, frame), name_of(view.path, frame))
