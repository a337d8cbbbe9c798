"""Axes: steps labelled with tokens, and plain numbers with units."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pyqtgraph as pg
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QFont, QFontMetricsF

from inspector.gui.widgets.numbers import round_step
from inspector.gui.widgets.plain_text import token
from inspector.gui.widgets.plots.quiet_axis import QuietAxis
from inspector.gui.widgets.theme import Theme
from inspector.gui.widgets.type_scale import share_of_pixels, title_points

CLOSE = 0.7
"""The least part of a tick's usual space that two neighbours need."""
LINE = 13.0
"""Pixels that a line of numbers needs in the usual size of texts."""
NARROW = 0.35
"""Decades below which round numbers serve better than parts of a decade: from 0.86 to 1.16 those are 0.9 and 1."""


FEW = 10
"""Steps that are all numbered where no two round numbers are in view."""


APART = 8.0
"""Pixels between names of which only some are written."""
LEAST_NAMES = 3
"""Names, of which only some are written, below which steps are numbered instead: one or two say nothing of a text."""


MOST_NAMES = 400
"""Steps in view above which they are numbered."""


class StepAxis(QuietAxis):
    """A horizontal or vertical axis of steps; shows the token of each step where there is room for it."""

    def __init__(self, orientation: str = "bottom") -> None:
        super().__init__(orientation)
        self.enableAutoSIPrefix(False)  # steps are counted, never in thousandths
        self.names: Sequence[str] = ()
        self.stands_for: Sequence[int] | None = None
        """What stands at step 0, 1, … where names have no room; None: the steps themselves."""
        self.longest = 10
        """Characters of a name that are shown."""
        self.turns = False
        """Whether names that do not fit beside each other may be written downwards, given the height."""
        self.thins = False
        """Whether every second, fifth, tenth … name is written where not all of them fit, each with its number."""
        self.numbered = True
        """Whether those have their numbers: names that are distances say themselves how far apart they are."""
        self.counts = True
        """Whether it is of steps; else of any numbers, which have fractions."""
        self._way = ""
        """How the names are written in the range that is drawn: "across", "turned", "thinned", or "" for numbers."""
        height = max(14, math.ceil(QFontMetricsF(QFont()).height()) + 1)  # "␣" and "_" stand at the bottom of a line
        self.setStyle(autoExpandTextSpace=False, tickTextHeight=height, tickLength=-4)

    def set_names(self, names: Sequence[str]) -> None:
        """The label of each step; none: steps are numbered."""
        if names is not self.names:
            self.names = names
            self.picture = None
            self.update()

    def tickValues(self, low: float, high: float, size: float) -> list[tuple[float, list[float]]]:
        """One tick a step where tokens fit, else round numbers of steps."""
        low, high = min(low, high), max(low, high)  # an axis that runs downward has them exchanged
        first, last = max(0, int(low + 0.999)), int(high)
        self._way = self.written(first, last, size)
        if self._way:
            return [(1.0, [float(step) for step in range(first, last + 1)])]
        if self.thins and (found := self._thinned(first, last, size)) is not None:
            return [found]
        levels: list[tuple[float, list[float]]] = super().tickValues(low, high, size)
        if not self.counts:
            return levels[:1]
        whole = [(gap, [v for v in values if float(v).is_integer()]) for gap, values in levels if gap >= 1]
        if sum(len(values) for _, values in whole) < 2:  # so few steps that at most one round number is among them
            return [(1.0, [float(step) for step in range(first, min(last, first + FEW) + 1)])]
        return self._roomy(whole, size / (high - low) if high > low else 0.0)

    def _roomy(self, levels: list[tuple[float, list[float]]], scale: float) -> list[tuple[float, list[float]]]:
        """The coarsest numbers, and only every second, third … of them where they would touch; `scale`: pixels of a
        step."""
        gap, values = levels[0]
        if self.orientation in ("left", "right") or len(values) < 2:
            return levels
        metrics = QFontMetricsF(self.style["tickFont"] or QFont())
        needed = max(metrics.horizontalAdvance(self._number(int(value))) for value in values) + APART / 2
        every = math.ceil(needed / max(1e-9, gap * scale))
        return levels if every <= 1 else [(gap * every, values[::every])]

    def written(self, first: int, last: int, size: float) -> str:
        """How the names of these steps are written; all of them or none, never names beside numbers."""
        if not self.names or last - first >= MOST_NAMES:
            return ""
        if self._fits(first, last, size):
            return "across"
        height = QFontMetricsF(self.style["tickFont"] or QFont()).height()
        return "turned" if self.turns and size / max(1, last - first + 1) >= height * 0.8 else ""

    def _thinned(self, first: int, last: int, size: float) -> tuple[float, list[float]] | None:
        """(n, every n-th step), n the least round number whose names have room; None where fewer than three have."""
        last = min(last, len(self.names) - 1)
        metrics = QFontMetricsF(self.style["tickFont"] or QFont())
        for every in (unit * 10**power for power in range(7) for unit in (1, 2, 5)):
            steps = list(range(-(-first // every) * every, last + 1, every))
            room = size / max(1, last - first + 1) * every
            if len(steps) < LEAST_NAMES:
                break
            if room < metrics.height() * CLOSE:  # no text of any length fits
                continue
            upright = self.orientation in ("left", "right")
            texts = [] if upright else [self._thin_name(step) for step in steps]
            needed = metrics.height() if upright else max(map(metrics.horizontalAdvance, texts)) + APART
            if room >= needed:
                self._way = "thinned"
                return float(every), [float(step) for step in steps]
        return None

    def _thin_name(self, step: int) -> str:
        """A name with its number, which says how far apart those that are written are."""
        return f"{self._name(step)} {step}".lstrip() if self.numbered else self._name(step)

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
        """Tokens where every step has a tick and room for one, numbers otherwise."""
        if self._way == "thinned":
            return [self._thin_name(int(v)) for v in values]
        if not self.counts:
            return [f"{value:.4g}".replace("-", "−") for value in values]
        return [self._name(int(v)) if self._way else self._number(int(v)) for v in values]

    def _number(self, step: int) -> str:
        if self.stands_for is None:
            return str(step)
        return str(self.stands_for[step]) if 0 <= step < len(self.stands_for) else ""

    def drawPicture(self, painter: Any, axis: Any, ticks: Any, texts: Any) -> None:
        """Names that are turned are drawn downwards from their ticks; single characters that have room stand upright,
        longer names do not, which would run together between those that are turned."""
        turned = self._way == "turned"
        super().drawPicture(painter, axis, ticks, [] if turned else texts)
        if not turned:
            return
        painter.setFont(self.style["tickFont"] or QFont())
        painter.setPen(self.textPen())
        centres = sorted(rect.center().x() for rect, _, _ in texts)
        room_of_each = min((b - a for a, b in pairwise(centres)), default=self.width())
        metrics = QFontMetricsF(painter.font())
        for rect, _, text in texts:
            if len(text) == 1 and metrics.horizontalAdvance(text) <= room_of_each:
                upright = QRectF(rect.center().x() - room_of_each / 2, rect.top(), room_of_each, rect.height())
                painter.drawText(upright, int(Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextDontClip), text)
                continue
            painter.save()
            painter.translate(rect.center().x(), rect.top())
            painter.rotate(90)
            room = QRectF(0, -rect.height() / 2, self.height(), rect.height())
            painter.drawText(room, int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter), text)
            painter.restore()

    def _name(self, step: int) -> str:
        shown = token(self.names[step]) if 0 <= step < len(self.names) else ""
        return shown if len(shown) <= self.longest else shown[: self.longest - 1] + "…"


class ValueAxis(QuietAxis):
    """An axis of plain numbers whose labels never touch; with `whole` it counts rows, and 0.5 is not a tick."""

    def __init__(self, orientation: str = "left", *, whole: bool = False) -> None:
        super().__init__(orientation)
        self.enableAutoSIPrefix(False)  # "value (x0.001)" reads as a unit
        self.whole = whole
        self.numbers: Sequence[int] | None = None
        """What stands at row 0, 1, …, where rows are sorted: the number of the unit that is drawn there."""
        self.gap = 24.0 if orientation == "left" else 42.0
        """Pixels that a tick needs."""

    def tickValues(self, low: float, high: float, size: float) -> list[tuple[float, list[float]]]:
        """Round numbers, as many as there is room for, and two if there is room for two."""
        low, high = min(low, high), max(low, high)
        room = max(2.0, size / self.gap)
        for finer in (1.0, 1.5, 2.25):
            step = round_step(high - low, room * finer)
            step = float(max(1, math.ceil(step))) if self.whole else step
            values = [n * step for n in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]
            if len(values) > 1:
                break
        fitting = max(
            2, int(size / (LINE * max(1.0, share_of_pixels()) if self.orientation == "left" else CLOSE * self.gap)) + 1
        )
        every = -(-(len(values) - 1) // (fitting - 1)) if len(values) > fitting else 1
        return [(step * every, values[::every])]

    def set_numbers(self, numbers: Sequence[int] | None) -> None:
        """The number of the unit that each row shows; None where row i is unit i."""
        self.numbers = numbers
        self.picture = None
        self.update()

    def tickStrings(self, values: list[float], scale: float, spacing: float) -> list[str]:
        """The numbers at the ticks; of sorted rows those of their units."""
        if self.numbers is None:
            plain: list[str] = super().tickStrings(values, scale, spacing)
            return plain
        return [str(self.numbers[int(v)]) if 0 <= v < len(self.numbers) else "" for v in values]


class LogAxis(QuietAxis):
    """An axis of powers of ten for data that are already log10; few ticks, none on top of another."""

    def __init__(self, orientation: str = "left") -> None:
        super().__init__(orientation)
        self.enableAutoSIPrefix(False)  # its factor would apply to the logarithm
        self.gap = 28.0 if orientation == "left" else 46.0
        """Pixels that a tick needs."""

    def tickValues(self, low: float, high: float, size: float) -> list[tuple[float, list[float]]]:
        """Whole decades, every so many of them;
        parts of a decade, or any round numbers, where few decades are in view."""
        room = max(2.0, size / self.gap)
        if high - low >= 2:
            gap = max(1, math.ceil((high - low) / room))
            while gap > 1 and math.floor(high / gap) - math.ceil(low / gap) < 1:
                gap -= 1  # one tick alone does not show the scale
            return [(float(gap), [float(gap * n) for n in range(math.ceil(low / gap), math.floor(high / gap) + 1)])]
        if high - low < NARROW:
            return [(1.0, _between(10**low, 10**high, room))]
        decades = range(math.floor(low), math.ceil(high) + 1)
        for parts in (range(1, 10), (1, 2, 5), (1, 3), (1,)):
            every = [decade + math.log10(part) for decade in decades for part in parts]
            values = [value for value in every if low <= value <= high]
            closest = min((b - a for a, b in pairwise(values)), default=0.0)
            if len(values) > 1 and closest * size >= (high - low) * self.gap * CLOSE:
                return [(1.0, values)]
        return [(1.0, _between(10**low, 10**high, room))]

    def tickStrings(self, values: list[float], scale: float, spacing: float) -> list[str]:
        """Plain numbers near 1, powers of ten farther away;
        more digits where two ticks would have the same text with three."""
        shown = [_power(v, 3) for v in values]
        return shown if len(set(shown)) == len(shown) else [_power(v, 6) for v in values]


def _between(low: float, high: float, room: float) -> list[float]:
    """log10 of round numbers between two numbers that are less than a decade apart."""
    for finer in (1.0, 2.0, 4.0):
        step = round_step(high - low, room * finer)
        values = [n * step for n in range(math.ceil(low / step), math.floor(high / step) + 1) if n * step > 0]
        if len(values) > 1:
            break
    every = max(1, math.ceil(len(values) / max(2.0, room)))  # finer ones may be too many
    return [math.log10(value) for value in values[::every]]


def _power(exponent: float, digits: int) -> str:
    if -3 < exponent < 4:
        return f"{float(f'{10**exponent:.{digits}g}'):g}"
    return f"10{_raised(round(exponent))}" if abs(exponent - round(exponent)) < 1e-9 else f"{10**exponent:.3g}"


def _raised(exponent: int) -> str:
    return str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def style_axis(axis: Any, theme: Theme, label: str = "") -> None:
    """The theme's colours, and a label that is never read as HTML; nothing is laid out again where both are there."""
    points = title_points()
    if getattr(axis, "styled", None) == (theme, label, points):
        return
    axis.styled = (theme, label, points)
    axis.setPen(pg.mkPen(theme.grid))
    axis.setTextPen(pg.mkPen(theme.muted))
    if label or axis.labelText:
        axis.setLabel(
            label.replace("&", "&amp;").replace("<", "&lt;"), **{"color": theme.muted, "font-size": f"{points:g}pt"}
        )
