"""Hidden states: their posterior by step with the Viterbi path, transitions, what each is and how long it lasts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pyqtgraph as pg

from inspector.gui.panel.base import measured, number
from inspector.gui.panel.channel_choice import offer
from inspector.gui.panel.exact import exact
from inspector.gui.panel.labelled import row_of
from inspector.gui.panel.latent.sheet import Sheet, place
from inspector.gui.state.cursor import Position
from inspector.gui.widgets.gaps import gaps_of
from inspector.gui.widgets.maps.maprow import MapRow
from inspector.gui.widgets.numbers import short
from inspector.gui.widgets.plain_text import token
from inspector.gui.widgets.plots.source import changes_of, drawable, glance, overview_of
from inspector.gui.widgets.tables.state_rows import StateRows
from inspector.gui.widgets.theme import Theme
from inspector.records import Channel

Array = npt.NDArray[Any]
POSTERIOR, PATH, MOVES = ("step", "state"), ("step",), ("state", "next")
TABLE, TOKENS = ("state", "statistic"), ("state", "rank")
MOST_TOKENS = 8
MOST_DASHES = 4000
"""Steps in view up to which the path is drawn."""
COLUMNS = {
    "occupancy": "occupancy", "stationary": "stationary", "visits": "visits", "mean dwell": "mean dwell",
    "expected dwell": "1/(1−a)", "longest dwell": "longest",
}  # fmt: skip
"""What is shown of a state, and its heading."""


class HiddenStates(Sheet):
    """Channels of kind "occupancy": posteriors (step, state), a path (step,), (state, next), and tables by state."""

    title = "hidden states"

    @classmethod
    def accepts(cls, channel: Channel) -> bool:
        """Everything that is said of discrete states."""
        return channel.kind == "occupancy" and channel.dims in (POSTERIOR, PATH, MOVES, TABLE, TOKENS)

    def build(self) -> None:
        """The posterior with the path over it; transitions and a table of the states below."""
        self.which = self.add_choice("Posterior", "Which posterior")
        self.row = MapRow(self.figure, 0, self.panel.steps, self.panel.theme, label="state")
        self.path = pg.PlotCurveItem(connect="finite")
        self.row.plot.addItem(self.path, ignoreBounds=True)
        below = self.figure.addLayout(row=1, col=0, colspan=2)
        self.moves = MapRow(
            below.addLayout(row=0, col=0), 0, None, self.panel.theme, label="from state", bottom="to state", square=True
        )
        self.table = StateRows(self.panel.theme)
        below.addItem(self.table, row=0, col=1)
        self.below = below
        for column, share in ((0, 1), (1, 3)):
            below.layout.setColumnStretchFactor(column, share)
            below.layout.setColumnPreferredWidth(column, 100 * share)
        self.figure.layout.setRowStretchFactor(0, 3)
        self.figure.layout.setRowStretchFactor(1, 4)
        self.plots = [self.row.plot, self.moves.plot]
        self.panel.steps.changed.connect(self._in_view)

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        for part in (self.row, self.moves, self.table):
            part.set_theme(theme)
        self.path.setPen(pg.mkPen(theme.cursor, width=2))

    def _in_view(self, _low: float, _high: float) -> None:
        if self.drawn and self.panel.in_sight():
            self._draw_path()

    def posteriors(self) -> list[Channel]:
        """All that can be shown."""
        return [channel for channel in self.channels() if channel.dims == POSTERIOR]

    def chosen(self) -> Channel | None:
        """The one that is shown."""
        return next((one for one in self.posteriors() if one.name == self.which.currentData()), None)

    def beside(self, *dims: str) -> list[Channel]:
        """Channels over other axes that are said of the same states."""
        chosen = self.chosen()
        base = "" if chosen is None else chosen.name.rpartition("/")[0]
        return [one for one in self.channels() if one.dims == dims and one.name.rpartition("/")[0] == base]

    def update_contents(self) -> None:
        """Map, path, transitions and table of the chosen posterior."""
        offer(self.which, {one.name: f"{one.title}, {one.place}" for one in self.posteriors()})
        channel = self.chosen()
        assert channel is not None and self.capture is not None
        steps, states = self.capture.extent(channel.name, self.frame)
        levels, nan, infinite = glance(self.capture, channel, self.frame)
        self.row.show(
            overview_of(self.capture, channel.name, self.frame), steps, states, levels, channel.unit,
            self.capture.revision(channel.name, self.frame), nan=nan, infinite=infinite,
            gaps=gaps_of(self.capture, channel.name, self.frame),
            changes=changes_of(self.capture, channel.name, self.frame),
        )  # fmt: skip
        self.row.plot.step_axis.set_names(self.panel.step_names())
        self._draw_path()
        self._draw_moves()
        self.table.set_rows(*self.rows())
        place(self.figure.layout, self.below, 1, on=bool(self.table.rows or self.beside(*MOVES)), columns=2)
        self.figure.layout.setRowStretchFactor(1, 4 if self.below.isVisible() else 0)

    def _draw_path(self) -> None:
        """A dash in the row of each step's state, where these can be told apart."""
        found = next(iter(self.beside(*PATH)), None)
        x = y = np.zeros(0)
        if found is not None and self.capture is not None and not self.panel.differs:
            first, stop = max(0, int(self.panel.steps.bounds[0])), int(self.panel.steps.bounds[1]) + 2
            stop = min(stop, self.capture.extent(found.name, self.frame)[0])
            if 0 < stop - first <= MOST_DASHES:
                states = drawable(self.capture.block(found.name, self.frame, (slice(first, stop),))).astype(np.float64)
                steps = np.arange(first, stop)
                x = np.stack((steps - 0.5, steps + 0.5, np.full(len(steps), np.nan)), 1).reshape(-1)
                y = np.repeat(states, 3)
        self.path.setData(x, y)
        chosen = self.chosen()
        if chosen is not None:
            path = "; dashes: Viterbi path" if len(x) else ""
            self.row.plot.set_title(f"{chosen.title}, {chosen.place}{path}")

    def _draw_moves(self) -> None:
        found = next(iter(self.beside(*MOVES)), None)
        for part in (self.moves.plot, self.moves.bar):
            part.setVisible(found is not None)
        if found is None:
            return
        levels, _, _ = glance(self.capture, found, self.frame)
        values = drawable(self.capture.array(found.name, self.frame)).T
        gaps = gaps_of(self.capture, found.name, self.frame)
        self.moves.show_array(
            values, levels, found.unit, revision=self.capture.revision(found.name, self.frame), gaps=gaps
        )
        self.moves.plot.set_title(found.title)

    def rows(self) -> tuple[list[str], list[list[str]]]:
        """Headings, and a row a state: occupancy, how long it lasts, its tokens."""
        table, tokens = next(iter(self.beside(*TABLE)), None), self._tokens()
        if table is None or self.panel.differs:
            return [], []
        values = exact(self.capture, table.name, self.frame, ())
        known = [name for name in COLUMNS if name in table.labels.get("statistic", ())]
        rows = []
        for state, row in enumerate(values):
            cells = [self._cell(row[row_of(table, name, "statistic")]) for name in known]
            rows.append([str(state), *cells, *([tokens[state]] if tokens else [])])
        return ["state", *(COLUMNS[name] for name in known), *(["tokens"] if tokens else [])], rows

    @staticmethod
    def _cell(value: Any) -> str:
        if isinstance(value, str):
            return value
        return "none" if math.isnan(value) else "∞" if math.isinf(value) else short(float(value))

    def _tokens(self) -> list[str]:
        """The most common tokens of each state, and nothing where there are none."""
        found = next((one for one in self.beside(*TOKENS) if one.value_domain), None)
        shares = next((one for one in self.beside(*TOKENS) if not one.value_domain), None)
        if found is None or shares is None or self.capture is None:
            return []
        names = self.capture.labels(found.value_domain, self.frame)
        ids, parts = (self.capture.array(one.name, self.frame) for one in (found, shares))
        if np.ma.is_masked(ids) or not np.isfinite(parts).all():
            return []
        lines = []
        for row, part in zip(ids[:, :MOST_TOKENS].tolist(), parts[:, :MOST_TOKENS].tolist(), strict=True):
            own = [one for one, share in zip(row, part, strict=True) if share > 0]
            lines.append(" ".join(token(names[one] if one < len(names) else str(one)) for one in own))
        return lines

    def follow(self, new: Position, old: Position) -> None:
        """Another place shows its states; another unit marks its row."""
        if new.place != old.place and new.place:
            own = [one.name for one in self.posteriors() if one.place == new.place]
            if own and (self.which.currentData() or "") not in own:
                self.which.setCurrentIndex(self.which.findData(own[0]))
        channel = self.chosen()
        if channel is not None and self.capture is not None:
            states = self.capture.extent(channel.name, self.frame)[1]
            self.row.show_row(new.unit if new.unit is not None and new.unit < states else None)

    def pointed(self, plot: Any, x: float, y: float) -> None:
        """The cursor goes to the step and the state under the mouse, or to the state of a row of the transitions."""
        channel = self.chosen()
        if channel is None:
            return
        if plot is self.row.plot:
            self.panel.looking.move(step=round(x), unit=max(0, round(y)), place=channel.place)
        else:
            self.panel.looking.move(unit=max(0, round(y)))

    def readout(self, position: Position) -> list[tuple[str, str]]:
        """The most likely state at the step with its probability, that of the marked one, the path's state."""
        channel, step = self.chosen(), position.step
        rows: list[tuple[str, str]] = []
        if channel is None or step is None or self.capture is None:
            return rows
        steps, states = self.capture.extent(channel.name, self.frame)
        if step >= steps:
            return rows
        row = exact(self.capture, channel.name, self.frame, (slice(step, step + 1),))[0]
        told = [value for value in row if not isinstance(value, str)]
        if len(told) == states and np.isfinite(np.array(told, dtype=float)).all() and not self.panel.differs:
            top = int(np.argmax(row))
            rows.append((f"most likely state [{step}]  {channel.place}", f"{top} ({number(row[top])})"))
        if position.unit is not None and position.unit < states:
            rows.append((f"{channel.title} [{step}, {position.unit}]", measured(row[position.unit], channel.unit)))
        for path in self.beside(*PATH):
            if not self.panel.differs:
                at = exact(self.capture, path.name, self.frame, (slice(step, step + 1),))[0]
                rows.append((f"{path.title} [{step}]", str(at)))
        return rows

    def data(self) -> dict[str, Array]:
        """Everything that is said of the states that are shown."""
        channel = self.chosen()
        own = [one for dims in (PATH, MOVES, TABLE, TOKENS) for one in self.beside(*dims)]
        shown = ([channel] if channel is not None else []) + own
        return {one.name: self.capture.array(one.name, self.frame) for one in shown}
