"""A panel in words, for programs that read the screen: what it shows, and the numbers under the cursor."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, ClassVar

from inspector.gui.panel.axes_of_data import DataAxes
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

    def about_in_words(self) -> str:
        """What the panel shows."""
        panel: Any = self
        return str(panel.hint)

    def data_axes(self) -> DataAxes:
        """The axes of what `data` gives by these names, where it is not a channel of that name."""
        return self.axes_of_data
