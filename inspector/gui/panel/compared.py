"""Texts that say which of two runs numbers and figures belong to: a saved difference never looks like values."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from inspector.capture import Difference
from inspector.gui.panel.base import Panel

Array = npt.NDArray[Any]
DIFFERENCE, RATIO, DERIVED = "difference", "ratio", "of_difference"
"""Second minus first, or second divided by first, as each channel declares; and results found in a difference."""
LABEL = 60
"""Letters of a frame's label that are shown."""


def meaning(source: Difference, name: str) -> str:
    """The meaning of the numbers of a name: those of a channel, or of a part of one ("attn:attention head 3")."""
    known = [channel for channel in source.capture.channels.values() if name.startswith(channel.name)]
    if not known:
        return DERIVED
    return max(known, key=lambda channel: len(channel.name)).compare


def named_data(panel: Panel, found: dict[str, Array]) -> dict[str, Array]:
    """The values that a panel shows (`found`), by names that contain the runs where the capture has two."""
    source = panel.source
    if not isinstance(source, Difference):
        return found
    if not panel.differs:
        return {f"{name}:frame_{panel.frame}": array for name, array in found.items()}
    names = {}
    for name, array in found.items():
        what = meaning(source, name)
        sign = "by" if what == RATIO else "minus"
        names[f"{name}:{what}_frame_{source.second}_{sign}_frame_{source.first}"] = array
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
    if not isinstance(source, Difference):
        return ""
    if not panel.differs:
        return _frame(source, panel.frame)
    first, second = _frame(source, source.first), _frame(source, source.second)
    title = number_title(panel)
    return {RATIO: f"ratio: {second} / {first}", DIFFERENCE: f"difference: {second} − {first}"}.get(
        title, f"{second} against {first}: differences and ratios"
    )


def compared_runs_short(panel: Panel) -> str:
    """The same in a few letters, for a heading."""
    source = panel.source
    if not isinstance(source, Difference):
        return ""
    return f"frame {source.second} against {source.first}" if panel.differs else f"frame {panel.frame}"


def for_file(panel: Panel) -> str:
    """The same as a part of a file's name, with a hyphen before it."""
    source = panel.source
    if not isinstance(source, Difference):
        return ""
    kind = number_title(panel).replace(" ", "-")
    kind = DIFFERENCE if kind == "value" else kind
    return f"-{kind}-of-frames-{source.second}-and-{source.first}" if panel.differs else f"-frame-{panel.frame}"


def _frame(source: Difference, index: int) -> str:
    label = next((frame.label for frame in source.capture.frames if frame.index == index), "")
    return f"frame {index}" + (f" ({label[:LABEL]})" if label else "")
