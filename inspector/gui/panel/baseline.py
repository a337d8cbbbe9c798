"""Several runs on one axis: one of them as the baseline, the others as they are or against it, and their settings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QAbstractItemView, QComboBox, QTableWidget, QTableWidgetItem, QWidget

from inspector.capture import Curve
from inspector.capture.together import differing_settings, settings_of
from inspector.gui.panel.channel_choice import offer
from inspector.gui.panel.curve_plots import Group
from inspector.gui.panel.plot_column import Plotted
from inspector.gui.widgets.long_series import LongSeries
from inspector.gui.widgets.plain_text import clean, tooltip
from inspector.gui.widgets.series_plot import Series

VALUES, DIFFERENCE, RATIO = "values", "difference", "ratio"
WAYS = {VALUES: "values", DIFFERENCE: "difference to it", RATIO: "ratio to it"}
LONGEST = 60
ROW_HEIGHT, MOST_HEIGHT, MOST_WIDTH = 22, 150, 240


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
    """The settings that are not the same in all runs, a column for each run."""

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName("Settings that differ between the runs")
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.verticalHeader().setMaximumWidth(MOST_WIDTH)
        self.verticalHeader().setTextElideMode(Qt.TextElideMode.ElideLeft)
        self.verticalHeader().setDefaultSectionSize(ROW_HEIGHT)
        self.rows_shown: list[tuple[str, list[Any]]] = []
        self.hide()

    def show_capture(self, capture: Any) -> None:
        """The settings of all runs of what is shown; hidden where there are not several, or none differs."""
        settings = settings_by_run(capture)
        rows = differing_settings(settings) if len(settings) > 1 else []
        self.setMaximumHeight(min(MOST_HEIGHT, (len(rows) + 1) * ROW_HEIGHT + 12))
        self.setVisible(bool(rows))
        if rows == self.rows_shown and self.columnCount() == len(settings):
            return
        self.rows_shown = rows
        self.setRowCount(len(rows))
        self.setColumnCount(len(settings))
        self.setHorizontalHeaderLabels([clean(name) for name in settings])
        for n, (name, _) in enumerate(rows):
            header = QTableWidgetItem(clean(name))
            header.setToolTip(tooltip(name))
            self.setVerticalHeaderItem(n, header)
        for n, (_, values) in enumerate(rows):
            for m, value in enumerate(values):
                text = "—" if value is None else str(value)
                item = QTableWidgetItem(clean(text[:LONGEST]))
                item.setToolTip(tooltip(text))
                self.setItem(n, m, item)

    def sizeHint(self) -> QSize:
        """As high as its rows need: the splitter that it is in gives the rest to the plots."""
        return QSize(super().sizeHint().width(), self.maximumHeight())


def settings_by_run(capture: Any) -> dict[str, dict[str, Any]]:
    """By run of what is shown its settings; {} where it is one run."""
    found = getattr(capture, "settings", None)
    if found is not None:
        return dict(found())
    runs = getattr(capture, "runs", ())
    return {run: settings_of(capture.one(run)) for run in runs} if len(runs) > 1 else {}
