"""Spike: of an iteration of a training that was run again, which sample, which loss step and which source step made its
gradient, and what moved first before it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyqtgraph as pg

from inspector.analysis.spike_origin import (
    KIND,
    SAMPLES,
    STATISTICS,
    STEPS,
    check_sentence,
    origin_verdict,
    read_origin,
)
from inspector.gui.panel.base import Panel, measured
from inspector.gui.panel.exact import exact
from inspector.gui.panel.registry import PANELS
from inspector.gui.state.cursor import Position
from inspector.gui.widgets.plots.stepplot import StepPlot
from inspector.gui.widgets.theme import Theme
from inspector.gui.widgets.wrapped_text import WrappedText
from inspector.records import Channel

Array = npt.NDArray[Any]
MOST_MOVES = 12
OF_SAMPLE, OF_STEP, OF_SOURCE = "share of each sample", "share of each loss step", "part of each source step"


@PANELS.register("spike")
class Spike(Panel):
    """Channels of kind "spike": (statistic, sequence) and (statistic, step), with the map by source step beside it."""

    tab_order = 175
    menu_group = "training"
    key, title = "spike", "Spike"
    hint = (
        "Which sample, which loss step and which source step made the gradient of an iteration, and what moved first "
        "before it. A double-click on a spike in the timeline of a watched training runs its iteration again."
    )
    by_steps = False
    needs_height = 420

    @classmethod
    def accepts(cls, channel: Channel) -> bool:
        """Parts of a gradient by sample and by step of the loss."""
        return channel.kind == KIND and channel.dims in (("statistic", "sequence"), ("statistic", "step"))

    def build(self) -> None:
        """The sentences, then a plot of bars each for samples, loss steps and source steps."""
        self.told, self.chronology = WrappedText(self.theme), WrappedText(self.theme, muted=True)
        self.samples = StepPlot(None, self.theme, label="share", bottom="sample")
        self.of_steps = StepPlot(self.steps, self.theme, label="share")
        self.sources = StepPlot(self.steps, self.theme, label="part of the norms")
        self.bars = [pg.BarGraphItem(x=[], height=[], width=0.8) for _ in range(3)]
        self.plots = [self.samples, self.of_steps, self.sources]
        self.figure.addItem(self.told, row=0, col=0)
        for row, (plot, bars) in enumerate(zip(self.plots, self.bars, strict=True), 1):
            plot.addItem(bars)
            self.figure.addItem(plot, row=row, col=0)
        self.figure.addItem(self.chronology, row=4, col=0)

    def refresh(self, changed: frozenset[str]) -> None:
        """Also when a map by source step, which another panel shows, has come."""
        capture = self.capture
        maps = [name for name in changed if capture is not None and name in capture.channels
                and capture.channels[name].kind == "bptt"]  # fmt: skip
        if maps and self.isVisibleTo(self.window()):
            self.redraw()
        else:
            super().refresh(changed)

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        for text in (self.told, self.chronology):
            text.theme = theme
            text.update()
        for number, bars in enumerate(self.bars):
            bars.setOpts(brush=theme.series[number], pen=None)
        super().set_theme(theme)

    def update_contents(self) -> None:
        """Everything of the frame that is shown."""
        assert self.capture is not None
        self.origin = read_origin(self.capture, self.frame)
        parts = self.origin.sources
        whole = float(np.nansum(parts)) if parts is not None else 0.0
        self.shares = (self.origin.samples, self.origin.steps, None if parts is None or not whole else parts / whole)
        titles = (OF_SAMPLE, f"{OF_STEP}, of sample {self.origin.sample}", OF_SOURCE)
        for plot, bars, values, title in zip(self.plots, self.bars, self.shares, titles, strict=True):
            plot.setVisible(values is not None)
            shown = np.zeros(0) if values is None else values
            known = np.flatnonzero(np.isfinite(shown))
            bars.setOpts(x=known, height=shown[known])
            plot.set_title(title)
        count = 0 if self.origin.samples is None else len(self.origin.samples)
        self.samples.vb.setXRange(-0.7, max(count, 1) - 0.3, padding=0)
        for plot in self.plots[1:]:
            plot.step_axis.set_names(self.step_names())
        self._say()

    def _say(self) -> None:
        assert self.capture is not None
        about = self.capture.start.meta.get("spike")
        about = about if isinstance(about, dict) else {}
        lead = f"Iteration {about.get('iteration')}: " if "iteration" in about else ""
        lines = [f"{lead}{origin_verdict(self.origin).sentence}", check_sentence(self.origin.check)]
        self.told.set_text("\n".join(f"{line[:1].upper()}{line[1:]}." for line in lines))
        told = about.get("chronology")
        moves = [str(one) for one in about.get("moves", ())][:MOST_MOVES]
        evidence = f"\nIn order: {'; '.join(moves)}." if len(moves) > 1 else ""
        said = f"Chronology: {told}.{evidence}\n{about.get('wrong')}." if told else ""
        self.chronology.set_text(said)

    def pointed(self, plot: Any, x: float, y: float) -> None:
        """The cursor goes to a step; a sample is marked."""
        if plot is self.samples:
            count = 0 if self.origin.samples is None else len(self.origin.samples)
            if 0 <= round(x) < count:
                self.marked.set(plot, round(x))
                plot.show_cursor(round(x))
        else:
            self.looking.move(step=round(x))

    def readout(self, position: Position) -> list[tuple[str, str]]:
        """The parts at the cursor's step, and of the sample that is marked."""
        if self.state != "figure" or self.capture is None:
            return []
        rows = []
        sample = self.marked.at(self.samples, 0 if self.shares[0] is None else len(self.shares[0]))
        for name, at, word in ((SAMPLES, sample, "sample"), (STEPS, position.step, "loss step")):
            if name in self.capture.channels and at is not None:
                channel = self.capture.channels[name]
                if at < self.capture.extent(name, self.frame)[1]:
                    column = exact(self.capture, name, self.frame, (slice(None), slice(at, at + 1)))[:, 0]
                    rows += [
                        (
                            f"{what} of the {word} [{at}]",
                            measured(column[n], channel.unit if what != "share" else "1"),
                        )
                        for n, what in enumerate(STATISTICS)
                    ]
        return rows

    def data(self) -> dict[str, Array]:
        """The tables, and the parts by source step."""
        assert self.capture is not None
        found = {channel.name: self.capture.array(channel.name, self.frame) for channel in self.channels()}
        return found if self.shares[2] is None else {**found, "spike:sources": self.shares[2]}
