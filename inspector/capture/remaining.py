"""What a capture's run had chosen and has not computed, as one sentence, and why nothing is added to some."""

from __future__ import annotations

from collections.abc import Collection

from inspector.capture.reader import Capture
from inspector.records import RunStart, command, split_request

NOT_ADDED_TO = {
    "log": "This is a log of a training: it has numbers of the training only, and no model to compute anything from.",
    "training": (
        "These are frames of a training that was watched: what is recorded was chosen where it was watched, and "
        "nothing is added afterwards."
    ),
    "spike": "This is one iteration of a training, run again from what was kept: nothing is added to it afterwards.",
    "sweep": "These are frames of a sweep of checkpoints: `inspector sweep` with `--with KEY` computes more of each.",
}
"""What `RunStart.meta` has of a capture that no run of its model in the window adds to, and what is said of it."""


def left_of(capture: Capture, among: Collection[str] | None = None) -> tuple[str, ...]:
    """Keys of the quantities that were chosen and are not computed, of some or of all; () while the run is going on."""
    left = capture.stop.left if capture.stop is not None else ()
    keys = dict.fromkeys(split_request(request)[0] for request in left)
    return tuple(key for key in keys if among is None or key in among)


def not_added_to(start: RunStart) -> str:
    """Why nothing can be added to a capture by running its model on a sequence, as one sentence; "" where that can."""
    return next((why for key, why in NOT_ADDED_TO.items() if key in start.meta), "")


def command_of(start: RunStart) -> str:
    """The command that runs the model of a capture; "" where the model has no name."""
    checkpoint = ("--checkpoint", start.checkpoint) if start.checkpoint and ":" in start.subject else ()
    return command("run", start.subject, *checkpoint) if start.subject else ""


def not_computed(capture: Capture, among: Collection[str] | None = None) -> str:
    """One sentence about them, with the command that computes them; "" where nothing is left."""
    left, computes = left_of(capture, among), command_of(capture.start)
    how = not_added_to(capture.start) or (f"`{computes}` computes all of a run." if computes else "")
    return f"Not computed: {', '.join(left)}. {how}".rstrip() if left else ""
