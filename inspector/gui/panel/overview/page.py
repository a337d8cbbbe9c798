"""The page of the overview: headings, findings, pictures, notes, and what was not looked at, one below the other."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QFrame, QLabel, QScrollArea, QVBoxLayout, QWidget

from inspector.gui.panel.overview.finding_cards import FindingCards
from inspector.gui.panel.overview.notes_list import NotesList
from inspector.gui.panel.overview.pictures import pictures_in_order
from inspector.gui.widgets.cards import TILE, PictureTile
from inspector.gui.widgets.described import InWords, Role
from inspector.gui.widgets.plain_text import breakable, plain_label
from inspector.gui.widgets.sketch import Sketch
from inspector.gui.widgets.theme import Theme
from inspector.gui.widgets.tile_grid import TileGrid
from inspector.records.plain_text import plain_line

MARGIN, SPACE = 16, 8
MOST_PICTURES = 12
WIDER, MOST_WIDTH = 1.05, 12_000
"""Steps in which a page becomes wider until it fits into a figure of a file, and the most of pixels of its width."""


class OverviewPage(InWords, QScrollArea):
    """`pictured(key)` when a picture is clicked."""

    accessible_role = Role.Document
    pictured = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName("Overview of what is open")
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.title, self.about = _heading(1.45), _text()
        self.summary, self.looked = _text(), _text()
        self.findings, self.notes = FindingCards(), NotesList()
        self.grid = TileGrid(TILE)
        self.tiles: dict[str, PictureTile] = {}
        self._shown: list[PictureTile] = []
        self._chain: list[QWidget] = []
        self._noted = _heading(1.1, "Notes")
        self._glance, self._looked = _heading(1.1, "At a glance"), _heading(1.1, "What was looked at")
        self._muted = [self.about, self.looked]
        self.inside = QWidget()
        layout = QVBoxLayout(self.inside)
        layout.setContentsMargins(MARGIN, 10, MARGIN, MARGIN)
        layout.setSpacing(SPACE)
        parts: list[QWidget] = [self.title, self.about, _heading(1.1, "Findings"), self.summary, self.findings]
        parts += [self._glance, self.grid, self._noted, self.notes, self._looked, self.looked]
        for part in parts:
            layout.addWidget(part)
        layout.addStretch(1)
        self.setWidget(self.inside)

    def show_about(self, title: str, lines: Sequence[str]) -> None:
        """What the capture is of."""
        self.title.setText(breakable(plain_line(title)))  # a run of older versions may have line breaks
        self.about.setText("\n".join(breakable(plain_line(line)) for line in lines))  # the text that ran has breaks too

    def show_summary(self, text: str) -> None:
        """What the findings come to."""
        self.summary.setText(breakable(text))

    def show_looked(self, lines: Sequence[str]) -> None:
        """Which rules looked, which did not, and why."""
        self.looked.setText("\n".join(map(breakable, lines)))
        for widget in (self._looked, self.looked):
            widget.setVisible(bool(lines))

    def show_pictures(self, found: dict[str, tuple[Sketch | None, str]]) -> None:
        """The pictures that there is something for, in their order."""
        shown: list[PictureTile] = []
        for key, picture in pictures_in_order() if found else ():  # the thread that found them has imported them
            sketch, problem = found.get(key, (None, ""))
            if (sketch is None and not problem) or len(shown) == MOST_PICTURES:
                continue
            shown.append(self._tile(key, picture.title))
            shown[-1].show_sketch(sketch, problem)
        self._shown = shown
        self.grid.show_tiles(shown)
        self._glance.setVisible(bool(shown))
        self.grid.setVisible(bool(shown))

    def _tile(self, key: str, title: str) -> PictureTile:
        if key not in self.tiles:
            tile = self.tiles[key] = PictureTile(title, self.grid)
            tile.clicked.connect(lambda _checked=False: self.pictured.emit(key))
            tile.set_theme(self.findings.theme)
        return self.tiles[key]

    def order_keys(self) -> None:
        """Tab goes down the page: what is made later would come last."""
        notes = [*self.notes.cards, self.notes.about, self.notes.field, self.notes.button]
        chain: list[QWidget] = [*self.findings.cards, self.findings.more, *self._shown, *notes]
        if chain != self._chain:
            self._chain = chain
            for one, after in pairwise(chain):
                QWidget.setTabOrder(one, after)

    def laid_out(self, width: int = 0) -> QWidget:
        """The whole page at a width, or at its own, as high as all of it needs there."""
        layout = self.inside.layout()
        assert layout is not None
        layout.invalidate()
        layout.activate()
        width = width or self.inside.width()
        self.inside.resize(width, max(1, layout.totalHeightForWidth(width)))
        layout.activate()
        return self.inside

    def without_controls(self) -> None:
        """For a file: notes are read there, and none is written; the page is not made as wide as what is in view."""
        self.setWidgetResizable(False)
        self.notes.only_read()
        self._noted.setVisible(self.notes.any_shown)
        self.notes.setVisible(self.notes.any_shown)

    def laid_out_in(self, width: int, height: int) -> QWidget:
        """For a file: as wide as it takes to fit into a size, made smaller; without what was looked at first."""
        listed = bool(self.looked.text())
        for widget in (self._looked, self.looked):
            widget.setVisible(listed)
        if listed and self.laid_out(max(width, self.inside.minimumSizeHint().width())).height() > height:
            for widget in (self._looked, self.looked):
                widget.hide()
        wide = max(width, self.inside.minimumSizeHint().width())
        while wide < MOST_WIDTH and self.laid_out(wide).height() * width > height * wide:
            wide = int(wide * WIDER) + 1
        return self.laid_out(wide)

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self.findings.set_theme(theme)
        self.notes.set_theme(theme)
        for tile in self.tiles.values():
            tile.set_theme(theme)
        for label in self._muted:
            label.setStyleSheet(f"color: {theme.muted};")


def _heading(size: float, text: str = "") -> QLabel:
    label = plain_label(text)
    font = QFont(label.font())
    font.setPointSizeF(font.pointSizeF() * size)
    font.setBold(True)
    label.setFont(font)
    label.setWordWrap(True)
    return label


def _text() -> QLabel:
    label = plain_label()
    label.setWordWrap(True)
    label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    return label
