"""Use of z: what a hidden variable tells of a sequence, what a decoder makes of it, and texts written from other z."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.analysis.latent.use import ACTIVE, use_verdict
from inspector.gui.panel.base import measured, number
from inspector.gui.panel.channel_choice import offer
from inspector.gui.panel.exact import exact
from inspector.gui.panel.labelled import row_of, scalar_of
from inspector.gui.panel.latent.sheet import Sheet
from inspector.gui.state.cursor import Position
from inspector.gui.widgets.charts.filled_lines import Filled, FilledLines
from inspector.gui.widgets.gaps import gaps_of
from inspector.gui.widgets.plain_text import token
from inspector.gui.widgets.plots.source import drawable
from inspector.gui.widgets.plots.stepplot import StepPlot
from inspector.gui.widgets.summary_text import SummaryText
from inspector.gui.widgets.tables.state_rows import StateRows
from inspector.gui.widgets.theme import Theme
from inspector.records import Channel

Array = npt.NDArray[Any]
UNITS, BY_SOURCE, BY_STEP, TEXTS, TERMS = (
    ("unit", "statistic"),
    ("step", "statistic"),
    ("step",),
    ("number", "position"),
    ("statistic",),
)
WIDEST = 16_000.0
LONGEST = 48
"""Letters of a text that make its column wider."""


class UseOfZ(Sheet):
    """Channels of kind "latent_use": `units`, `loss`, `gradient`, `share`, `texts` and `terms` of a variable."""

    title = "use of z"
    needs_height = 520

    @classmethod
    def accepts(cls, channel: Channel) -> bool:
        """All that is said of the use of a variable."""
        return channel.kind == "latent_use" and channel.dims in (UNITS, BY_SOURCE, BY_STEP, TEXTS, TERMS)

    def build(self) -> None:
        """KL by unit, losses and the share of the gradient above each other; texts at the right; a summary."""
        self.which = self.add_choice("Variable", "Hidden variable")
        self.units = StepPlot(None, self.panel.theme, label="nat", bottom="unit")
        self.loss = StepPlot(self.panel.steps, self.panel.theme, label="nat")
        self.share = StepPlot(self.panel.steps, self.panel.theme, label="share")
        self.unit_lines = FilledLines(self.units, self.panel.theme, 2)
        self.loss_lines = FilledLines(self.loss, self.panel.theme, 3)
        self.share_lines = FilledLines(self.share, self.panel.theme, 1)
        self.texts, self.summary = StateRows(self.panel.theme, LONGEST), SummaryText(self.panel.theme)
        for row, plot in enumerate((self.units, self.loss, self.share)):
            self.figure.addItem(plot, row=row, col=0)
        self.figure.addItem(self.texts, row=0, col=1, rowspan=3)
        self.figure.addItem(self.summary, row=3, col=0, colspan=2)
        self.plots = [self.units, self.loss, self.share]
        self.panel.steps.changed.connect(self._in_view)

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        for part in (self.unit_lines, self.loss_lines, self.share_lines, self.texts, self.summary):
            part.set_theme(theme)

    def _in_view(self, _low: float, _high: float) -> None:
        if self.drawn and self.panel.in_sight():
            self._draw()

    def bases(self) -> dict[str, str]:
        """Name before the last slash → what is chosen: variable and place."""
        found = dict.fromkeys(channel.name.rpartition("/")[0] for channel in self.channels())
        return {
            name: f"{name.rpartition('latent/')[2].removesuffix('/use')}, {name.rpartition(':')[0]}" for name in found
        }

    def of(self, signal: str) -> Channel | None:
        """A channel of the chosen variable."""
        name = f"{self.which.currentData() or ''}/{signal}"
        return next((channel for channel in self.channels() if channel.name == name), None)

    def update_contents(self) -> None:
        """The variable that is chosen."""
        offer(self.which, self.bases())
        for plot in (self.loss, self.share):
            plot.step_axis.set_names(self.panel.step_names())
        self._draw()
        rows = self.rows()
        self.texts.set_rows(("text", "z"), rows)
        self._give_room(texts=bool(rows))
        self.summary.set_text(self.sentence())

    def _give_room(self, *, texts: bool) -> None:
        """Texts beside the plots, or all the width for these."""
        grid = self.figure.layout
        for column, weight in ((0, 5), (1, 4 if texts else 0)):
            grid.setColumnStretchFactor(column, weight)
            grid.setColumnPreferredWidth(column, 100 * weight)
        grid.setColumnMaximumWidth(1, WIDEST if texts else 0)

    def _draw(self) -> None:
        units, loss, share = self.of("units"), self.of("loss"), self.of("share")
        for plot, channel in ((self.units, units), (self.loss, loss), (self.share, share)):
            plot.setVisible(channel is not None)
        if units is not None:
            table = self._whole(units)
            kl, variance = (table[:, row_of(units, name, "statistic")] for name in ("KL", "variance of the mean"))
            on = variance > ACTIVE
            shown = [
                Filled(name, np.where(own, kl, np.nan), dots=True)
                for name, own in (("active", on), ("not active", ~on))
            ]
            self.unit_lines.show(shown, self.units.vb.width())
            top = float(np.nanmax(kl, initial=0.0, where=np.isfinite(kl)))
            self.units.vb.setYRange(0, 1.15 * top or 1.0, padding=0)
            self.units.vb.setXRange(-0.5, max(1, len(kl)) - 0.5, padding=0)
            self.units.set_title(f"KL by unit, mean over {self.scalar('sequences'):.0f} sequences")
        if loss is not None:
            self.loss_lines.show(self._by_source(loss), self.loss.vb.width())
            self.loss.set_title(f"{loss.title}: what a wrong z costs")
            self.loss.mark_gaps(gaps_of(self.capture, loss.name, self.frame, y=None))
        if share is not None:
            self.share_lines.show([Filled(share.title, self._whole(share))], self.share.vb.width())
            self.share.set_title("share of the gradient at what was read that comes through z")
            self.share.vb.setYRange(-0.04, 1.04, padding=0)
            self.share.mark_gaps(gaps_of(self.capture, share.name, self.frame, y=None))

    def _whole(self, channel: Channel) -> Array:
        found: Array = drawable(self.capture.array(channel.name, self.frame)).astype(np.float64)
        return found

    def _by_source(self, channel: Channel) -> list[Filled]:
        table = self._whole(channel)
        names = channel.labels.get("statistic", ())
        return [Filled(name, table[:, n]) for n, name in enumerate(names)]

    def scalar(self, name: str) -> float:
        """A number written beside the units."""
        units = self.of("units")
        if units is None:
            return math.nan
        return scalar_of(self.capture, f"{self.which.currentData()}/{name}", units.name, self.frame)

    def sentence(self) -> str:
        """What the numbers together say."""
        units = self.of("units")
        if units is None:
            return ""
        count = self.capture.extent(units.name, self.frame)[0]
        names = ("kl", "mutual_information", "most_information", "active_units")
        rise = self.scalar("loss/others") - self.scalar("loss/own")
        kl, information, most, active = map(self.scalar, names)
        told = use_verdict(kl, information, most, active, count, rise).sentence
        return f"{told[0].upper()}{told[1:]}."

    def rows(self) -> list[list[str]]:
        """Each text, and what it was written from."""
        channel = self.of("texts")
        if channel is None:
            return []
        names = self.capture.labels(channel.value_domain, self.frame)
        ids = np.ma.filled(self.capture.array(channel.name, self.frame), -1)
        apart = "" if all(len(name) <= 1 for name in names) else " "
        texts = [
            apart.join(token(names[i]) if i < len(names) else str(i) for i in row if i >= 0) for row in ids.tolist()
        ]
        return [list(pair) for pair in zip(texts, channel.labels.get("number", ()), strict=False)]

    def follow(self, new: Position, old: Position) -> None:
        """Another place shows its first variable."""
        if new.place != old.place and new.place:
            own = [name for name in self.bases() if name.rpartition(":")[0] == new.place]
            if own and (self.which.currentData() or "") not in own:
                self.which.setCurrentIndex(self.which.findData(own[0]))

    def pointed(self, plot: Any, x: float, y: float) -> None:
        """The cursor goes to the step under the mouse; among units the one under it is marked."""
        if plot is self.units:
            self.panel.marked.set(plot, max(0, round(x)), float(max(0, round(x))))
        else:
            self.panel.looking.move(step=max(0, round(x)))

    def readout(self, position: Position) -> list[tuple[str, str]]:
        """The unit that is marked; losses, gradients and the share at the step."""
        return [
            *self._at_unit(),
            *(row for name in ("loss", "gradient", "share") for row in self._at_step(name, position)),
        ]

    def _at_unit(self) -> list[tuple[str, str]]:
        units = self.of("units")
        if units is None:
            return []
        at = self.panel.marked.at(self.units, self.capture.extent(units.name, self.frame)[0])
        if at is None:
            return []
        values = exact(self.capture, units.name, self.frame, (slice(at, at + 1), slice(None)))[0]
        names = units.labels.get("statistic", ())
        return [(f"{name} [{at}]  {units.place}", number(value)) for name, value in zip(names, values, strict=True)]

    def _at_step(self, name: str, position: Position) -> list[tuple[str, str]]:
        channel, step = self.of(name), position.step
        if channel is None or step is None or step >= self.capture.extent(channel.name, self.frame)[0]:
            return []
        cut = (slice(step, step + 1), *(slice(None) for _ in channel.dims[1:]))
        values = np.atleast_1d(exact(self.capture, channel.name, self.frame, cut).reshape(-1))
        names = channel.labels.get("statistic", (channel.title,))
        about = f"{channel.title}, " if len(channel.dims) > 1 else ""
        return [
            (f"{about}{one} [{step}]  {channel.place}", measured(value, channel.unit))
            for one, value in zip(names, values, strict=True)
        ]

    def data(self) -> dict[str, Array]:
        """Every channel of the variable, whole."""
        base = f"{self.which.currentData() or ''}/"
        own = [channel for channel in self.channels() if channel.name.startswith(base)]
        return {channel.name: self.capture.array(channel.name, self.frame) for channel in own}
