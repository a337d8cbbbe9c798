"""Several runs on one axis: one of them as the baseline, the others as they are or against it, and their settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QAbstractItemView, QComboBox, QHeaderView, QTableWidget, QTableWidgetItem, QWidget

from inspector.capture import Curve
from inspector.capture.comparing.together import differing_settings, settings_of
from inspector.gui.panel.channel_choice import offer
from inspector.gui.panel.over_iterations.curve_plots import Group
from inspector.gui.panel.over_iterations.plot_column import Plotted
from inspector.gui.widgets.charts.long_series import LongSeries
from inspector.gui.widgets.charts.series_plot import Series
from inspector.gui.widgets.plain_text import clean, tooltip
from inspector.gui.widgets.tables.sorted_cell import SortedCell

VALUES, DIFFERENCE, RATIO = "values", "difference", "ratio"
WAYS = {VALUES: "values", DIFFERENCE: "difference to it", RATIO: "ratio to it"}
LONGEST = 60
ROW_HEIGHT, MOST_HEIGHT, LEAST_WIDTH = 22, 150, 90
RUN, LOSS = "run", "last loss"


class Baseline:
    """The two choices of a panel; hidden while fewer than two runs are shown."""

    def __init__(self, add: Callable[[str, str], QComboBox], added: Callable[[], list[QWidget]]) -> None:
        self.run = add("Baseline", "The run that others are seen against")
        self.widgets = added()
        self.way = add("as", "How the other runs are drawn")
        self.widgets += added()
        offer(self.way, WAYS)

    def offer(self, curves: Sequence[Curve]) -> None:
        """Offer the runs of these curves."""
        runs = list(dict.fromkeys(curve.run for curve in curves if curve.run))
        offer(self.run, {"": "none", **{run: clean(run) for run in runs}})
        for widget in self.widgets:
            widget.setVisible(len(runs) > 1)
        self.way.setEnabled(bool(self.chosen))

    @property
    def chosen(self) -> str:
        """The run; "" for none."""
        return str(self.run.currentData() or "")

    def plotted(self, group: Group, series: Sequence[Series]) -> Plotted:
        """A plot of several runs, with the baseline emphasised, or with all against it."""
        base = self.chosen
        marked = [replace(one, baseline=bool(base) and curve.run == base) for one, curve in _pairs(series, group)]
        way = str(self.way.currentData() or VALUES)
        own = [(curve, one) for one, curve in _pairs(series, group) if base and curve.run == base]
        if way == VALUES or not own:
            return Plotted(group.title, group.unit, tuple(marked))
        found = []
        for one, curve in _pairs(marked, group):
            points = next((other.points for its, other in own if its.name == curve.name), own[0][1].points)
            changed = against(one.points, points, way)
            lost = " (no iteration in common)" if len(one.points.x) and not len(changed.x) else ""
            found.append(replace(one, points=changed, name=f"{one.name}{lost}"))
        unit = "×" if way == RATIO else group.unit
        return Plotted(f"{group.title}: {way} to {base}", unit, tuple(found))


def _pairs(series: Sequence[Series], group: Group) -> list[tuple[Series, Curve]]:
    return list(zip(series, group.curves, strict=True))


def against(points: LongSeries, base: LongSeries, way: str) -> LongSeries:
    """The difference to a baseline, or the ratio (1 where both are 0), at the iterations that both have logged.

    Between these nothing is interpolated: two runs that log every 10th and every 7th iteration meet at every 70th.
    """
    x, mine, its = np.intersect1d(points.x, base.x, return_indices=True)
    y, b = points.y[mine], base.y[its]
    with np.errstate(all="ignore"):
        changed = y - b if way == DIFFERENCE else np.where((y == 0) & (b == 0), 1.0, y / b)
    return LongSeries.of(x, changed, points.known[mine] & base.known[its])


class SettingsTable(QTableWidget):
    """A row for each run, with its last loss and the settings that are not the same in all runs; sorted by any column,
    numbers by their size."""

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName("Runs, with the settings that differ between them")
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.verticalHeader().hide()
        self.verticalHeader().setDefaultSectionSize(ROW_HEIGHT)
        self.setTextElideMode(Qt.TextElideMode.ElideMiddle)  # paths and names often differ at their ends only
        self.setWordWrap(False)
        header = self.horizontalHeader()
        header.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        header.setMinimumSectionSize(LEAST_WIDTH)
        header.setSectionResizeMode(QHeaderView.ResizeMode.Stretch)
        self.rows_shown: list[tuple[str, list[Any]]] = []
        self.hide()

    def show_capture(self, capture: Any, losses: Mapping[str, float]) -> None:
        """The runs of what is shown; hidden where there are not several, or no setting differs.

        `losses`: the last loss of each run that has one.
        """
        settings = settings_by_run(capture)
        differing = differing_settings(settings) if len(settings) > 1 else []
        self.setMaximumHeight(min(MOST_HEIGHT, (len(settings) + 1) * ROW_HEIGHT + 12))
        self.setVisible(bool(differing))
        rows: list[tuple[str, list[Any]]] = [
            (RUN, [*settings]),
            (LOSS, [losses.get(run) for run in settings]),
            *differing,
        ]
        if rows != self.rows_shown:
            self.rows_shown = rows
            self._fill(rows, len(settings))

    def _fill(self, columns: list[tuple[str, list[Any]]], runs: int) -> None:
        """Other runs or values; sorted as before."""
        self.setSortingEnabled(False)
        self.setRowCount(runs)
        self.setColumnCount(len(columns))
        for m, (name, values) in enumerate(columns):
            heading = QTableWidgetItem(clean(name))
            heading.setToolTip(tooltip(name))
            self.setHorizontalHeaderItem(m, heading)
            for n, value in enumerate(values):
                self.setItem(n, m, _cell(value))
        header = self.horizontalHeader()
        if header.sortIndicatorSection() >= len(columns):
            header.setSortIndicator(-1, Qt.SortOrder.AscendingOrder)
        self.setSortingEnabled(True)

    def sizeHint(self) -> QSize:
        """As high as its rows need: the splitter that it is in gives the rest to the plots."""
        return QSize(super().sizeHint().width(), self.maximumHeight())


def _cell(value: Any) -> SortedCell:
    number = float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
    text = "—" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
    return SortedCell(_short(text), number, str(value) if value is not None else text)


def _short(text: str) -> str:
    """A long value by its beginning and its end."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]}…{text[-LONGEST // 2 :]}"


def settings_by_run(capture: Any) -> dict[str, dict[str, Any]]:
    """By run of what is shown its settings; {} where it is one run."""
    found = getattr(capture, "settings", None)
    if found is not None:
        return dict(found())
    runs = getattr(capture, "runs", ())
    return {run: settings_of(capture.one(run)) for run in runs} if len(runs) > 1 else {}
