"""Cures: losses of copies of the model that were trained as it is and with a cure, over seeds, and what they say."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
import pyqtgraph as pg
from PySide6.QtCore import Qt

from inspector.analysis.cures import AFTER, BY_ITERATION, KIND, Tried, losses_of, tried
from inspector.gui.panel.base import Panel, measured, set_options
from inspector.gui.panel.registry import PANELS
from inspector.gui.state.cursor import Position
from inspector.gui.widgets.plots.legend import Legend
from inspector.gui.widgets.plots.stepplot import StepPlot, curve
from inspector.gui.widgets.theme import Theme
from inspector.gui.widgets.wrapped_text import WrappedText
from inspector.records import Channel, counted

Array = npt.NDArray[Any]
COLOURS = (1, 0)
"""Series colours of the copies as they are, and of the cured ones."""
EDGE = 4.0
"""Losses are drawn up to so many times the first one, or times what nine of ten losses of the calmer copies stay below
where that is more: a copy that diverges leaves the plot at its top. Counter-example: both diverge, and both are cut."""
OUT = 2.0
"""Times the edge at which lines that leave the plot end."""
BEYOND = "Losses above {:.3g} are not drawn."


@PANELS.register("cures")
class Cures(Panel):
    """(version, seed, iteration) channels of kind "cure": a band from the smallest to the largest of the seeds, and
    their mean; below, the difference of the two copies of each seed, which had the same batches."""

    tab_order = 195
    menu_group = "training"
    key, title = "cures", "Cures"
    hint = (
        "Does a cure help? Copies of the model are trained from where it is now, on the same batches, as it is and "
        "cured, with several seeds. A finding of the Overview offers what can be tried for it, under ⋯. "
        "The model itself stays as it is."
    )
    extra = ("trial/cure",)
    by_steps = False
    needs_height = 400
    going = ""
    """What is being tried beside the window, as a sentence."""

    @classmethod
    def accepts(cls, channel: Channel) -> bool:
        """Losses while the copies were trained, and after that."""
        return channel.kind == KIND and channel.dims in (BY_ITERATION, AFTER)

    def concerns(self, name: str) -> bool:
        """Trials that could not be made."""
        return ":trial/cure/" in name

    def build(self) -> None:
        """The sentences above the losses."""
        self.which = self.add_choice("Cure", "Which cure")
        self.told = WrappedText(self.theme, lines=2, muted=True)
        self.figure.addItem(self.told, row=0, col=0)
        self.plot = StepPlot(None, self.theme, label="loss", bottom="step of training")
        self.bands = [Band(self.plot, self.theme, number) for number in COLOURS]
        self.legend = Legend(self.plot)
        self.figure.addItem(self.plot, row=1, col=0)
        self.beside = StepPlot(None, self.theme, label="difference", bottom="step of training")
        self.difference = Band(self.beside, self.theme, COLOURS[1])
        self.zero = pg.InfiniteLine(0, angle=0)
        self.beside.addItem(self.zero, ignoreBounds=True)
        self.beside.vb.setXLink(self.plot.vb)
        self.figure.addItem(self.beside, row=2, col=0)
        self.plots = [self.plot, self.beside]
        self.found: list[Tried] = []
        self._awaited = ""

    def say_going(self, sentence: str) -> None:
        """Tell on the empty page what is being tried; "" for nothing any more."""
        self.going = sentence
        if self.state == "empty":
            self._show_empty()

    def _show_empty(self) -> None:
        super()._show_empty()
        if self.going:  # and so nothing of why a watched training takes nothing else
            self._empty.show_reasons(self.hint, [self.going], offer=False)

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self.told.theme = theme
        self.told.update()
        for band in (*self.bands, self.difference):
            band.set_theme(theme)
        self.zero.setPen(pg.mkPen(theme.muted, width=1, style=Qt.PenStyle.DashLine))
        self.legend.set_theme(theme)
        super().set_theme(theme)

    def update_contents(self) -> None:
        """What every cure did, and the losses of the chosen one."""
        assert self.capture is not None
        self.found = tried(self.capture, self.frame)
        set_options(self.which, [one.title for one in self.found])
        if any(one.cure == self._awaited for one in self.found):
            self.show_cure(self._awaited)
        edge = self._draw(self.shown())
        beyond = [BEYOND.format(edge)] if math.isfinite(edge) else []
        self.told.set_text("\n".join([*(one.sentence for one in self.found), *beyond]))

    def show_cure(self, cure: str) -> None:
        """Show the losses of a cure, by its key, as soon as they are there."""
        title = next((one.title for one in self.found if one.cure == cure), "")
        self._awaited = "" if title else cure
        if title:
            self.which.setCurrentText(title)

    def shown(self) -> Tried | None:
        """The cure whose losses are drawn."""
        return next((one for one in self.found if one.title == self.which.currentText()), None)

    def _draw(self, one: Tried | None) -> float:
        """The losses of a cure; returns the edge above which some are that are not drawn, infinite for none."""
        for plot in self.plots:
            plot.setVisible(one is not None)
        if one is None or self.capture is None:
            return math.inf
        channel, losses = self.capture.channels[one.channel], self.losses(one)
        apart, edge = losses[1] - losses[0], edge_of(losses)
        for band, part in zip(self.bands, losses, strict=False):
            band.show(part, OUT * edge)
        self.difference.show(apart, math.inf)
        self.plot.vb.setXRange(0, max(1, losses.shape[2] - 1), padding=0.01)
        drawn = losses[np.isfinite(losses) & (losses <= edge)]
        if drawn.size:
            bottom, top = float(drawn.min()), edge if math.isfinite(edge) else float(drawn.max())
            margin = 0.05 * (top - bottom) or 0.5
            self.plot.vb.setYRange(bottom - margin, top + margin, padding=0)
        reach = 1.1 * float(np.abs(apart[np.isfinite(apart) & (np.abs(apart) <= edge)]).max(initial=0.0)) or 1.0
        self.beside.vb.setYRange(-reach, reach, padding=0)
        self._name(channel, losses)
        self.plot.set_title(channel.title, channel.method)
        self.beside.set_title("cured minus as it is, of each seed: below 0 the cured copy is better")
        return edge

    def _name(self, channel: Channel, losses: Array) -> None:
        """The legend: a mean and a band, of so many seeds that a loss may not have reached the end."""
        names = channel.labels.get("version", ("as it is", "cured"))
        seeds = losses.shape[1]
        self.legend.clear()
        for band, name, part in zip(self.bands, names, losses, strict=False):
            broken = int((~np.isfinite(part[:, -1])).sum())
            more = f", {broken} not finite" if broken else ""
            of = f"mean and range of {counted(seeds, 'seed')}" if seeds > 1 else "one seed"
            self.legend.addItem(band.line, f"{name} ({of}{more})", band.fill, *band.edges)
        unit = channel.unit
        for plot, what in zip(self.plots, ("loss", "difference"), strict=True):
            plot.label_left(f"{what} ({unit})" if unit not in ("", "1") else what)

    def losses(self, one: Tried) -> Array:
        """(version, seed, iteration) of a cure."""
        assert self.capture is not None
        return losses_of(self.capture, one.channel, self.frame)

    def pointed(self, plot: Any, x: float, y: float) -> None:
        """A step of training is marked."""
        for one in self.plots:
            self.marked.set(one, max(0, round(x)))

    def readout(self, position: Position) -> list[tuple[str, str]]:
        """The mean losses at the step that is marked, and after the last one."""
        one = self.shown() if self.state == "figure" else None
        if one is None or self.capture is None:
            return []
        channel, losses = self.capture.channels[one.channel], self.losses(one)
        at = self.marked.at(self.plot, losses.shape[2])
        if at is None:
            return []
        names = channel.labels.get("version", ("as it is", "cured"))
        means = [over_seeds(part)[1][at] for part in losses]
        return [
            (f"{name}, mean at step {at}", measured(value, channel.unit))
            for name, value in zip(names, means, strict=False)
        ]

    def data(self) -> dict[str, Array]:
        """The losses of every cure, while the copies were trained and after that."""
        assert self.capture is not None
        return {
            channel.name: losses_of(self.capture, channel.name, self.frame)
            for channel in self.channels()
            if 0 not in channel.shape
        }


class Band:
    """The mean over seeds as a line, in a band from the smallest to the largest of them."""

    def __init__(self, plot: StepPlot, theme: Theme, number: int) -> None:
        self.number = number
        self.line = curve(theme, number, width=1.8)
        self.edges = [pg.PlotDataItem(connect="finite") for _ in range(2)]
        self.fill = pg.FillBetweenItem(*self.edges)
        for item in (self.fill, *self.edges, self.line):
            plot.addItem(item, ignoreBounds=True)

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        colour = theme.series[self.number]
        self.line.setPen(pg.mkPen(colour, width=1.8))
        self.fill.setBrush(pg.mkBrush(colour + "30"))
        for edge in self.edges:
            edge.setPen(pg.mkPen(colour + "70", width=0.6))

    def show(self, values: Array, top: float) -> None:
        """(seed, iteration) values, up to `top`."""
        low, mean, high = over_seeds(values)
        at = np.arange(values.shape[1])
        for item, row in zip((*self.edges, self.line), (low, high, mean), strict=True):
            item.setData(*((at, np.minimum(row, top)) if np.isfinite(row).any() else ([], [])))


def edge_of(losses: Array) -> float:
    """Above which losses (version, seed, iteration) are not drawn; infinite where all are."""
    known = [part[np.isfinite(part)] for part in losses]
    usual = [float(np.quantile(part, 0.9)) for part in known if part.size]
    first = losses[..., 0][np.isfinite(losses[..., 0])]
    edge = EDGE * max(min(usual, default=0.0), float(np.median(first)) if first.size else 0.0)
    largest = max((float(part.max()) for part in known if part.size), default=0.0)
    return edge if 0 < edge < largest else math.inf  # the loss of a density may be negative: then all are drawn


def over_seeds(values: Array) -> tuple[Array, Array, Array]:
    """(smallest, mean, largest) over the seeds, each (iteration,), of those that are finite; NaN where none is."""
    known = np.where(np.isfinite(values), values, np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of no seed that is finite NaN is meant
        return np.nanmin(known, axis=0), np.nanmean(known, axis=0), np.nanmax(known, axis=0)
