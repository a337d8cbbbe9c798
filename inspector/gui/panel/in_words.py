"""A panel in words, for programs that read the screen: what it shows, and the numbers under the cursor."""

from __future__ import annotations

from typing import Any

from inspector.gui.widgets.described import InWords, Role

MOST_IN_WORDS = 12
"""Numbers under the cursor that are told."""


class PanelInWords(InWords):
    """Mixed into every panel."""

    accessible_role = Role.Pane

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
