"""What of a map is at the bound of its non-linearity, where that is known: marked with dots, told as a share of all and
as the count of a step. One for every panel that draws states or gates by step and unit."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from PySide6.QtWidgets import QCheckBox

from inspector.analysis.clipping import percent
from inspector.analysis.saturation import FLAT, GATE_HIGH, GATE_LOW, bounds_of
from inspector.gui.panel.labelled import rows_of
from inspector.gui.widgets.plain_text import tooltip
from inspector.records import UNBOUNDED, Channel, counted

BEYOND = f"beyond ±{FLAT:g}"
Bounds = tuple[float, float]
OF_STATES = (
    f"Dots on cells that are saturated: below −{FLAT:g} or above {FLAT:g}, where tanh passes less than 6 % of a "
    "gradient.\nThe hidden state of nn.RNN and nn.RNNCell with tanh has them; not h and c of an LSTM or GRU, which are "
    "products and sums, and not a state of ReLU. A state of a cell written by hand has them where each entry is "
    "the result of a tanh at every step. The difference of two runs has none"
)
OF_GATES = (
    f"Dots on cells that are saturated: a gate below {GATE_LOW:g} or above {GATE_HIGH:g}, where a sigmoid passes less "
    f"than 36 % of what it passes at 0.5; a candidate below −{FLAT:g} or above {FLAT:g}, where tanh passes less than "
    "6 %.\nA value without bounds has none, nor has the difference of two runs"
)


class SaturatedMarks:
    """The dots of one panel: the switch, what it marks, and what is said of it."""

    def __init__(self, panel: Any, tip: str, changed: Callable[[], None]) -> None:
        self._panel, self._tip = panel, tip
        self.switch = QCheckBox("Saturated")
        self.switch.setAccessibleName("Mark what is saturated")
        self.switch.setToolTip(tooltip(tip))
        self.switch.setChecked(True)
        self.switch.toggled.connect(changed)

    def offer(self, channels: Iterable[Channel]) -> None:
        """The switch can be used where one of what is drawn has a bound; else it says why none has, where that is
        known."""
        drawn, panel = list(channels), self._panel
        some = any(self.bounds(channel) is not None for channel in drawn)
        reasons = () if some else (_why_none(panel.capture, channel, panel.frame) for channel in drawn)
        self.switch.setEnabled(some)
        self.switch.setToolTip(tooltip(next(filter(None, reasons), self._tip)))

    def bounds(self, channel: Channel) -> Bounds | None:
        """(low, high) beyond which values are saturated. None where they have no such bound, which is where no
        saturation was computed, and of a difference."""
        panel = self._panel
        if panel.differs or not _is_counted(panel.capture, channel, panel.frame):
            return None
        return bounds_of(channel.signal)

    def drawn(self, channel: Channel) -> Bounds | None:
        """Beyond which values there are dots: none where they are switched off, and where nothing is saturated nothing
        is explained."""
        bounds = self.bounds(channel) if self.switch.isChecked() else None
        return None if bounds is None or self._share(channel) == 0 else bounds

    def in_title(self, channel: Channel, where: str = "") -> str:
        """The share of all steps, units and sequences that is saturated, for the end of a title; "" where unknown.
        `where` says what that is, where the title has room."""
        share = self._share(channel) if self.bounds(channel) is not None else np.nan
        return f"; {percent(share)} saturated{where and f' ({where})'}" if np.isfinite(share) else ""

    def at_step(self, channel: Channel, step: int) -> str:
        """How many units are saturated at a step; "" where that has no meaning."""
        bounds, panel = self.bounds(channel), self._panel
        if bounds is None:
            return ""
        values = panel.capture.block(channel.name, panel.frame, (slice(step, step + 1), slice(None)))
        low, high = bounds
        whole = np.asarray(values).reshape(-1)
        if not np.isfinite(whole).any():
            return ""
        many = int(np.sum(np.isfinite(whole) & ((whole < low) | (whole > high))))
        return f"{many} of {counted(whole.size, 'unit')}"

    def _share(self, channel: Channel) -> float:
        name, panel = f"{channel.name}/saturation", self._panel
        found = rows_of(panel.capture.channels[name], panel.capture.array(name, panel.frame), "left", "right")
        return float(np.mean(np.add(*found)))


def _is_counted(capture: Any, channel: Channel, frame: int) -> bool:
    name = f"{channel.name}/saturation"
    return name in capture.channels and bool(capture.revision(name, frame))


def _why_none(capture: Any, channel: Channel, frame: int) -> str:
    """Why a state that is written by hand has no such bound; "" where that is not known."""
    domain = UNBOUNDED + channel.name
    told = capture.labels(domain, frame) if domain in capture.label_domains else ()
    return f"{channel.signal} has no bound by which it would be saturated: {told[0]}." if told else ""
