"""Latents: hidden variables of any model, innovations of its filters, and discrete hidden states."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from inspector.gui.panel.arranged import is_wide
from inspector.gui.panel.base import Panel, set_options
from inspector.gui.panel.latent.hidden_states import POSTERIOR, HiddenStates
from inspector.gui.panel.latent.innovations import Innovations
from inspector.gui.panel.latent.sheet import Sheet
from inspector.gui.panel.latent.use import UseOfZ
from inspector.gui.panel.latent.variables import Variables
from inspector.gui.panel.registry import PANELS
from inspector.gui.state.cursor import Position
from inspector.gui.widgets.theme import Theme
from inspector.records import Channel

Array = npt.NDArray[Any]
SHEETS: tuple[type[Sheet], ...] = (Variables, UseOfZ, HiddenStates, Innovations)


@PANELS.register("latents")
class Latents(Panel):
    """Channels of the kinds "latent", "latent_use", "occupancy" and "innovation", one view at a time."""

    tab_order, tab_row = 63, "upper"
    menu_group = "inside"
    key, title = "latents", "Latents"
    hint = (
        "Hidden variables: means with 95 % bands, samples, KL and ln p by step; innovations of a Kalman filter; "
        "discrete states with the Viterbi path; how much of z a decoder uses, on request. Needs a model that uses "
        "torch.distributions, draws z = μ + σ ε, or says what its hidden states are."
    )
    shows = ("latent/distributions", "latent/kalman", "latent/hidden_markov")
    extra = ("latent/use",)
    needs_height = Sheet.needs_height

    @classmethod
    def accepts(cls, channel: Channel) -> bool:
        """What one of the views draws."""
        return any(sheet.accepts(channel) for sheet in SHEETS)

    @classmethod
    def choose(cls, found: list[Channel]) -> list[Channel]:
        """Paths and tables of discrete states are shown beside a posterior."""
        if any(channel.kind == "occupancy" and channel.dims == POSTERIOR for channel in found):
            return found
        return [channel for channel in found if channel.kind != "occupancy"]

    def concerns(self, name: str) -> bool:
        """Hidden variables that could not be shown."""
        return ":latent" in name or name.endswith(":states")

    def build(self) -> None:
        """The choice of the view; each view has its own controls and plots, made when it is first shown."""
        self.shown = self.add_choice("Show", "What is shown of hidden variables")
        self.sheets: dict[str, Sheet] = {}
        self._wide = False

    @property
    def sheet(self) -> Sheet:
        """The view that is shown."""
        titles = [sheet.title for sheet in SHEETS]
        title = self.shown.currentText() if self.shown.currentText() in titles else titles[0]
        if title not in self.sheets:
            self._make(title, titles.index(title))
        return self.sheets[title]

    def _make(self, title: str, number: int) -> None:
        """A view, which comes into the figure when it is shown."""
        made = self.sheets[title] = SHEETS[number](self, number)
        made.show(False)
        made.set_theme(self.theme)
        self.control_row.join(made.own)
        self.plots = [*self.plots, *made.plots]
        for plot in made.plots:
            plot.set_theme(self.theme)
            plot.show_fixed(self.looking.cursor.fixed)
            plot.name_steps(self.axes.title(self.capture, self.frame))

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        for sheet in self.sheets.values():
            sheet.set_theme(theme)
        super().set_theme(theme)

    def update_contents(self) -> None:
        """The view that is chosen, of those that have anything to show."""
        set_options(self.shown, self._offered())
        here = self.sheet
        for sheet in self.sheets.values():
            if sheet is not here:
                sheet.show(False)  # first, since all of them have the same place
        here.show(True)
        here.update_contents()
        self.figure.setMinimumHeight(here.needs_height)

    def resizeEvent(self, event: Any) -> None:
        """A wide panel has plots beside each other."""
        super().resizeEvent(event)
        wide, self._wide = self._wide, is_wide(self.width(), self.height())
        if self.state == "figure" and not self.over.on and wide != self._wide:
            self.draw_if_seen()

    def _offered(self) -> list[str]:
        """Views with anything to show; last the one of variables where it has nothing but terms by step."""
        drawn = self.channels()
        found = {sheet.title: [channel for channel in drawn if sheet.accepts(channel)] for sheet in SHEETS}
        terms = Variables.title if all(len(channel.dims) == 1 for channel in found[Variables.title]) else ""
        return sorted((title for title, own in found.items() if own), key=lambda title: title == terms)

    def follow(self, new: Position, old: Position) -> None:
        """As the view does."""
        self.sheet.follow(new, old)

    def pointed(self, plot: Any, x: float, y: float) -> None:
        """As the view does."""
        self.sheet.pointed(plot, x, y)

    def readout(self, position: Position) -> list[tuple[str, str]]:
        """Of the view that is shown."""
        return self.sheet.readout(position)

    def data(self) -> dict[str, Array]:
        """Of the view that is shown."""
        return self.sheet.data()
