"""A panel's figure as the result of a notebook's cell, or to be saved: drawn once, kept as PNG and SVG."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.capture import Capture, CaptureError, LogView, summary, write_atomically
from inspector.gui.export.headless import application, staged, why_nothing
from inspector.gui.export.look import Look
from inspector.records import ViewAt

SIZE = (900, 520)
MOST_SVG = 2_000_000
"""Bytes of SVG beyond which a notebook shows the PNG alone: it keeps in its file what it shows."""
_running: list[object] = []
"""Qt's application, which lives as long as the process: a notebook has one for all of its cells."""


@dataclass(frozen=True, slots=True)
class ShownFigure:
    """What a cell shows: `numbers` are the arrays that are drawn, by name; `lost`: what is damaged of them."""

    title: str
    png: bytes = field(repr=False)
    svg: bytes = field(repr=False)
    numbers: dict[str, npt.NDArray[Any]] = field(repr=False)
    lost: str = ""

    def _repr_png_(self) -> bytes:
        return self.png

    def _repr_svg_(self) -> str | None:
        return self.svg.decode() if len(self.svg) <= MOST_SVG else None

    def save(self, path: Path | str) -> Path:
        """Write it as .png or .svg. Raises CaptureError."""
        target = Path(path)
        data = {".png": self.png, ".svg": self.svg}.get(target.suffix.lower())
        if data is None:
            raise CaptureError(f"Cannot write this as {target.suffix or target.name!r}; there are .png and .svg.")
        write_atomically(target, data)
        return target


def shown_figure(opened: Capture | LogView, at: ViewAt, look: Look) -> ShownFigure:
    """Draw a panel of what is open. Raises CaptureError with a one-line message."""
    if threading.current_thread() is not threading.main_thread():
        raise CaptureError("Qt draws in the main thread alone: call show() there.")
    if not _running:
        _running.append(application())
    from inspector.gui.export.figure_files import numbers_of, png_bytes, svg_bytes
    from inspector.gui.panel.damaged import damage_in

    with staged(opened, at, look) as (_, panel):
        if (why := why_nothing(panel, damaged=True)) is not None:
            raise why
        getattr(panel, "complete", lambda: None)()
        png, svg = png_bytes(panel, look.scale, look.zoom), svg_bytes(panel, look.zoom)
        try:
            numbers = {name: np.asanyarray(array).copy() for name, array in numbers_of(panel).arrays.items()}
        except CaptureError:  # a page of texts
            numbers = {}
        return ShownFigure(panel.title, png, svg, numbers, summary(damage_in(panel)))
