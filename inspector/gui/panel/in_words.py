"""A panel in words, for programs that read the screen: what it shows, and the numbers under the cursor."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, ClassVar

from inspector.gui.panel.axes_of_data import DataAxes
from inspector.gui.panel.place_shown import with_place
from inspector.gui.state.cursor import Position
from inspector.gui.widgets.described import InWords, Role

MOST_IN_WORDS = 12
"""Numbers under the cursor that are told."""


class PanelInWords(InWords):
    """Mixed into every panel."""

    accessible_role = Role.Pane
    axes_of_data: ClassVar[DataAxes] = MappingProxyType({})

    def value_in_words(self) -> str:
        """The numbers under the cursor, as they stand in the read-out; else that nothing is drawn."""
        panel: Any = self
        if panel.state != "figure":
            return f"{panel.state}: nothing is drawn"
        rows = [f"{what} {value}".strip() for what, value in panel.labelled_readout()[:MOST_IN_WORDS]]
        return "; ".join(rows if panel.held_bar is None else [panel.held_bar.in_words(), *rows])

    def labelled_readout(self, position: Position | None = None) -> list[tuple[str, str]]:
        """The readout at a position, by default the shared cursor's; what is over other steps has its axis' name."""
        panel: Any = self
        if panel.over.on:
            over: list[tuple[str, str]] = panel.over.readout() if panel.state == "figure" else []
            return over
        word = panel.axes.prefix(panel.capture, panel.frame) if panel.by_steps else ""
        rows = with_place(panel, panel.readout(position or panel.looking.position))
        return [(f"{word}{what}" if "[" in what else what, value) for what, value in rows]

    def about_in_words(self) -> str:
        """What the panel shows."""
        panel: Any = self
        return str(panel.hint)

    def data_axes(self) -> DataAxes:
        """The axes of what `data` gives by these names, where it is not a channel of that name."""
        return self.axes_of_data
