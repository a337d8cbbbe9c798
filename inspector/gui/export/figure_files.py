"""Figures and numbers of a panel as files: PNG, SVG and PDF with vector axes and text; CSV, JSON and NPZ."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QMarginsF, QMimeData, QRectF, QSize, QSizeF, Qt
from PySide6.QtGui import QColor, QGuiApplication, QImage, QPageLayout, QPageSize, QPainter, QPdfWriter
from PySide6.QtSvg import QSvgGenerator

from inspector.capture import CaptureError, write_atomically
from inspector.gui.export.look import LOGICAL_DPI, SMALLEST
from inspector.gui.export.number_files import FORMATS, Numbers, axes_of, names_of
from inspector.gui.panel.base import Panel
from inspector.gui.panel.compared import compared_runs, named_data, number_title
from inspector.gui.panel.damaged import note_height, paint_note
from inspector.gui.widgets.plain_text import clean
from inspector.records.plain_text import plain_line

FIGURES = (".png", ".svg", ".pdf")
OVER = ("frame", "curve")
"""Axes of what is drawn over training."""
CAPTION = 22.0
"""Pixels of height of the line that says which runs are compared."""
SMOOTH = b'image-rendering="optimizeSpeed"'
CRISP = SMOOTH + b' style="image-rendering:pixelated"'
"""Qt asks for cells with edges by a word that browsers do not know."""
METRES_PER_INCH = 0.0254

SCALE = 2.0
"""Pixels of a PNG for each logical pixel."""
LONGEST_TITLE = 300
"""Characters of the title of a document."""


def save_figure(panel: Panel, path: Path | str, scale: float = SCALE) -> Path:
    """Write the panel's figure in the format of the suffix, with a note below it where something that it shows is
    damaged.

    Raises CaptureError with a one-line message.
    """
    target = Path(path)
    write_atomically(target, figure_bytes(panel, target, scale))
    return target


def figure_bytes(panel: Panel, target: Path, scale: float = SCALE, zoom: float = 1.0) -> bytes:
    """The panel's figure in the format of a file's suffix, a PNG with `scale` pixels for each pixel of the layout.

    With a `zoom` it is that many times as large, on paper, as it is laid out.

    Raises CaptureError with a one-line message.
    """
    made: dict[str, Callable[[Panel], bytes]] = {
        ".png": partial(png_bytes, scale=scale, zoom=zoom),
        ".svg": partial(svg_bytes, zoom=zoom), ".pdf": partial(pdf_bytes, zoom=zoom),
    }  # fmt: skip
    make = made.get(target.suffix.lower())
    if make is None:
        raise CaptureError(
            f"Cannot write a figure as {target.suffix or target.name!r}; there are {', '.join(FIGURES)}."
        )
    getattr(panel, "complete", lambda: None)()  # what it reads beside the window is there first
    return make(panel)


def _size(panel: Panel) -> QSizeF:
    """The figure with the note below it."""
    size = panel.picture_size()
    return QSizeF(max(SMALLEST[0], size.width()), max(SMALLEST[1], size.height()) + note_height(panel))


def _paint(panel: Panel, painter: QPainter, size: QSizeF) -> None:
    """Draw the panel, below it a line where two runs are compared, and a note where something is damaged.

    It always releases the device: Qt cannot free one that is being painted.
    """
    words, note = clean(compared_runs(panel)), note_height(panel)
    caption = CAPTION if words else 0.0
    bottom = size.height() - note
    try:
        panel.paint(painter, QRectF(0, 0, size.width(), bottom - caption))
        if words:
            strip = QRectF(0, bottom - caption, size.width(), caption)
            painter.fillRect(strip, QColor(panel.theme.window))
            painter.setPen(QColor(panel.theme.muted))
            shown = painter.fontMetrics().elidedText(words, Qt.TextElideMode.ElideRight, int(strip.width()) - 16)
            painter.drawText(strip, int(Qt.AlignmentFlag.AlignCenter), shown)
        if note:
            paint_note(panel, painter, QRectF(0, bottom, size.width(), note))
    finally:
        painter.end()


def picture(panel: Panel, scale: float = SCALE, zoom: float = 1.0) -> QImage:
    """The figure as an image, `scale` pixels for each of its layout, with the run's name in its metadata."""
    size = _size(panel)
    image = QImage(QSize(round(size.width() * scale), round(size.height() * scale)), QImage.Format.Format_ARGB32)
    painter = QPainter(image)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.scale(scale, scale)
    _paint(panel, painter, size)
    dots = round(
        LOGICAL_DPI * scale / zoom / METRES_PER_INCH
    )  # its size on paper; before it is painted, texts would grow
    image.setDotsPerMeterX(dots)
    image.setDotsPerMeterY(dots)
    for name, text in about(panel).items():
        image.setText(name, text)
    return image


def about(panel: Panel) -> dict[str, str]:
    """The metadata of a file: panel, run, checkpoint."""
    found = {"Software": "inspector", "Title": panel.title}
    if panel.capture is not None:
        found["Run"] = panel.capture.start.title
        found["Checkpoint"] = panel.capture.start.checkpoint
        made_by = panel.capture.start.meta.get("made_by")
        if isinstance(made_by, str):
            found["Made by"] = made_by
    if compared_runs(panel):
        found["Shown"] = compared_runs(panel)
    return found


def _title(panel: Panel) -> str:
    """The title of a document: panel, run, and which runs are compared."""
    known = about(panel)
    title = f"{panel.title}: {known.get('Run', '')}" + (f" ({known['Shown']})" if "Shown" in known else "")
    return plain_line(title, LONGEST_TITLE)  # XML has no control characters


def png_bytes(panel: Panel, scale: float = SCALE, zoom: float = 1.0) -> bytes:
    """The figure as PNG, `scale` pixels for each of its layout."""
    data = QByteArray()
    buffer = QBuffer(data)
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    picture(panel, scale, zoom).save(buffer, "PNG")  # type: ignore[call-overload]
    return bytes(data.data())


def svg_bytes(panel: Panel, zoom: float = 1.0) -> bytes:
    """The figure as SVG; lines and text are vectors, heatmaps are embedded images."""
    size = _size(panel)
    data = QByteArray()
    buffer = QBuffer(data)
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    generator = QSvgGenerator(QSvgGenerator.SvgVersion.Svg11)  # the other version draws beyond the axes: it cannot clip
    generator.setOutputDevice(buffer)
    generator.setResolution(panel.logicalDpiX())  # axes are drawn for this resolution; another shrinks them
    generator.setSize((size * zoom).toSize())
    generator.setViewBox(QRectF(0, 0, size.width(), size.height()))
    generator.setTitle(_title(panel))
    painter = QPainter(generator)
    _paint(panel, painter, size)
    return bytes(data.data()).replace(SMOOTH, CRISP)


def pdf_bytes(panel: Panel, zoom: float = 1.0) -> bytes:
    """The figure as one PDF page of its own size."""
    size, dpi = _size(panel), panel.logicalDpiX()
    data = QByteArray()
    buffer = QBuffer(data)
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    writer = QPdfWriter(buffer)
    writer.setResolution(dpi)
    writer.setTitle(_title(panel))
    writer.setCreator("inspector")
    inches = QSizeF(size.width() * zoom / dpi, size.height() * zoom / dpi)
    page = QPageSize(inches, QPageSize.Unit.Inch, "figure", QPageSize.SizeMatchPolicy.ExactMatch)
    writer.setPageLayout(QPageLayout(page, QPageLayout.Orientation.Portrait, QMarginsF(0, 0, 0, 0)))
    painter = QPainter(writer)
    painter.scale(zoom, zoom)
    _paint(panel, painter, size)
    return bytes(data.data())


def copy_figure(panel: Panel) -> None:
    """Put the figure on the clipboard, as an image and as SVG."""
    mime = QMimeData()
    mime.setImageData(picture(panel))
    mime.setData("image/svg+xml", QByteArray(svg_bytes(panel)))
    QGuiApplication.clipboard().setMimeData(mime)


def forget_clipboard() -> None:
    """Release what was copied, before Qt ends: a clipboard that outlives the interpreter crashes the process.

    Only where the display server would lose the contents anyway; Windows and macOS keep the clipboard.
    """
    if QGuiApplication.platformName() not in ("windows", "cocoa"):
        QGuiApplication.clipboard().clear()


def save_data(panel: Panel, path: Path | str) -> Path:
    """Write what the panel shows as numbers; what is not known is an empty cell, or True in a mask beside them.

    Raises CaptureError with a one-line message.
    """
    target = Path(path)
    found = numbers_of(panel)
    write = FORMATS.get(target.suffix.lower())
    if write is None:
        raise CaptureError(f"Cannot write numbers as {target.suffix or target.name!r}; there are {', '.join(FORMATS)}.")
    write_atomically(target, write(found))
    return target


def numbers_of(panel: Panel) -> Numbers:
    """What the panel shows as numbers, with the names of their axes. Raises CaptureError where it shows nothing."""
    over = panel.over.on
    plain = panel.over.data() if over else marked(panel, panel.data())
    named = plain if over else named_data(panel, plain)
    if not named:
        raise CaptureError(f"{panel.title} shows nothing, so there are no numbers to write.")
    told = {} if over else panel.data_axes()
    own = [
        OVER[: array.ndim] if over else told[name][0] if name in told else axes_of(panel.capture, name, array)
        for name, array in plain.items()
    ]
    words = [{own[n][-1]: told[name][1]} if name in told else names_of(panel.capture, name)
             for n, name in enumerate(plain)]  # fmt: skip
    axes, names = (dict(zip(named, each, strict=True)) for each in (own, words))
    return Numbers(named, axes, number_title(panel), about(panel), names)


def marked(panel: Panel, found: dict[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
    """The same, whole channels masked where they are not known, whatever their values are."""
    capture = panel.capture
    if capture is None:
        return found
    result = dict(found)
    for name, array in found.items():
        known = capture.known(name, panel.frame) if name in capture.channels else None
        if known is not None and known.shape == array.shape and not known.all():
            result[name] = np.ma.MaskedArray(np.ma.getdata(array), mask=~known)
    return result
