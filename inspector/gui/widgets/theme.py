"""Light and dark: one set of colours for widgets and plots, and the colour maps."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QPalette
from PySide6.QtWidgets import QApplication, QWidget

if TYPE_CHECKING:
    from collections.abc import Collection

    import numpy as np
    import numpy.typing as npt

MAPS = {
    "sequential": "viridis", "diverging": "CET-D1A", "log": "inferno", "ratio": "CET-D1A", "attention": "magma",
}  # fmt: skip
"""Perceptually uniform colour maps by the scale of a channel; two have a middle, at 0 and for ratios at 1."""
SEQUENTIAL = {
    "viridis": "viridis", "cividis": "cividis", "magma": "magma", "inferno": "inferno", "plasma": "plasma",
    "CET-L1": "grey",
}  # fmt: skip
DIVERGING = {"CET-D1A": "blue, white, red", "CET-D2": "green, white, violet"}
"""Maps that a user can choose, by the names that are shown: those with a middle for scales that have one."""
BEYOND_COLOUR = 0xFF0000FF
"""Of numbers beyond the range of the colours, where they are marked: at least 30 from any colour of any map in CIE
L*a*b*, for every eye."""
SERIES_LIGHT = ("#1964c3", "#bf7332", "#1c4a28", "#c7687f", "#4e2562", "#1e83a3", "#624e07", "#2a4045")
SERIES_DARK = ("#2998fa", "#eda54a", "#a5ebb5", "#dabbf2", "#e97381", "#d0ecf1", "#e69669", "#a6acb9")
"""Lines of curves. Found by a search over lightness and saturation beside the hues that one expects: any two are at
least 18 apart in CIE L*a*b* for full colour vision, protanopia and deuteranopia, and 3 : 1 from every ground. The first
five, which most plots have, are 38 apart for full colour vision: thin lines need more than areas."""
LIGHT_TEXT, DARK_TEXT, BLACK = "#ffffff", "#0e1116", "#000000"
EDGED = ("QLineEdit", "QAbstractSpinBox", "QComboBox", "QCheckBox", "QMenu")
"""Widgets with an edge, none of which fills itself with the colour of windows."""


STYLE = (
    "QMainWindow::separator { background: palette(mid); width: 4px; height: 4px; }"
    "QDockWidget::title { background: palette(button); padding: 4px 8px; }"
    "QMainWindow > QTabBar { qproperty-elideMode: ElideNone; qproperty-usesScrollButtons: true; }"
    "QMainWindow > QTabBar::tab { background: palette(button); padding: 4px 2px; border: none;"
    " border-bottom: 2px solid transparent; }"
    "QMainWindow > QTabBar::tab:hover { background: palette(base); }"
    "QMainWindow > QTabBar::tab:selected { background: palette(window); border-bottom: 2px solid palette(highlight); }"
    "#dockbar { background: palette(button); }"
    "#dockbar QToolButton { border: none; padding: 2px; }"
    "#dockbar QToolButton:hover { background: palette(mid); }"
    "QTreeView, QTableView, QPlainTextEdit, QListView { border: none; background: palette(base); }"
    "QHeaderView::section { background: palette(button); color: palette(placeholder-text); border: none;"
    " padding: 3px; }"
    "#problem { color: palette(bright-text); }"
    "QStatusBar { background: palette(button); }"
)
"""What a palette cannot express, the same for every theme: setting a style sheet reads it anew for each of some 4,000
widgets, which takes five times as long as giving them the colours of another palette (`repolish`). Sizes follow the
font."""


@dataclass(frozen=True, slots=True)
class Theme:
    """Colours as "#rrggbb". `series` are the line colours in order."""

    dark: bool
    window: str
    base: str
    raised: str
    text: str
    muted: str
    grid: str
    accent: str
    cursor: str
    warning: str
    error: str
    series: tuple[str, ...]

    def palette(self) -> QPalette:
        """The same colours for Qt's own widgets."""
        palette = QPalette()
        roles = {
            QPalette.ColorRole.Window: self.window,
            QPalette.ColorRole.WindowText: self.text,
            QPalette.ColorRole.Base: self.base,
            QPalette.ColorRole.AlternateBase: self.raised,
            QPalette.ColorRole.Text: self.text,
            QPalette.ColorRole.Button: self.raised,
            QPalette.ColorRole.ButtonText: self.text,
            QPalette.ColorRole.ToolTipBase: self.raised,
            QPalette.ColorRole.ToolTipText: self.text,
            QPalette.ColorRole.PlaceholderText: self.muted,
            QPalette.ColorRole.Highlight: self.accent,
            QPalette.ColorRole.HighlightedText: DARK_TEXT if self.dark else LIGHT_TEXT,
            QPalette.ColorRole.Link: self.accent,
            QPalette.ColorRole.BrightText: self.error,
            QPalette.ColorRole.Light: self.raised,
            QPalette.ColorRole.Mid: self.grid,
            QPalette.ColorRole.Dark: self.grid,
            QPalette.ColorRole.Shadow: self.grid,
        }
        for role, colour in roles.items():
            palette.setColor(role, QColor(colour))
        for role in (QPalette.ColorRole.Text, QPalette.ColorRole.ButtonText, QPalette.ColorRole.WindowText):
            palette.setColor(QPalette.ColorGroup.Disabled, role, QColor(self.muted))
        return palette

    @property
    def masked(self) -> str:
        """Behind cells with nothing in them: the lowest colours of the maps are almost the dark ground."""
        return self.grid if self.dark else self.base

    def apply(self, application: QApplication) -> None:
        """Give the application these colours, and fields and boxes an edge that is seen.

        Qt's Fusion draws edges in the colour of windows, 1.4 times darker: on a dark ground nothing is left of them.
        """
        application.setPalette(self.palette())
        if not self.dark:
            return
        edged = self.palette()
        edged.setColor(QPalette.ColorRole.Window, QColor(self.muted))
        for name in EDGED:
            application.setPalette(edged, name)  # type: ignore[arg-type]  # the stub says bytes, which Qt does not know


LIGHT = Theme(
    dark=False, window="#f4f5f7", base="#ffffff", raised="#e9ebef", text="#1c2128", muted="#5d6875", grid="#cfd5dc",
    accent="#1c65a3", cursor="#c2255c", warning="#885b00", error="#c02a2a", series=SERIES_LIGHT,
)  # fmt: skip
DARK = Theme(
    dark=True, window="#15191f", base="#1b2027", raised="#242b34", text="#e2e7ee", muted="#94a1b0", grid="#39424e",
    accent="#4c9be8", cursor="#ff6fa3", warning="#e5b567", error="#ff7b7b", series=SERIES_DARK,
)  # fmt: skip


def repolish(root: QWidget, leave_out: Collection[QWidget] = ()) -> None:
    """Give a widget under `STYLE`, and all that it holds, the colours that the application's palette has now.

    Qt keeps what it has read of a style sheet with each widget, also where it names roles of the palette. What is in
    `leave_out` keeps its colours, with all that it holds.
    """
    style, waiting = root.style(), [root]
    while waiting:
        widget = waiting.pop()
        if widget not in leave_out:
            style.polish(widget)
            waiting += [child for child in widget.children() if isinstance(child, QWidget)]


@cache
def luminance(rgb: int) -> float:
    """Relative luminance of 0xRRGGBB in sRGB, 0 … 1 (WCAG 2.2, "relative luminance")."""
    parts = ((rgb >> shift & 255) / 255 for shift in (16, 8, 0))
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def readable_on(ground: QColor) -> QColor:
    """White or black, whichever has the higher contrast on a colour: at least √21 = 4.58 to 1 on any.

    Contrast is (L₁ + 0.05) / (L₂ + 0.05) of the two luminances (WCAG 2.2).
    """
    light = luminance(ground.rgb() & 0xFFFFFF) + 0.05
    return QColor(LIGHT_TEXT if 1.05 / light >= light / 0.05 else BLACK)


def system_theme() -> Theme:
    """Light or dark, by the system's setting; light where it has none."""
    scheme = QApplication.styleHints().colorScheme()
    return DARK if scheme == Qt.ColorScheme.Dark else LIGHT


@cache
def colour_table(scale: str, marked: bool = False) -> npt.NDArray[np.uint32]:
    """256 ARGB colours of the map for a scale, or of a map of this name: 0 … 252 data, 253 masked (nothing there), 254
    ±∞, 255 NaN. Where what is beyond the range is `marked` it is 252, and data are 0 … 251."""
    import numpy as np
    import pyqtgraph as pg

    name = MAPS.get(scale, scale)
    data = BEYOND if marked else LAST + 1
    table: Any = pg.colormap.get(name).getLookupTable(nPts=data)
    rgb = np.asarray(table, dtype=np.uint32)[:, :3]
    packed = np.empty(256, np.uint32)
    packed[:data] = 0xFF000000 | rgb[:, 0] << 16 | rgb[:, 1] << 8 | rgb[:, 2]
    if marked:
        packed[BEYOND] = BEYOND_COLOUR
    packed[253], packed[254], packed[255] = 0x00000000, 0xFF00E5FF, 0xFFFF00B8
    return packed


LAST, MASKED = 252, 253
BEYOND = 252
INFINITE, NOT_A_NUMBER = 254, 255


def mixed(low: QColor, high: QColor, share: float) -> QColor:
    """A colour between two: the first one at 0, the second one at 1."""
    return QColor(
        *(round(a + (b - a) * share) for a, b in zip(low.getRgb()[:3], high.getRgb()[:3], strict=True))  # type: ignore[index]
    )
