"""The step axes of a capture: which there are, how long they are, what they are called, and what lies along which."""

from __future__ import annotations

from collections.abc import Mapping

from inspector.capture import Capture
from inspector.records import ANSWER_DOMAIN, STEP_DOMAIN, Channel

WALKED = ("step", "query")
"""Dims along which the cursor walks; keys and sources are looked at from them."""
COUNTED = (*WALKED, "iteration")
"""Dims that have a cursor. Iterations have no strip: no part of the model runs over them, their panel walks them."""
SHORT = {STEP_DOMAIN: "input", ANSWER_DOMAIN: "answer"}


def own_axis(channel: Channel) -> str:
    """The axis that a channel lies along by its own dims; "" where it has no steps."""
    return next((channel.domain(dim) for dim in WALKED if dim in channel.dims), "")


def places_along(capture: Capture) -> Mapping[str, str]:
    """Place → the axis of its channels, so that what has no steps itself (a mean over all of them) is shown with them.

    Where a place has several, the one that is not the input's.
    """
    found: dict[str, str] = {}
    for channel in capture.channels.values():
        axis = own_axis(channel)
        if axis and found.get(channel.place, STEP_DOMAIN) == STEP_DOMAIN:
            found[channel.place] = axis
    return found


def axis_of(channel: Channel, places: Mapping[str, str]) -> str:
    """The axis with which a channel is shown: its own, else that of its place, else the input's."""
    return own_axis(channel) or places.get(channel.place, STEP_DOMAIN)


def lengths_of(capture: Capture, frame: int = -1) -> dict[str, int]:
    """Every axis of a frame that the cursor walks along, the input's and the answer's first, and its number of steps.

    That is the length of the longest channel over it: a run that goes on has fewer than its description says.
    """
    lengths: dict[str, int] = {}
    for channel in capture.channels.values():
        for dim in COUNTED:
            if dim in channel.dims:
                axis, length = channel.domain(dim), capture.extent(channel.name, frame)[channel.dims.index(dim)]
                lengths[axis] = max(lengths.get(axis, 0), length)
    order = (STEP_DOMAIN, ANSWER_DOMAIN, *capture.axes, *lengths)
    return {axis: lengths[axis] for axis in dict.fromkeys(order) if axis in lengths}


def words_of(capture: Capture, frame: int = -1) -> dict[str, str]:
    """A short word for every axis: "input", "answer", "layer"; the whole name where two would be called the same."""
    titles = {axis: capture.axis(axis, frame).title for axis in lengths_of(capture, frame)}
    short = {axis: SHORT.get(axis, title.removesuffix(" step")) for axis, title in titles.items()}
    words = list(short.values())
    return {axis: word if words.count(word) == 1 else axis for axis, word in short.items()}
