"""Channels of one run that are added to the capture of another, which has ended: trials beside its findings."""

from __future__ import annotations

from collections.abc import Sequence

from inspector.capture.layout import CaptureError
from inspector.capture.noted import why_not_added
from inspector.capture.reader import Capture
from inspector.capture.writer import Writer
from inspector.records import Page, Refusal

TRIALS = ":trial/cure/"
"""In the names of the channels of trials of cures."""
OTHER_MODEL = "The model that was tried is not that of {}: {!r} is only in {}, so the result is not kept there."


def add_trials(target: Capture, source: Capture) -> None:
    """Copy the trials of cures of a run, and why others could not be made, into the newest frame of a capture.

    Raises CaptureError as `add_channels`, and where the run is of a model with other modules.
    """
    own, other = ({place.name for place in one.start.places} for one in (target, source))
    if own and own != other:
        first = min(own ^ other)
        raise CaptureError(OTHER_MODEL.format(target.path.name, first, "the capture" if first in own else "the model"))
    names = [one for one in source.channels if TRIALS in one]
    add_channels(target, source, names, [one for one in source.refusals if TRIALS in one.channel])


def add_channels(target: Capture, source: Capture, names: Sequence[str], refused: Sequence[Refusal] = ()) -> int:
    """Copy channels of the newest frame of `source` into the newest of `target`; the number of that frame.

    A channel of that name is replaced there. Raises CaptureError where the target is read-only, packed, of an older
    format, being written, or has no frame; then nothing has changed.
    """
    if why := why_not_added(target):
        raise CaptureError(why)
    if not target.frames:
        raise CaptureError(f"{target.path.name} has no frame, to which a result could belong.")
    frame = target.frames[-1].index
    pages = [(source.channel(name), source.array(name)) for name in names]
    with Writer(target.path, target.start, again=True) as writer:
        for channel, array in pages:
            writer.write(channel)
            writer.write(Page(channel.name, frame, (0,) * array.ndim, array))
        for one in refused:
            writer.write(Refusal(one.channel, one.reason, frame))
    return frame
