"""The bar that says which files of the program could not be loaded: what they would add is missing everywhere else."""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton

from inspector.gui.widgets.plain_text import clean, tooltip
from inspector.gui.widgets.theme import Theme
from inspector.gui.window.bars.damage_bar import OneLine


class BrokenBar(QFrame):
    """Hidden while every file of every registry could be loaded; *Hide* takes it away until another one is broken."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("broken")
        self.line = OneLine()
        self.close_it = QPushButton("Hide")
        self.close_it.setToolTip("Hide this line; the log keeps it")
        self.close_it.clicked.connect(self.hide)
        row = QHBoxLayout(self)
        row.setContentsMargins(8, 2, 8, 2)
        row.addWidget(self.line, 1)
        row.addWidget(self.close_it)
        self._shown: tuple[str, ...] = ()
        self.hide()

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self.setStyleSheet(f"#broken {{ background: {theme.raised}; border-bottom: 2px solid {theme.warning}; }}")

    def show_broken(self, found: Iterable[str]) -> None:
        """Say what could not be loaded: "file: reason" each."""
        shown = tuple(dict.fromkeys(found))
        if shown == self._shown:
            return
        self._shown = shown
        first = shown[0] if shown else ""
        said = f"Could not be loaded, and is missing: {first}" + (f"; and {len(shown) - 1} more" if shown[1:] else "")
        self.line.say(said)
        self.line.setToolTip(tooltip("\n".join(shown)))
        self.setAccessibleName(clean(said))
        self.setVisible(bool(shown))
