"""Comparisons of two runs on an axis: differences about 0, ratios about 1 (whose logarithm is 0), as each channel
declares."""

from __future__ import annotations

from collections.abc import Sequence

from inspector.gui.widgets.images.quantise import CENTRED
from inspector.records import Channel

RATIO, DIFFERENCE = "ratio, ×", "difference"
"""Labels of the axis of ratios, or of differences, of two runs; short, since plots may be low."""

LEAST = 0.005
"""Decades to both sides of a ratio of 1 that are shown at least, 1.2 %: rounding alone should look like 1."""


def is_centred(channels: Sequence[Channel]) -> bool:
    """Whether all of them have a centre, 0 or for ratios 1."""
    return bool(channels) and all(channel.scale in CENTRED for channel in channels)


def label_of(channels: Sequence[Channel], label: str) -> str:
    """The axis label of some channels: a ratio where all are ratios of two runs, else the label for one run."""
    return RATIO if channels and all(channel.scale == "ratio" for channel in channels) else label


def about_zero(low: float, high: float, least: float = 0.0) -> tuple[float, float]:
    """The smallest range that contains both, has 0 in its middle, and extends at least that far to both sides."""
    reach = max(abs(low), abs(high), least)
    return -reach, reach
