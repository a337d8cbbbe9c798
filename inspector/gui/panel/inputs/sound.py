"""A recording over the steps that were made of it: the extremes of its samples at each pixel."""

from __future__ import annotations

from typing import Any

import numpy as np

from inspector.gui.panel.labelled import scalar_of
from inspector.gui.state.step_range import StepRange
from inspector.gui.widgets.plots.stepplot import POINTS, StepPlot, curve, decimated
from inspector.gui.widgets.theme import Theme
from inspector.records import Channel


class Sound:
    """The waveform in a plot over steps, as if the steps were spread evenly over the recording.

    Counter-example: frames that leave out the end of a recording that does not fill one are shifted by less than one.
    """

    def __init__(self, steps: Any, theme: Theme) -> None:
        self.steps: StepRange = steps
        self.plot = StepPlot(steps, theme, label="sound")
        self.line = curve(theme, 0, width=1.0)
        self.plot.addItem(self.line)
        self._shown: tuple[Any, str, int, int] | None = None

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self.line.setPen(theme.series[0], width=1.0)

    def show(self, capture: Any, channel: Channel, frame: int, steps: int) -> None:
        """Another recording, over so many steps."""
        self._shown = (capture, channel.name, frame, max(1, steps))
        samples = capture.extent(channel.name, frame)[0]
        rate = scalar_of(capture, f"{channel.name}/rate", channel.name, frame)
        told = f", {samples / rate:.3g} s at {rate:,.0f} Hz" if rate > 0 else ""
        self.plot.set_title(f"waveform{told}, spread evenly over the steps")
        self.plot.getAxis("bottom").setStyle(showValues=False)
        self.plot.getAxis("bottom").showLabel(False)
        low, high = capture.overview(channel.name, frame, size=(1,))
        reach = float(np.nanmax(np.abs(np.concatenate((low, high, [1e-9])))))
        self.plot.vb.setYRange(-1.05 * reach, 1.05 * reach, padding=0)
        self.draw()

    def draw(self) -> None:
        """The part in view."""
        if self._shown is None:
            return
        capture, name, frame, steps = self._shown
        samples = capture.extent(name, frame)[0]
        each = samples / steps
        low, high = self.steps.bounds
        first = max(0, int((low + 0.5) * each))
        stop = min(samples, int((high + 0.5) * each) + 1)
        if stop <= first:
            self.line.setData([], [])
            return
        least, most = capture.overview(name, frame, region=(slice(first, stop),), size=(POINTS // 2,))
        x, y = decimated(least, most, float(first), (stop - first) / max(1, len(least)))
        self.line.setData((x + 0.5) / each - 0.5, y)
