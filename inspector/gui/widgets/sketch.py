"""A small picture of a panel: its numbers, reduced to what it can show, and how they are painted.

Colours, maps and levels are those of the panels; a picture has no axes but the ends of both in small type.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QImage, QPainter, QPen, QPolygonF

from inspector.gui.widgets.plain_text import clean
from inspector.gui.widgets.theme import Theme, colour_table

Floats = npt.NDArray[np.float64]
Cells = npt.NDArray[np.uint8]
ACROSS, DOWN = 160, 64
"""Cells of a map at most."""
ALONG = 100
"""Half the points of a line at most."""
MOST_LINES = 8
MOST_TILES = 24
BETWEEN_NAMES, LEAST_LETTERS = 8, 7
"""Pixels between the names of two lines; letters of one that is cut, at least."""
SMALL = 0.82
"""Size of the type at the ends of axes, as a part of the application's."""


@dataclass(frozen=True, slots=True)
class Line:
    """A curve: x and y (n,), in ascending x; y is a logarithm where the sketch is logarithmic, NaN is a gap."""

    name: str
    x: Floats
    y: Floats


@dataclass(frozen=True, slots=True)
class Sketch:
    """What a small picture shows: lines, a map, or tiles.

    Attributes:
        sentence: what it says. lines: curves, at most MOST_LINES of them; log: whether their y are logarithms.
        cells: (row, column) colour indices of a map; tiles: of several, with what is written below each.
        scale: the colour map of cells and tiles.
        word: what lies along the picture ("step"); ends: its first and last place.
        rows: what lies along the other side of a map, with an arrow in its direction ("↓ 32 units").
        place: of the channel, "" for none; channel: the name of the one that a click shows.
    """

    sentence: str
    lines: tuple[Line, ...] = ()
    log: bool = False
    cells: Cells | None = None
    tiles: tuple[tuple[str, Cells], ...] = ()
    scale: str = "sequential"
    word: str = ""
    ends: tuple[float, float] = (0.0, 0.0)
    rows: str = ""
    place: str = ""
    channel: str = ""


def paint_sketch(sketch: Sketch, painter: QPainter, area: QRectF, theme: Theme) -> None:
    """Draw it into a rectangle; the ground is what was there."""
    font = QFont(painter.font())
    font.setPointSizeF(max(6.5, font.pointSizeF() * SMALL))
    painter.save()
    painter.setFont(font)
    line = QFontMetricsF(font).height()
    inner = area.adjusted(0, 0, 0, -line)
    if sketch.lines:
        _paint_lines(sketch, painter, inner, theme)
    elif sketch.cells is not None:
        painter.drawImage(inner, image_of(sketch.cells, sketch.scale))
    elif sketch.tiles:
        _paint_tiles(sketch, painter, area, theme)
    if sketch.tiles == ():
        _paint_ends(sketch, painter, QRectF(area.left(), inner.bottom(), area.width(), line), theme)
    painter.restore()


def image_of(cells: Cells, scale: str) -> QImage:
    """Colour indices as an image of as many pixels, the first row at the top."""
    argb = np.ascontiguousarray(colour_table(scale)[cells])
    height, width = argb.shape
    return QImage(argb.data, width, height, 4 * width, QImage.Format.Format_ARGB32).copy()


def number_text(value: float) -> str:
    """A number at the end of an axis, in a few characters."""
    if not np.isfinite(value):
        return "NaN" if np.isnan(value) else "+∞" if value > 0 else "−∞"
    if value == int(value) and abs(value) < 1e6:
        return f"{int(value):,}".replace("-", "−")
    return f"{value:.2g}".replace("-", "−")


def limits_of(sketch: Sketch) -> tuple[float, float, float, float]:
    """(left, right, bottom, top) of the finite numbers of all lines; never empty."""
    x = np.concatenate([one.x for one in sketch.lines]) if sketch.lines else np.zeros(0)
    y = np.concatenate([one.y for one in sketch.lines]) if sketch.lines else np.zeros(0)
    x, y = x[np.isfinite(x)], y[np.isfinite(y)]
    left, right = (float(x.min()), float(x.max())) if len(x) else (0.0, 1.0)
    low, high = (float(y.min()), float(y.max())) if len(y) else (0.0, 1.0)
    if left == right:
        left, right = left - 0.5, right + 0.5
    if low == high:
        around = 0.5 if sketch.log or not low else abs(low) / 2
        low, high = low - around, high + around
    return left, right, low, high


def _paint_lines(sketch: Sketch, painter: QPainter, area: QRectF, theme: Theme) -> None:
    left, right, low, high = limits_of(sketch)
    texts = [number_text(10.0**end if sketch.log else end) for end in (high, low)]
    metrics = QFontMetricsF(painter.font())
    margin = max(metrics.horizontalAdvance(text) for text in texts) + 5
    plot = area.adjusted(margin, 2, -2, -2)
    painter.setPen(QColor(theme.muted))
    for text, y in zip(texts, (plot.top(), plot.bottom() - metrics.height()), strict=True):
        box = QRectF(area.left(), y, margin - 4, metrics.height())
        painter.drawText(box, int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter), text)
    painter.fillRect(QRectF(plot.left() - 1, plot.top(), 1, plot.height()), QColor(theme.grid))
    painter.fillRect(QRectF(plot.left() - 1, plot.bottom(), plot.width() + 1, 1), QColor(theme.grid))
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    for number, line in enumerate(sketch.lines):
        colour = QColor(theme.series[number % len(theme.series)])
        across = plot.left() + (line.x - left) / (right - left) * plot.width()
        up = plot.bottom() - (line.y - low) / (high - low) * plot.height()
        paint_polyline(painter, across, up, colour)
        broken = line.x[~np.isfinite(line.y) & np.isfinite(line.x)]
        painter.setPen(QPen(QColor(theme.error), 2))
        for at in np.unique(np.round(plot.left() + (broken - left) / (right - left) * plot.width())):
            painter.drawLine(QPointF(at, plot.bottom() - 4), QPointF(at, plot.bottom()))
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)


def paint_polyline(painter: QPainter, x: Floats, y: Floats, colour: QColor) -> None:
    """The pieces between gaps; a piece of one point is a dot."""
    painter.setPen(QPen(colour, 1.0))
    fine = np.isfinite(x) & np.isfinite(y)
    edges = np.flatnonzero(np.diff(np.concatenate(([False], fine, [False])).astype(np.int8)))
    for first, stop in edges.reshape(-1, 2):
        if stop - first == 1:
            painter.setBrush(colour)
            painter.drawEllipse(QPointF(float(x[first]), float(y[first])), 1.8, 1.8)
            painter.setBrush(Qt.BrushStyle.NoBrush)
        else:
            points = [QPointF(float(a), float(b)) for a, b in zip(x[first:stop], y[first:stop], strict=True)]
            painter.drawPolyline(QPolygonF(points))


def _paint_ends(sketch: Sketch, painter: QPainter, strip: QRectF, theme: Theme) -> None:
    """What lies along the picture, from where to where, and what lies upwards."""
    painter.setPen(QColor(theme.muted))
    first, last = (number_text(end) for end in sketch.ends)
    middle = Qt.AlignmentFlag.AlignVCenter
    said = f"{sketch.word} {first} – {last}" if first != last else f"{sketch.word} {first}"
    painter.drawText(strip, int(Qt.AlignmentFlag.AlignRight | middle), clean(said))
    if sketch.rows:
        painter.drawText(strip, int(Qt.AlignmentFlag.AlignLeft | middle), clean(sketch.rows))
    metrics, left = QFontMetricsF(painter.font()), strip.left()
    room = strip.right() - metrics.horizontalAdvance(clean(said)) - 10
    names = [clean(line.name) for line in sketch.lines] if len(sketch.lines) > 1 else []
    for number, name in enumerate(names_that_fit(names, room - left, metrics)):
        painter.setPen(QColor(theme.series[number % len(theme.series)]))
        painter.drawText(
            QRectF(left, strip.top(), room, strip.height()), int(Qt.AlignmentFlag.AlignLeft | middle), name
        )
        left += metrics.horizontalAdvance(name) + BETWEEN_NAMES


def names_that_fit(names: Sequence[str], room: float, metrics: QFontMetricsF) -> list[str]:
    """Names beside each other, cut alike where there is no room for them: of a line without a name nobody would know
    what it is. As many as can still be read, and "…" for the others."""
    widths = [metrics.horizontalAdvance(name) for name in names]
    if sum(widths) + BETWEEN_NAMES * (len(names) - 1) <= room:
        return list(names)
    for count in range(len(names), 0, -1):
        more = 0.0 if count == len(names) else BETWEEN_NAMES + metrics.horizontalAdvance("…")
        each = (room - BETWEEN_NAMES * (count - 1) - more) / count
        cut = [metrics.elidedText(name, Qt.TextElideMode.ElideRight, each) for name in names[:count]]
        if all(len(one) >= min(LEAST_LETTERS, len(name)) for one, name in zip(cut, names, strict=False)):
            return [*cut, *(["…"] if count < len(names) else [])]
    return []


def _paint_tiles(sketch: Sketch, painter: QPainter, area: QRectF, theme: Theme) -> None:
    """Tiles in as many columns as make them largest, each with its name below."""
    count, line = len(sketch.tiles), QFontMetricsF(painter.font()).height()
    sizes = []
    for columns in range(1, count + 1):
        rows = -(-count // columns)
        sizes.append((min(area.width() / columns - 3, area.height() / rows - line - 1), columns))
    side, columns = max(sizes)
    painter.setPen(QColor(theme.muted))
    for number, (name, cells) in enumerate(sketch.tiles):
        row, column = divmod(number, columns)
        box = QRectF(area.left() + column * (side + 3), area.top() + row * (side + line + 1), side, side)
        painter.fillRect(box, QColor(theme.masked))
        painter.drawImage(box, image_of(cells, sketch.scale))
        under = QRectF(box.left(), box.bottom(), side, line)
        painter.drawText(under, int(Qt.AlignmentFlag.AlignCenter), clean(name))
