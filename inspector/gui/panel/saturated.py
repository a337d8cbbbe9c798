"""What of a state is at the bound of its non-linearity, where that is known: the share of all, and that of a step."""

from __future__ import annotations

from typing import Any

import numpy as np
from PySide6.QtWidgets import QCheckBox

from inspector.analysis.clipping import percent
from inspector.analysis.saturation import FLAT, bounds_of
from inspector.gui.panel.labelled import rows_of
from inspector.gui.widgets.plain_text import tooltip
from inspector.records import UNBOUNDED, Channel, counted

TIP = (
    f"Dots on cells whose value is saturated: beyond ±{FLAT:g} where the state is a tanh, which passes less than 6 % "
    "of a gradient there. States without such a bound have none"
)


def switch() -> QCheckBox:
    """Whether they are marked; on."""
    box = QCheckBox("Saturated")
    box.setAccessibleName("Mark what is saturated")
    box.setToolTip(TIP)
    box.setChecked(True)
    return box


def bounds_in(capture: Any, channel: Channel, frame: int) -> tuple[float, float] | None:
    """(low, high) beyond which the values of a state are saturated; None where it has no such bound, which is where no
    saturation of it was computed."""
    name = f"{channel.name}/saturation"
    there = name in capture.channels and capture.revision(name, frame)
    return bounds_of(channel.signal) if there else None


def why_none(capture: Any, channel: Channel, frame: int) -> str:
    """Why a state that is written by hand has no such bound, where that is known; else what the switch does."""
    domain = UNBOUNDED + channel.name
    told = capture.labels(domain, frame) if domain in capture.label_domains else ()
    return tooltip(f"{channel.signal} has no bound by which it would be saturated: {told[0]}." if told else TIP)


def some(capture: Any, channel: Channel, frame: int) -> bool:
    """Whether anything may be saturated: where nothing is, nothing is marked and explained."""
    return _share(capture, channel, frame) != 0


def _share(capture: Any, channel: Channel, frame: int) -> float:
    name = f"{channel.name}/saturation"
    found = rows_of(capture.channels[name], capture.array(name, frame), "left", "right")
    return float(np.mean(np.add(*found)))


def share_in_words(capture: Any, channel: Channel, frame: int) -> str:
    """The share of all steps and units that is saturated; "" where that is not known."""
    share = _share(capture, channel, frame)
    return f"{percent(share)} saturated (beyond ±{FLAT:g})" if np.isfinite(share) else ""


def step_in_words(capture: Any, channel: Channel, frame: int, step: int, bounds: tuple[float, float]) -> str:
    """How many units are saturated at a step."""
    values = np.asarray(capture.block(channel.name, frame, (slice(step, step + 1), slice(None)))).reshape(-1)
    low, high = bounds
    many = int(np.sum(np.isfinite(values) & ((values < low) | (values > high))))
    return f"{many} of {counted(values.size, 'unit')}"
