"""The step axes of a capture: their lengths, their names, and the channels along each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import is_

from inspector.capture import Capture
from inspector.records import ANSWER_DOMAIN, STEP_DOMAIN, Channel

WALKED = ("step", "query")
"""Dims along which the cursor moves; keys and sources are selected from them."""
COUNTED = (*WALKED, "iteration", "sequence")
"""Dims that have a cursor. Iterations and the sequences of a data set have no strip: no part of the model runs over
them; only their panels move along them."""
SHORT = {STEP_DOMAIN: "input", ANSWER_DOMAIN: "answer"}
ATTENTION = "attention"
"""The kind of maps, with which the kinds of what is known of their heads begin."""
ROWS = "attention/rows"
"""Signal of the rows of attention of a decoder that runs: the first of them, along an axis of their own."""


def without_passing(channels: Iterable[Channel]) -> list[Channel]:
    """All but rows that came while a decoder ran, where the map of their place is there: the map has every row."""
    found = list(channels)
    whole = {one.place for one in found if one.kind == "attention" and one.signal != ROWS}
    return [one for one in found if one.signal != ROWS or one.place not in whole]


def own_axis(channel: Channel) -> str:
    """The axis that a channel lies along by its own dims; "" where it has no steps."""
    for dim in WALKED:  # asked for of every channel at every drawing
        if dim in channel.dims:
            return channel.domain(dim)
    return ""


def places_along(capture: Capture) -> Mapping[str, str]:
    """Place → the axis of its channels, so that a channel without steps (a mean over all of them) is shown with them.

    Where a place has several, the one that is not the input's. A number of heads is shown with their map, which may lie
    along another axis than a recurrence of the same module: `place:attention` → the axis of the map.
    """
    channels = tuple(capture.channels.values())
    for known, places in _PLACES:
        if len(known) == len(channels) and all(map(is_, known, channels)):
            return places
    found = _places_of(channels)
    _PLACES[:] = [(channels, found), *_PLACES[: KEPT - 1]]
    return found


KEPT = 4
"""Of how many captures the places are kept: two beside each other are asked in turns."""
_PLACES: list[tuple[tuple[Channel, ...], Mapping[str, str]]] = []
"""Channels, and their places along axes: every panel and every tab asks, many times for one drawing."""


def _places_of(channels: Iterable[Channel]) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for channel in without_passing(channels):
        axis = own_axis(channel)
        if axis:
            place = channel.place
            if found.get(place, STEP_DOMAIN) == STEP_DOMAIN:
                found[place] = axis
            if channel.kind == ATTENTION:
                found[f"{place}:{ATTENTION}"] = axis
    return found


def axis_of(channel: Channel, places: Mapping[str, str]) -> str:
    """The axis with which a channel is shown: its own, else that of its place, else the input's."""
    along = own_axis(channel)
    if not along and channel.kind.startswith(ATTENTION):
        along = places.get(f"{channel.place}:{ATTENTION}", "")
    return along or places.get(channel.place, STEP_DOMAIN)


def lengths_of(capture: Capture, frame: int = -1) -> dict[str, int]:
    """Every axis of a frame along which the cursor moves, the input's and the output's first, and its number of steps.

    That is the length of the longest channel over it: a run in progress has fewer than its description says.
    """
    lengths: dict[str, int] = {}
    for channel in without_passing(capture.channels.values()):
        for dim in COUNTED:
            if dim in channel.dims:
                axis, length = channel.domain(dim), capture.extent(channel.name, frame)[channel.dims.index(dim)]
                lengths[axis] = max(lengths.get(axis, 0), length)
    order = (STEP_DOMAIN, ANSWER_DOMAIN, *capture.axes, *lengths)
    return {axis: lengths[axis] for axis in dict.fromkeys(order) if axis in lengths}


def axis_names(capture: Capture, frame: int = -1) -> dict[str, str]:
    """A short name for every axis: "input", "answer", "layer"; the full name where two would have the same."""
    titles = {axis: capture.axis(axis, frame).title for axis in lengths_of(capture, frame)}
    short = {axis: SHORT.get(axis, title.removesuffix(" step")) for axis, title in titles.items()}
    words = list(short.values())
    return {axis: word if words.count(word) == 1 else axis for axis, word in short.items()}
