"""What a panel shows at one frame, over training: one number of each of its channels for every frame."""

from __future__ import annotations

import time
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtWidgets import QCheckBox, QComboBox, QDoubleSpinBox, QHBoxLayout, QVBoxLayout, QWidget

from inspector.capture import Capture, summaries_of
from inspector.capture.over_frames import SHARE, iterations_of, one_frame, unit_of
from inspector.gui.panel.figure import Figure, Report, scrolled
from inspector.gui.panel.plot_column import PlotColumn, Plotted
from inspector.gui.panel.pointing import Pointing
from inspector.gui.widgets.controls import caption, chooser, measured, set_options
from inspector.gui.widgets.long_series import LongSeries
from inspector.gui.widgets.plain_text import tooltip
from inspector.gui.widgets.series_plot import Series
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
    frame: int
    theme: Theme
    needs_height: int

    def channels(self) -> list[Channel]:
        """What it shows."""


class Line:
    """The numbers of one channel so far, by frame."""

    def __init__(self, name: str, summary: str, threshold: float) -> None:
        self.name, self.summary, self.threshold = name, summary, threshold
        self.names: tuple[str, ...] = ()
        self._rows: dict[int, tuple[int, Array]] = {}
        """By frame: the revision that was read, and its numbers."""

    def update(self, capture: Capture, end: float) -> bool:
        """Read frames that are new or have changed, until a time; returns whether all were read."""
        for frame in capture.frames:
            revision = capture.revision(self.name, frame.index)
            if not revision or self._rows.get(frame.index, (0,))[0] == revision:
                continue
            if time.monotonic() > end:
                return False
            names, values = one_frame(capture, self.name, frame.index, self.summary, self.threshold)
            self._rows[frame.index] = (revision, values)
            self.names = max(self.names, names, key=len)
        return True

    def points(self, capture: Capture) -> tuple[Array, Array, str]:
        """(iterations (f,), values (f, curves), what the axis counts)."""
        present = [frame for frame in capture.frames if frame.index in self._rows]
        values = np.full((len(present), len(self.names)), np.nan)
        for n, frame in enumerate(present):
            row = self._rows[frame.index][1]
            values[n, : len(row)] = row
        numbers, word = iterations_of(tuple(capture.frames), present)
        return numbers, values, word

    def at(self, frame: int) -> Array | None:
        """The numbers of a frame."""
        found = self._rows.get(frame)
        return None if found is None else found[1]


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
        pointing = Pointing(self.figure)
        pointing.clicked.connect(self._clicked)
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
        self._lines: dict[tuple[str, str, float], Line] = {}
        self._plots: list[tuple[Channel, Line]] = []
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

    def offer(self, capture: Any, channels: list[Channel]) -> None:
        """The switch is there where the capture has several frames and something can be summarised."""
        several = isinstance(capture, Capture) and len(capture.frames) > 1
        possible = several and any(summaries_of(channel) for channel in channels)
        self.switch.setVisible(possible)
        if not possible and self.on:
            self.switch.setChecked(False)

    def forget(self) -> None:
        """Another capture."""
        self._lines.clear()
        self._plots = []
        self.column.zoomed = None

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self.figure.setBackground(theme.window)
        self.column.set_theme(theme)

    # -- drawing

    def draw(self) -> None:
        """One plot for each sort of channel, a line for each of them."""
        capture = self.panel.capture
        assert capture is not None
        channels = [channel for channel in self.panel.channels() if summaries_of(channel)]
        set_options(self.summary, [FIRST, *dict.fromkeys(s for channel in channels for s in summaries_of(channel))])
        self.threshold.setVisible(self.summary.currentText() == SHARE)
        end, complete = time.monotonic() + SECONDS, True
        self._plots = []
        for channel in channels:
            line = self._line(channel)
            if line is not None:
                complete &= line.update(capture, end)
                self._plots.append((channel, line))
        word = self._draw(capture)
        self.figure.setMinimumHeight(max(self.panel.needs_height, self.column.height))
        self.column.mark(self._place(capture, word))
        if not complete:
            self._again.start()

    def _line(self, channel: Channel) -> Line | None:
        known, wanted = summaries_of(channel), self.summary.currentText()
        if wanted != FIRST and wanted not in known:
            return None
        summary = known[0] if wanted == FIRST else wanted
        key = (channel.name, summary, self.threshold.value() if summary == SHARE else 0.0)
        return self._lines.setdefault(key, Line(*key))

    def _draw(self, capture: Capture) -> str:
        """Draw what was read; returns what the axis counts."""
        groups: dict[tuple[str, str], list[tuple[Channel, Line]]] = {}
        for channel, line in self._plots:
            groups.setdefault((channel.signal, line.summary), []).append((channel, line))
        plots, word = [], "iteration"
        for (_, summary), own in list(groups.items())[:MOST_PLOTS]:
            series: list[Series] = []
            for channel, line in own:
                if not line.names:  # none of its frames was read yet
                    continue
                x, values, word = line.points(capture)
                for n, name in enumerate(line.names):
                    at = len(series)
                    label = f"{channel.place} {name}".strip() if name else channel.place
                    dashed = at >= len(self.panel.theme.series)
                    series.append(Series(label, LongSeries.of(x, values[:, n]), at, dashed))
            first = own[0][0]
            if series:
                plots.append(Plotted(f"{first.title}: {_words(own[0][1])}", unit_of(first, summary), tuple(series)))
        self.column.draw(plots, word)
        return word

    def _place(self, capture: Capture, word: str) -> float | None:
        frame = self.panel.frame
        index = frame if frame >= 0 else capture.frames[-1].index
        found = next((one for one in capture.frames if one.index == index), None)
        if found is None:
            return None
        return float(found.index if word == "frame" else found.step or 0)

    def _clicked(self, _plot: Any, x: float, _y: float) -> None:
        """The nearest frame is shown."""
        capture = self.panel.capture
        if capture is None or not self._plots:
            return
        present = list(capture.frames)
        numbers, _ = iterations_of(tuple(present), present)
        self.framed.emit(present[int(np.argmin(np.abs(numbers - x)))].index)

    # -- numbers

    def readout(self) -> list[tuple[str, str]]:
        """Every line at the frame that is shown."""
        capture, rows = self.panel.capture, []
        assert capture is not None
        frame = self.panel.frame if self.panel.frame >= 0 else capture.frames[-1].index
        for channel, line in self._plots:
            values = line.at(frame)
            for n, name in enumerate(line.names if values is not None else ()):
                what = f"{channel.title}, {_words(line)}  {channel.place} {name}".rstrip()
                assert values is not None
                if n < len(values):
                    rows.append((what, measured(values[n], unit_of(channel, line.summary))))
        return rows

    def data(self) -> dict[str, Array]:
        """The summaries by name, (frame, curve), and the iterations of the frames."""
        capture, found = self.panel.capture, {}
        assert capture is not None
        for channel, line in self._plots:
            x, values, word = line.points(capture)
            found[f"{channel.name}:{_words(line).replace(' ', '_')}"] = values[:, 0] if line.names == ("",) else values
            found[f"{channel.name}:{word}"] = x
        return found


def _words(line: Line) -> str:
    """A summary in words: "share above 0.5"."""
    return f"{line.summary} {line.threshold:g}" if line.summary == SHARE else line.summary
