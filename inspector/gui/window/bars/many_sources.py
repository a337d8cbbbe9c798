"""The choice of where many sequences come from: a folder, a file, or the model itself."""

from __future__ import annotations

from typing import Protocol

from PySide6.QtWidgets import QFileDialog, QMenu, QToolButton, QWidget

EXAMPLES, OWN = "examples", "subject"
"""Words in place of a path (engine/sources.py)."""


class Asker(Protocol):
    """The row that shows the choice and runs it."""

    browse: QToolButton

    @property
    def has_data(self) -> bool:
        """Whether the model brings data of its own."""

    def show_many(self, source: str, *, lines: bool = False) -> None:
        """Show it."""

    def ask(self) -> None:
        """Run it."""


def choose_many(row: Asker) -> None:
    """A menu below the button; what is chosen is shown in the row, and run."""
    source_menu(row).exec(row.browse.mapToGlobal(row.browse.rect().bottomLeft()))


def source_menu(row: Asker) -> QMenu:
    """A folder, a file with or without one sequence a line, the model's data, its examples."""
    menu = QMenu(row.browse)
    menu.addAction("A folder of files…", lambda: _path(row, folder=True, lines=False))
    menu.addAction("A file with one sequence a line…", lambda: _path(row, folder=False, lines=True))
    menu.addAction("A file with several sequences…", lambda: _path(row, folder=False, lines=False))
    own = menu.addAction("The model's own data", lambda: _run(row, OWN, lines=False))
    own.setEnabled(row.has_data)
    menu.addAction("All examples of the model", lambda: _run(row, EXAMPLES, lines=False))
    return menu


def _path(row: Asker, *, folder: bool, lines: bool) -> None:
    window: QWidget = row.browse.window()
    if folder:
        path = QFileDialog.getExistingDirectory(window, "A folder of sequences")
    else:
        path, _ = QFileDialog.getOpenFileName(window, "A file of sequences")
    if path:
        _run(row, path, lines=lines)


def _run(row: Asker, source: str, *, lines: bool) -> None:
    row.show_many(source, lines=lines)
    row.ask()
