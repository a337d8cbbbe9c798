"""What the status row says of a capture that another process writes: a training that runs, or has ended."""

from __future__ import annotations

import numpy as np

from inspector.capture import Capture, CaptureError, numbers_along
from inspector.capture.curves import SERIES
from inspector.records.dates import at_local

RUNNING, DIED = "The training is running", "The training ended without closing its capture"
ELSEWHERE = "The training is written by another machine"
AWAITED = "No connection to the training{}: it is waited for"
FAILED = {"failed": "The training failed", "cancelled": "The training was cancelled"}
LOG = "This log is followed while it grows"


def training_sentence(capture: Capture | None) -> str:
    """One sentence on the state of a training, with its newest iteration; "" for a capture that is complete or that has
    no series over training."""
    if capture is None:
        return ""
    of_training = "training" in capture.start.meta or any(c.kind == SERIES for c in capture.channels.values())
    words = {"running": RUNNING, "unfinished": DIED, "unknown": LOG, **FAILED}
    if getattr(capture, "written_elsewhere", False):
        words["unfinished"] = ELSEWHERE
    if (since := getattr(capture, "awaited", None)) is not None:
        moment = at_local(since, "%H:%M:%S")
        words["unfinished"] = AWAITED.format(f" since {moment}" if moment else "")
    said = words.get(str(capture.status), "") if of_training else ""
    newest = newest_iteration(capture) if said else None
    return said if newest is None else f"{said}: {newest}"


def newest_iteration(capture: Capture) -> str | None:
    """The last iteration that was recorded on any axis, with the title of that axis; None where none is numbered."""
    found: dict[str, float] = {}
    for name in capture.axes:
        try:
            numbers = numbers_along(capture, name)
        except CaptureError:
            continue
        known = numbers[np.isfinite(numbers)] if numbers is not None else np.zeros(0)
        if len(known):
            title = capture.axis(name).title
            found[title] = max(found.get(title, float(known[-1])), float(known[-1]))
    if not found:
        return None
    title, number = max(found.items(), key=lambda one: one[0] == "iteration")
    return f"{title} {number:,.10g}"
