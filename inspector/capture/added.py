"""Channels of one run that are added to the capture of another, which has ended: trials beside its findings."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.capture.layout import CaptureError
from inspector.capture.noted import why_not_added
from inspector.capture.reader import Capture
from inspector.capture.writer import Writer
from inspector.records import SHAPES, Channel, Page, Refusal, RunStart

Array = npt.NDArray[Any]
TRIALS = ":trial/cure/"
"""In the names of the channels of trials of cures."""
OTHER_MODEL = "The model that was tried is not that of {}: {}, so the result is not kept there."
LAZY = "Lazy"
"""How the classes of modules begin that have no parameters before their first call."""


def add_trials(target: Capture, source: Capture) -> None:
    """Copy the trials of cures of a run, and why others could not be made, into the newest frame of a capture.

    Raises CaptureError as `add_channels`, and where the run is of another model.
    """
    if why := _other_model(target.start, source.start):
        raise CaptureError(OTHER_MODEL.format(target.path.name, why))
    names = [one for one in source.channels if TRIALS in one]
    add_channels(target, source, names, [one for one in source.refusals if TRIALS in one.channel])


def forget_trials(target: Capture, cures: Collection[str] = ()) -> list[str]:
    """Take the trials of some cures, or of all, out of a capture: the keys of those that were.

    Their channels are described as empty and their numbers overlaid by NaN, so that nothing reads them; the bytes stay
    in the file, as all that is replaced does. Raises CaptureError where nothing can be written, or nothing was tried.
    """
    if why := why_not_added(target):
        raise CaptureError(why)
    there = tried_in(target)
    for key in cures:
        if key not in there:
            known = f"; there are {', '.join(sorted(there))}" if there else ""
            raise CaptureError(f"{target.path.name} has no trial of {key!r}{known}.")
    gone = {key: names for key, names in there.items() if not cures or key in cures}
    frames = (-1, *(frame.index for frame in target.frames))
    with Writer(target.path, target.start, again=True) as writer:
        for name in (name for names in gone.values() for name in names):
            written = {target.frame_of(name, frame) for frame in frames if target.revision(name, frame)}
            about = target.channel(name)
            writer.write(replace(about, shape=(0,) * len(about.dims)))
            for frame in sorted(written):
                had = target.extent(name, frame)
                writer.write(Page(name, max(frame, 0), (0,) * len(had), np.full(had, np.nan, about.dtype)))
    return sorted(gone)


def tried_in(target: Capture) -> dict[str, list[str]]:
    """{key of a cure: names of the channels of its trials}, of those that are still there."""
    found: dict[str, list[str]] = {}
    for name, channel in target.channels.items():
        if TRIALS in name and 0 not in channel.shape:
            found.setdefault(name.partition(TRIALS)[2].removesuffix("/after"), []).append(name)
    return found


def _other_model(own: RunStart, other: RunStart) -> str:
    """How the model of a capture differs from another one, by modules, classes, or sizes and shapes of parameters; ""
    where it does not, or where the capture says nothing of it."""
    ours, theirs = ({place.name: place for place in one.places} for one in (own, other))
    if not ours:
        return ""
    if different := ours.keys() ^ theirs.keys():
        first = min(different)
        return f"{first!r} is only in {'the capture' if first in ours else 'the model'}"
    for name, one in ours.items():
        if not one.module.startswith(LAZY) and one != theirs[name]:
            here, there = (f"{place.module} of {place.parameters:,} own parameters" for place in (one, theirs[name]))
            what = f"{name!r}" if name else "the whole"
            return f"{what} is {here} in the capture, and {there} in the model"
    shapes = own.meta.get(SHAPES), other.meta.get(SHAPES)
    return "its parameters have other names or shapes" if None not in shapes and shapes[0] != shapes[1] else ""


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
    before = {channel.name: _beyond(target, channel, array, frame) for channel, array in pages}
    with Writer(target.path, target.start, again=True) as writer:
        for channel, array in pages:
            writer.write(channel)
            if (blank := before[channel.name]) is not None:
                writer.write(Page(channel.name, frame, (0,) * array.ndim, blank))
            writer.write(Page(channel.name, frame, (0,) * array.ndim, array))
        for one in refused:
            writer.write(Refusal(one.channel, one.reason, frame))
    return frame


def _beyond(target: Capture, channel: Channel, array: Array, frame: int) -> Array | None:
    """NaN in the place of what the target has of a channel, where that reaches beyond the array that replaces it."""
    if channel.name not in target.channels or not target.revision(channel.name, frame):
        return None
    had = target.extent(channel.name, frame)
    wider = len(had) == array.ndim and any(old > new for old, new in zip(had, array.shape, strict=True))
    return np.full(had, np.nan, array.dtype) if wider and array.dtype.kind == "f" else None
