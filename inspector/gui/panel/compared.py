"""Texts that say which of two runs numbers and figures belong to: a saved difference never looks like values."""

from __future__ import annotations

import re
from typing import Any

import numpy.typing as npt

from inspector.capture import Pair, Side
from inspector.gui.panel.base import Panel

Array = npt.NDArray[Any]
DIFFERENCE, RATIO, DERIVED = "difference", "ratio", "of_difference"
"""Second minus first, or second divided by first, as each channel declares; and results found in a difference."""
LABEL = 60
"""Letters of a frame's label that are shown."""


def meaning(source: Pair, name: str) -> str:
    """The meaning of the numbers of a name: those of a channel, or of a part of one ("attn:attention head 3")."""
    known = [channel for channel in source.capture.channels.values() if name.startswith(channel.name)]
    if not known:
        return DERIVED
    return str(max(known, key=lambda channel: len(channel.name)).compare)


def named_data(panel: Panel, found: dict[str, Array]) -> dict[str, Array]:
    """The values that a panel shows (`found`), by names that contain the runs where the capture has two."""
    source = panel.source
    if isinstance(source, Side):
        return {f"{name}:{_in_file(source.reference.name)}": array for name, array in found.items()}
    if not isinstance(source, Pair):
        return found
    if not panel.differs:
        return {f"{name}:{_in_file(_name(source, panel.side))}": array for name, array in found.items()}
    names = {}
    for name, array in found.items():
        what = meaning(source, name)
        sign = "by" if what == RATIO else "minus"
        first, second = (_in_file(_name(source, side)) for side in (0, 1))
        names[f"{name}:{what}_{second}_{sign}_{first}"] = array
    return names


def number_title(panel: Panel) -> str:
    """The heading of a column with all numbers of a panel: "value", or which runs they compare."""
    if not panel.differs:
        return "value"
    kinds = {meaning(panel.source, name) for name in panel.data()} - {DERIVED}
    return " or ".join(sorted(kinds)) or "value"


def compared_runs(panel: Panel) -> str:
    """Which runs a panel shows, for a title or a caption; "" where there is only one."""
    source = panel.source
    if isinstance(source, Side):
        return source.reference.name
    if not isinstance(source, Pair):
        return ""
    if not panel.differs:
        return _labelled(source, panel.side)
    first, second = _labelled(source, 0), _labelled(source, 1)
    title = number_title(panel)
    return {RATIO: f"ratio: {second} / {first}", DIFFERENCE: f"difference: {second} − {first}"}.get(
        title, f"{second} against {first}: differences and ratios"
    )


def compared_runs_short(panel: Panel) -> str:
    """The same in a few letters, for a heading."""
    source = panel.source
    if isinstance(source, Side):
        return source.reference.name
    if not isinstance(source, Pair):
        return ""
    if not panel.differs:
        return _name(source, panel.side)
    return f"{_name(source, 1)} against {_name(source, 0).removeprefix('frame ')}"


def for_file(panel: Panel) -> str:
    """The same as a part of a file's name, with a hyphen before it."""
    source = panel.source
    if isinstance(source, Side):
        return f"-{_in_file(source.reference.name, '-')}"
    if not isinstance(source, Pair):
        return ""
    kind = number_title(panel).replace(" ", "-")
    kind = DIFFERENCE if kind == "value" else kind
    first, second = (_in_file(_name(source, side), "-") for side in (0, 1))
    if not panel.differs:
        return f"-{second if panel.side else first}"
    if source.one_capture:
        return f"-{kind}-of-frames-{source.second}-and-{source.first}"
    return f"-{kind}-of-{second}-and-{first}"


def _name(source: Pair, side: int) -> str:
    """What a side (0: the first, 1: the second) is called."""
    return f"frame {(source.first, source.second)[side]}" if source.one_capture else source.sides[side].name


def _labelled(source: Pair, side: int) -> str:
    frames = getattr(source.sides[side].view, "frames", ())
    label = next((frame.label for frame in frames if frame.index == source.sides[side].frame), "")
    return _name(source, side) + (f" ({label[:LABEL]})" if label else "")


def _in_file(name: str, between: str = "_") -> str:
    """A name of letters, digits, dots and hyphens."""
    return re.sub(r"[^\w.-]+", between, name)
