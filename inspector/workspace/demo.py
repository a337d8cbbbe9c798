"""What `inspector demo` may replace: only what it made itself, recognised by a mark in the capture and in each
figure."""

from __future__ import annotations

import os
from pathlib import Path

from inspector.capture import CaptureError, check_target, open_capture
from inspector.capture.layout import INDEX

DEMO = "demo"
"""The value of `made_by` in the captures of the demo, and of "Made by" in their figures (`gui/export`)."""
FIGURE_HEAD = 4096
"""Bytes that are read of a figure: the texts of a PNG come before its pixels."""
MOVE = "move it away, or run the demo in another folder"


def check_demo(target: Path, figures: Path) -> bool:
    """Whether there is a capture of an earlier demo to replace. Raises CaptureError where anything else is there."""
    overwrite = _check_capture(target)
    if figures.is_symlink() or (figures.exists() and not figures.is_dir()):
        raise CaptureError(f"{figures} is not a folder, and the demo writes its figures to one of that name; {MOVE}.")
    foreign = [path for path in sorted(figures.glob("*.png")) if not _is_figure(path)] if figures.exists() else []
    if foreign:
        raise CaptureError(f"{foreign[0]} was not made by inspector demo, so nothing is written there; {MOVE}.")
    return overwrite


def _check_capture(target: Path) -> bool:
    try:
        check_target(target, overwrite=True)
        if not os.path.lexists(target / INDEX):
            return False
        with open_capture(target) as capture:
            made_by = capture.start.meta.get("made_by")
    except CaptureError as problem:
        raise CaptureError(f"The demo cannot be written: {str(problem).rstrip('.')} ({MOVE}).") from None
    if made_by != DEMO:
        raise CaptureError(f"{target} was not made by inspector demo, so it is not replaced; {MOVE}.")
    return True


def _is_figure(path: Path) -> bool:
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        return f"Made by\0{DEMO}".encode() in file.read(FIGURE_HEAD)
