"""What a capture's run had chosen and has not computed, as one sentence."""

from __future__ import annotations

from collections.abc import Collection

from inspector.capture.reader import Capture
from inspector.records import split_request


def left_of(capture: Capture, among: Collection[str] | None = None) -> tuple[str, ...]:
    """Keys of the quantities that were chosen and are not computed, of some or of all; () while the run is going on."""
    left = capture.stop.left if capture.stop is not None else ()
    keys = dict.fromkeys(split_request(request)[0] for request in left)
    return tuple(key for key in keys if among is None or key in among)


def not_computed(capture: Capture, among: Collection[str] | None = None) -> str:
    """One sentence about them, with the command that computes them; "" where nothing is left."""
    left = left_of(capture, among)
    subject = capture.start.subject
    how = f" `inspector run {subject}` computes all of a run." if subject else ""
    return f"Not computed: {', '.join(left)}.{how}" if left else ""
