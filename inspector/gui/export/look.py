"""How a figure that goes into a file looks: its size, colours, font and resolution. It is made without Qt."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from inspector.capture import CaptureError

if TYPE_CHECKING:
    from inspector.gui.widgets.theme import Theme

COLOURS = ("light", "dark", "paper")
"""Paper: the light colours on white."""
LOGICAL_DPI = 96
"""Logical pixels of an inch, by which a size in mm or inches is turned into pixels."""
PER_UNIT = {"": 1.0, "px": 1.0, "mm": LOGICAL_DPI / 25.4, "cm": LOGICAL_DPI / 2.54, "in": float(LOGICAL_DPI)}
SIZE = (1200, 760)
"""Logical pixels of a panel for which no size was asked."""
USUAL = 9.0
"""Points for which panels are laid out."""
SMALLEST, LARGEST = (160, 120), 8000
"""Logical pixels (width, height) below which no panel can be read, and the most of either."""
FONTS, RESOLUTIONS = (4.0, 40.0), (36, 1200)
_SIZE = re.compile(r"(?P<width>\d+(\.\d+)?)\s*[x×]\s*(?P<height>\d+(\.\d+)?)\s*(?P<unit>px|mm|cm|in)?")


@dataclass(frozen=True, slots=True)
class Look:
    """What is the same for every figure of an export.

    Attributes:
        size: (width, height) of the picture in logical pixels of 1/96 inch; None: that of a panel of 1200 × 760.
        colours: "light", "dark" or "paper".
        font: points of its texts (of titles and axes; legends have a ninth less), 0 for the system's. Everything else,
            margins and lines too, has the size that belongs to it: a figure is laid out for texts of USUAL points, in a
            room that is larger by as much as its own are smaller.
        dpi: pixels an inch of a PNG and of an animation.
    """

    size: tuple[int, int] | None = None
    colours: str = "light"
    font: float = 0.0
    dpi: int = 2 * LOGICAL_DPI

    def __post_init__(self) -> None:
        """Raises CaptureError with a one-line message."""
        if self.colours not in COLOURS:
            raise CaptureError(f"There are no colours {self.colours!r}; there are {', '.join(COLOURS)}.")
        if self.font and not FONTS[0] <= self.font <= FONTS[1]:
            raise CaptureError(f"A font of {self.font:g} points cannot be used; {FONTS[0]:g} to {FONTS[1]:g} can.")
        if not RESOLUTIONS[0] <= self.dpi <= RESOLUTIONS[1]:
            raise CaptureError(f"{self.dpi} dots an inch cannot be used; {RESOLUTIONS[0]} to {RESOLUTIONS[1]} can.")
        width, height = self.laid_out
        if width < SMALLEST[0] or height < SMALLEST[1] or max(width, height) > LARGEST:
            raise CaptureError(f"Texts of {self.font:g} points and a figure of this size do not fit together.")

    @property
    def zoom(self) -> float:
        """By how much everything is larger than it is laid out."""
        return self.font / USUAL if self.font else 1.0

    @property
    def laid_out(self) -> tuple[int, int]:
        """(width, height) in pixels of the layout."""
        width, height = self.size or SIZE
        return round(width / self.zoom), round(height / self.zoom)

    @property
    def scale(self) -> float:
        """Pixels for each pixel of the layout."""
        return self.dpi / LOGICAL_DPI * self.zoom

    @property
    def theme(self) -> Theme:
        """The colours."""
        from inspector.gui.widgets.theme import DARK, LIGHT

        white = replace(LIGHT, window="#ffffff", base="#ffffff")
        return {"light": LIGHT, "dark": DARK, "paper": white}[self.colours]

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Texts of panels that are made meanwhile have the usual size. Only for a process without a window."""
        from PySide6.QtGui import QFont
        from PySide6.QtWidgets import QApplication

        before = QApplication.font()
        if self.font:
            font = QFont(before)
            font.setPointSizeF(USUAL)
            QApplication.setFont(font)
        try:
            yield
        finally:
            QApplication.setFont(before)


def size_of(text: str) -> tuple[int, int]:
    """ "900x600", "85x60mm", "3.3x2.2in" as logical pixels. Raises CaptureError."""
    found = _SIZE.fullmatch(text.strip().lower())
    if found is None:
        raise CaptureError(f"{text!r} is no size: WIDTHxHEIGHT is expected, as in 900x600, 85x60mm or 3.3x2.2in.")
    factor = PER_UNIT[found["unit"] or ""]
    width, height = (round(min(float(found[name]), 1e6) * factor) for name in ("width", "height"))
    if width < SMALLEST[0] or height < SMALLEST[1] or max(width, height) > LARGEST:
        raise CaptureError(
            f"{text} is {width} × {height} pixels of 1/96 inch; {SMALLEST[0]} × {SMALLEST[1]} to {LARGEST:,} × "
            f"{LARGEST:,} can be drawn."
        )
    return width, height
