"""One side of a comparison, written as a text: PATH, or PATH#FRAME for one frame of a capture."""

from __future__ import annotations

from pathlib import Path

from inspector.capture.comparable import Reference
from inspector.capture.layout import CaptureError
from inspector.capture.logs.view import LogView
from inspector.capture.opening import open_any
from inspector.capture.reader import Capture
from inspector.capture.regular import is_there
from inspector.records.plain_text import plain_line

NEWEST = -1
MOST_NAMED = 12


def split_reference(text: str) -> tuple[Path, int]:
    """(path, frame) of PATH#FRAME; the newest frame (-1) where none is named. A path that has a # itself and exists is
    taken as it is. Raises CaptureError where what follows the # is no number of a frame."""
    head, mark, tail = text.rpartition("#")
    if not mark or is_there(text):
        return Path(text), NEWEST
    try:
        return Path(head), int(tail)
    except ValueError:
        raise CaptureError(
            f"{plain_line(text, 120)} names no frame: expected PATH or PATH#NUMBER, where NUMBER is that of a frame."
        ) from None


def open_reference(text: str) -> Reference:
    """Open what a reference leads to, a capture or a log, to be closed by whoever asked (`reference.view.close()`).

    Raises CaptureError where there is neither, or no frame of that number.
    """
    path, frame = split_reference(text)
    view = open_any(path)
    try:
        return Reference(view, checked_frame(view, frame), plain_line(name_of(path, frame), 60))
    except CaptureError:
        view.close()
        raise


def checked_frame(view: Capture | LogView, frame: int) -> int:
    """The number of a frame; the newest one's for -1, or -1 where there are none. Raises CaptureError."""
    numbers = [one.index for one in view.frames]
    if frame in numbers:
        return frame
    if frame == NEWEST:
        return numbers[-1] if numbers else NEWEST
    some = ", ".join(map(str, numbers[:MOST_NAMED])) + (" …" if len(numbers) > MOST_NAMED else "")
    raise CaptureError(f"{view.path.name} has no frame {frame}; it has {some or 'none'}.")


def name_of(path: Path, frame: int) -> str:
    """How a reference is called in sentences."""
    return path.name if frame == NEWEST else f"{path.name}#{frame}"
