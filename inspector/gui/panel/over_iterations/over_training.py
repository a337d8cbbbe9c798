"""What a panel shows at one frame, over training: one number of each of its channels for every frame."""

from __future__ import annotations

import time
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtWidgets import QCheckBox, QComboBox, QDoubleSpinBox, QHBoxLayout, QVBoxLayout, QWidget

from inspector.capture import Capture, Pair, summaries_of
from inspector.capture.over_frames import SHARE, iterations_of, unit_of
from inspector.gui.panel.figure import Figure, Report, scrolled
from inspector.gui.panel.over_iterations.line_over_frames import LineOverFrames, RunOfFrames, runs_of
from inspector.gui.panel.over_iterations.plot_column import PlotColumn, Plotted
from inspector.gui.panel.pointing import Pointing
from inspector.gui.widgets.charts.long_series import LongSeries
from inspector.gui.widgets.charts.series_plot import Series
from inspector.gui.widgets.controls import caption, chooser, measured, set_options
from inspector.gui.widgets.plain_text import tooltip
from inspector.gui.widgets.theme import Theme
from inspector.records import Channel

Array = npt.NDArray[Any]
FIRST = "by kind"
SECONDS = 0.03
"""Seconds for which frames are read before what there is of them is drawn."""
MOST_PLOTS = 12
EXPLAINED = (
    "Draws one number of each frame over training: what a frame has at many steps is summarised; heads, ranks and "
    "eigenvalues stay lines of their own. A click on a frame shows it."
)


class Shows(Protocol):
    """The parts of a panel that are used here."""

    capture: Capture | None
    source: Any
    frame: int
    theme: Theme
    needs_height: int
    same_model: bool

    def channels(self) -> list[Channel]:
        """What it shows."""


class OverTraining(QObject):
    """A switch and its controls for a panel, and the page that is shown instead of its figure. `changed()`: draw again;
    `framed(index)`: a frame was clicked."""

    changed = Signal()
    framed = Signal(int)

    def __init__(self, panel: Any, report: Report) -> None:
        super().__init__(panel)
        self.panel: Shows = panel
        self.switch = QCheckBox("Over training")
        self.switch.setToolTip(tooltip(EXPLAINED))
        self.switch.toggled.connect(lambda _on: self.changed.emit())
        self.figure = Figure(report)
        self.figure.setAccessibleName(f"Figure of {panel.title} over training")
        self.figure.setFocusProxy(panel)
        pointing = Pointing(self.figure)
        pointing.clicked.connect(self._clicked)
        pointing.doubled.connect(lambda plot: plot.vb.reset() if hasattr(plot, "vb") else None)
        self.column = PlotColumn(self.figure, panel.theme)
        self.summary: QComboBox = chooser([], "How the steps of a frame are summarised")
        self.summary.currentTextChanged.connect(lambda _text: self.changed.emit())
        self.threshold = QDoubleSpinBox()
        self.threshold.setAccessibleName("Threshold of the share")
        self.threshold.setRange(-1e6, 1e6)
        self.threshold.setDecimals(3)
        self.threshold.setSingleStep(0.1)
        self.threshold.setValue(1.0)
        self.threshold.valueChanged.connect(lambda _value: self.changed.emit())
        self.page = self._page()
        self._lines: dict[tuple[str, str, str, float], LineOverFrames] = {}
        self._plots: list[tuple[Channel, LineOverFrames]] = []
        self._of: list[RunOfFrames] = []
        """The runs that were drawn, the shown one last."""
        self._again = QTimer(self, interval=0, singleShot=True)
        self._again.timeout.connect(self.changed)

    def _page(self) -> QWidget:
        row = QHBoxLayout()
        row.setContentsMargins(8, 2, 8, 2)
        row.setSpacing(8)
        row.addWidget(caption("Summary over steps"))
        row.addWidget(self.summary)
        row.addWidget(self.threshold)
        row.addStretch(1)
        page = QWidget()
        column = QVBoxLayout(page)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addLayout(row)
        column.addWidget(scrolled(self.figure, self.panel.needs_height))
        return page

    @property
    def on(self) -> bool:
        """Whether summaries are drawn instead of the figure."""
        return self.switch.isChecked()

    def offer(self, source: Any, channels: list[Channel]) -> None:
        """The switch is there where a run has several moments of training and something can be summarised."""
        several = any(len(run.capture.frames) > 1 and not run.capture.frames[1].edited for run in runs_of(source))
        possible = several and any(summaries_of(channel) for channel in channels)
        self.switch.setVisible(possible)
        if not possible and self.on:
            self.switch.setChecked(False)

    def forget(self) -> None:
        """Another capture; what was read of two that are compared stays while other frames of them are, and what was
        zoomed over another run of the same model."""
        runs = runs_of(self.panel.source)
        if runs != self._of or isinstance(self.panel.source, Capture):
            self._lines.clear()
            self.column.zoomed = self.column.zoomed if self.panel.same_model else None
        self._plots = []

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self.figure.setBackground(theme.window)
        self.column.set_theme(theme)

    # -- drawing

    def draw(self) -> None:
        """One plot for each sort of channel, a line for each of them."""
        self._of = runs_of(self.panel.source)
        names = [channel.name for channel in self.panel.channels() if summaries_of(channel)]
        held = [(run, run.capture.channels[name]) for run in self._of for name in names if name in run.capture.channels]
        set_options(self.summary, [FIRST, *dict.fromkeys(one for _, channel in held for one in summaries_of(channel))])
        self.threshold.setVisible(self.summary.currentText() == SHARE)
        end, complete = time.monotonic() + SECONDS, True
        self._plots = []
        for run, channel in held:
            line = self._line(run, channel)
            if line is not None:
                complete &= line.update(end)
                self._plots.append((channel, line))
        word = self._draw()
        self.figure.setMinimumHeight(max(self.panel.needs_height, self.column.height))
        self.column.mark(self._place(word))
        if not complete:
            self._again.start()

    def _line(self, run: RunOfFrames, channel: Channel) -> LineOverFrames | None:
        known, wanted = summaries_of(channel), self.summary.currentText()
        if wanted != FIRST and wanted not in known:
            return None
        summary = known[0] if wanted == FIRST else wanted
        key = (channel.name, summary, self.threshold.value() if summary == SHARE else 0.0)
        return self._lines.setdefault((run.name, *key), LineOverFrames(run, *key))

    def _draw(self) -> str:
        """Draw what was read; returns what the axis counts."""
        groups: dict[tuple[str, str], list[tuple[Channel, LineOverFrames]]] = {}
        for channel, line in self._plots:
            groups.setdefault((channel.signal, line.summary), []).append((channel, line))
        plots, word = [], "iteration"
        for (_, summary), own in list(groups.items())[:MOST_PLOTS]:
            series: list[Series] = []
            for run in self._of:
                series += self._series([one for one in own if one[1].run == run], first=run is not self._of[-1])
            word = next((line.points()[2] for _, line in own if line.names), word)
            first = own[0][0]
            if series:
                plots.append(Plotted(f"{first.title}: {_words(own[0][1])}", unit_of(first, summary), tuple(series)))
        self.column.draw(plots, word)
        return word

    def _series(self, own: list[tuple[Channel, LineOverFrames]], *, first: bool) -> list[Series]:
        """The lines of one run; the run that is compared with has the colours of the other one, dashed."""
        found: list[Series] = []
        for channel, line in own:
            if not line.names:  # none of its frames was read yet
                continue
            x, values, _ = line.points()
            for n, name in enumerate(line.names):
                what = f"{channel.place} {name}".strip() if name else channel.place
                label = f"{line.run.name}: {what}" if line.run.name else what
                dashed = first or len(found) >= len(self.panel.theme.series)
                found.append(Series(label, LongSeries.of(x, values[:, n]), len(found), dashed))
        return found

    def _shown(self) -> tuple[Capture, int] | None:
        """The run that is shown, and its frame."""
        if not self._of or not self._of[-1].capture.frames:
            return None
        capture = self._of[-1].capture
        return capture, self.panel.frame if self.panel.frame >= 0 else capture.frames[-1].index

    def _place(self, word: str) -> float | None:
        shown = self._shown()
        found = next((one for one in shown[0].frames if one.index == shown[1]), None) if shown is not None else None
        if found is None:
            return None
        return float(found.index if word == "frame" else found.step or 0)

    def _clicked(self, _plot: Any, x: float, _y: float) -> None:
        """The nearest frame is shown; of the run at the left the bar above the panels chooses the frame."""
        shown = self._shown()
        if shown is None or not self._plots or getattr(self.panel.source, "first", False):
            return
        present = list(shown[0].frames)
        numbers, _ = iterations_of(tuple(present), present)
        self.framed.emit(present[int(np.argmin(np.abs(numbers - x)))].index)

    # -- numbers

    def readout(self) -> list[tuple[str, str]]:
        """Every line at the frame that is shown."""
        rows: list[tuple[str, str]] = []
        shown = self._shown()
        for channel, line in self._plots if shown is not None else ():
            assert shown is not None
            values = line.at(self._frame_of(line, *shown))
            whose = f"{line.run.name}: " if line.run.name else ""
            for n, name in enumerate(line.names if values is not None else ()):
                what = f"{whose}{channel.title}, {_words(line)}  {channel.place} {name}".rstrip()
                assert values is not None
                if n < len(values):
                    rows.append((what, measured(values[n], unit_of(channel, line.summary))))
        return rows

    def _frame_of(self, line: LineOverFrames, shown: Capture, frame: int) -> int:
        """The frame of a line's run at the iteration that is shown, or the one that is compared with."""
        if line.run.capture is shown or not isinstance(self.panel.source, Pair):
            return frame
        return int(self.panel.source.first)

    def data(self) -> dict[str, Array]:
        """The summaries by name, (frame, curve), and the iterations of the frames."""
        found = {}
        for channel, line in self._plots:
            x, values, word = line.points()
            whose = f":{line.run.name}" if line.run.name else ""
            only = values[:, 0] if line.names == ("",) else values
            found[f"{channel.name}:{_words(line).replace(' ', '_')}{whose}"] = only
            found[f"{channel.name}:{word}{whose}"] = x
        return found


def _words(line: LineOverFrames) -> str:
    """A summary in words: "share above 0.5"."""
    return f"{line.summary} {line.threshold:g}" if line.summary == SHARE else line.summary
