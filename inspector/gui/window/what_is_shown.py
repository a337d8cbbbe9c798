"""What the window says of what it shows: model, checkpoint, how much of it was loaded, input, frame, device."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

from inspector.capture.placing import SWEEP
from inspector.gui.window.bars.frame_bar import DIFFERENCE
from inspector.records import Frame
from inspector.records.report import from_meta

BETWEEN = " · "


def title_of(capture: Any, frame: int) -> str:
    """For the window's title: what ran, the checkpoint with its step, and of several frames which one is shown."""
    return BETWEEN.join(
        part for part in (capture.start.title, checkpoint(capture, frame), frame_named(capture, frame)) if part
    )


def status_of(capture: Any, frame: int) -> list[str]:
    """For the status row: model, checkpoint, how much of it was loaded, frame and device; what is not known is left
    out."""
    subject = PurePath(capture.start.subject).name
    device = capture.start.meta.get("device")
    parts = (subject, checkpoint(capture, frame), loaded(capture), frame_named(capture, frame), device)
    return [part for part in parts if isinstance(part, str) and part]


def checkpoint(capture: Any, frame: int) -> str:
    """The checkpoint's name with its step; of several frames the one that is shown says its step."""
    shown = _shown(capture.frames, frame)
    name = PurePath(capture.start.checkpoint).name
    report = from_meta(capture.start.meta)
    step = shown.step if shown is not None and shown.step is not None else report.step if report is not None else None
    if not name:
        return f"iteration {step:,}" if step is not None else ""
    return name if step is None or str(step) in name else f"{name} (step {step:,})"


def loaded(capture: Any) -> str:
    """How much of the checkpoint is in the model: "30 of 32 tensors loaded"."""
    report = from_meta(capture.start.meta)
    if report is None:
        return ""
    if report.matched == report.total:
        return f"all {report.total:,} tensors loaded" + (", rebuilt by names" if "rebuilt" in report.rebuilt else "")
    return f"{report.matched:,} of {report.total:,} tensors loaded"


def frame_named(capture: Any, frame: int) -> str:
    """Which of several frames is shown, by its index: that is what the timeline says and `--frame` takes."""
    shown = _shown(capture.frames, frame)
    if shown is None or len(capture.frames) < 2:
        return ""
    if frame == DIFFERENCE:
        return f"frame {shown.index} minus frame {capture.frames[0].index}"
    said = f"frame {shown.index} of {least_to_largest(capture)}"
    return f"{said} ({shown.label})" if shown.label else said


def least_to_largest(capture: Any) -> str:
    """The least and the largest index of a capture's frames: "0–4". Frames are in the order of their indices but for
    those of a sweep, which are in that of training; so of 50,000 that are numbered as they stand not all are looked
    at."""
    frames = capture.frames
    least, largest = frames[0].index, frames[-1].index
    if SWEEP in capture.start.meta or (least, largest) != (0, len(frames) - 1):
        indices = [one.index for one in frames]
        least, largest = min(indices), max(indices)
    return f"{least}–{largest}"


def _shown(frames: Sequence[Frame], frame: int) -> Frame | None:
    """The frame of an index; the newest for one below 0."""
    place = place_of(frames, frame)
    return frames[-1 if place is None else place] if frames else None


def place_of(frames: Sequence[Frame], frame: int) -> int | None:
    """Where the frame of an index stands; None for one that there is not, as for one below 0. Mostly they are numbered
    as they stand: of 50,000 not all are looked at for each title."""
    if frame < 0:
        return None
    if frame < len(frames) and frames[frame].index == frame:
        return frame
    return next((place for place, one in enumerate(frames) if one.index == frame), None)
