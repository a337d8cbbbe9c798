"""Why there is no number at a pin: what was pinned, and what of it the run that is shown does not have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from inspector.gui.state.cursor import Cursor
from inspector.gui.state.pins import Pin
from inspector.records import counted

OTHERWISE = "What is shown has no number of this kind there"


def why_no_numbers(pins: Sequence[Pin], capture: Any, shown: Cursor) -> list[str]:
    """Two sentences for each pin, to be told where a number of it is not there; nothing without a run."""
    if capture is None:
        return []
    frame = shown.position.frame
    return [f"Pin {pin.number} is {pin.words}. {_missing(pin, capture, frame, shown.length_of)}." for pin in pins]


def _missing(pin: Pin, capture: Any, frame: int, length_of: Callable[[str], int]) -> str:
    at = pin.position
    for axis, step in at.steps.items():
        if step >= length_of(axis):
            return f"This run has {counted(length_of(axis), 'step')}, the last is {length_of(axis) - 1}"
    own = [channel for channel in capture.channels.values() if channel.place == at.place]
    if at.place and not own:
        return f"This run has no {at.place}"
    for dim, number in (("unit", at.unit), ("head", at.head)):
        most = max((_along(capture, channel, frame, dim) for channel in own), default=0)
        if number is not None and number >= most > 0:
            return f"{at.place} has {counted(most, dim)} in this run, the last is {most - 1}"
    return OTHERWISE


def _along(capture: Any, channel: Any, frame: int, dim: str) -> int:
    """How many of something a channel has, 0 where it has none."""
    return int(capture.extent(channel.name, frame)[channel.dims.index(dim)]) if dim in channel.dims else 0
