"""A plot whose title wraps and is cut where the plot ends, so that none is written over that of the next."""

from __future__ import annotations

from typing import Any

from inspector.gui.widgets.plain_text import tooltip
from inspector.gui.widgets.plots.bare_plot import BarePlot
from inspector.gui.widgets.plots.title import fit_title, title_from_left
from inspector.gui.widgets.type_scale import title_points


class TitledPlot(BarePlot):
    """A plot without an axis of steps; `title_in` gives it its title."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        title_from_left(self)
        self.hideButtons()

    def title_in(self, colour: str, text: str, second: str = "") -> None:
        """A title in a colour, that is never read as HTML, with a second line where there is one; "" for none."""
        lines = self.titleLabel.lines = tuple(line for line in (text, second) if line)
        self.setTitle(self.titleLabel.elided() if lines else None, color=colour, size=f"{title_points():g}pt")
        self.titleLabel.setToolTip(tooltip(" ".join(lines)))
        if lines:
            fit_title(self)

    def resizeEvent(self, event: Any) -> None:
        """A title has more lines where there is room for them."""
        super().resizeEvent(event)
        if self.titleLabel.lines:
            fit_title(self)
