"""Axes: steps labelled with tokens, and plain numbers with units."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pyqtgraph as pg
from PySide6.QtGui import QFont, QFontMetricsF

from inspector.gui.text import token
from inspector.gui.theme import Theme


class StepAxis(pg.AxisItem):  # type: ignore[misc]
    """A horizontal or vertical axis of steps; shows the token of each step where there is room for it."""

    def __init__(self, orientation: str = "bottom") -> None:
        super().__init__(orientation)
        self.enableAutoSIPrefix(False)  # steps are counted, never in thousandths
        self.names: Sequence[str] = ()
        self.longest = 10
        """Characters of a name that are shown."""
        self.setStyle(autoExpandTextSpace=False, tickTextHeight=14, tickLength=-4)

    def set_names(self, names: Sequence[str]) -> None:
        """The label of each step; none: steps are numbered."""
        if names is not self.names:
            self.names = names
            self.picture = None
            self.update()

    def tickValues(self, low: float, high: float, size: float) -> list[tuple[float, list[float]]]:
        """One tick a step where tokens fit, else round numbers of steps."""
        low, high = min(low, high), max(low, high)  # an axis that runs downward has them the other way round
        first, last = max(0, int(low + 0.999)), int(high)
        if self.names and self._fits(first, last, size):
            return [(1.0, [float(step) for step in range(first, last + 1)])]
        levels: list[tuple[float, list[float]]] = super().tickValues(low, high, size)
        whole = [(gap, [v for v in values if float(v).is_integer()]) for gap, values in levels if gap >= 1]
        return whole or [(1.0, [float(first)])]

    def _fits(self, first: int, last: int, size: float) -> bool:
        count = last - first + 1
        if count <= 0 or size / count < 7:
            return False
        metrics = QFontMetricsF(self.style["tickFont"] or QFont())
        if self.orientation in ("left", "right"):
            return size / count >= metrics.height() * 0.8
        shown = self.names[first : min(last + 1, first + 400)]
        widest = max((metrics.horizontalAdvance(token(name)) for name in shown), default=0.0)
        return size / count >= min(widest, 60.0) + 2

    def tickStrings(self, values: list[float], scale: float, spacing: float) -> list[str]:
        """Tokens where every step has a tick, numbers otherwise."""
        if self.names and spacing == 1.0 and len(values) <= 400:
            return [self._name(int(v)) for v in values]
        return [str(int(v)) for v in values]

    def _name(self, step: int) -> str:
        shown = token(self.names[step]) if 0 <= step < len(self.names) else ""
        return shown if len(shown) <= self.longest else shown[: self.longest - 1] + "…"


class LogAxis(pg.AxisItem):  # type: ignore[misc]
    """An axis of powers of ten for data that are already log10; few ticks, none on top of another."""

    def __init__(self, orientation: str = "left") -> None:
        super().__init__(orientation)
        self.enableAutoSIPrefix(False)  # its factor would be of the logarithm
        self.gap = 28.0 if orientation == "left" else 46.0
        """Pixels that a tick needs."""

    def tickValues(self, low: float, high: float, size: float) -> list[tuple[float, list[float]]]:
        """Whole decades, every so many of them; 1, 2, 5 where less than two decades are seen."""
        room = max(2.0, size / self.gap)
        if high - low >= 2:
            gap = max(1, math.ceil((high - low) / room))
            first = math.ceil(low / gap) * gap
            return [(float(gap), [float(v) for v in range(first, math.floor(high) + 1, gap)])]
        parts = (1, 2, 5) if (high - low) * 3 <= room else (1, 3) if (high - low) * 2 <= room else (1,)
        decades = range(math.floor(low), math.ceil(high) + 1)
        values = [decade + math.log10(part) for decade in decades for part in parts]
        return [(1.0, [value for value in values if low <= value <= high])]

    def tickStrings(self, values: list[float], scale: float, spacing: float) -> list[str]:
        """Plain numbers near 1, powers of ten farther away."""
        return [f"{float(f'{10**v:.3g}'):g}" if -3 < v < 4 else f"10{_raised(round(v))}" for v in values]


def _raised(exponent: int) -> str:
    return str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def style_axis(axis: Any, theme: Theme, label: str = "") -> None:
    """The theme's colours, and a label that is never read as HTML."""
    axis.setPen(pg.mkPen(theme.grid))
    axis.setTextPen(pg.mkPen(theme.muted))
    if label:
        axis.setLabel(label.replace("&", "&amp;").replace("<", "&lt;"), **{"color": theme.muted, "font-size": "9pt"})
