"""The documentation in a window of its own: its pages on the left, found by words that they hold, the page beside."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import (
    QDialog,
    QHBoxLayout,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QPushButton,
    QSplitter,
    QVBoxLayout,
    QWidget,
)

from inspector.gui.dialogs.help.page_view import PageView
from inspector.gui.widgets.plain_text import clean, plain_label
from inspector.workspace.documentation import FIRST, Page, pages

NONE = "The pages of the documentation were not installed with this package."
NOWHERE = "No page has all of these words."
OUTSIDE = "{} is a file of the checkout, and no page."
HISTORY = "changelog"
PAGE = Qt.ItemDataRole.UserRole


class Reader(QDialog):
    """All pages. It stays open beside the window while one works."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("Documentation")
        self.words = QLineEdit()
        self.words.setPlaceholderText("Find in all pages")
        self.words.setAccessibleName("Find in all pages")
        self.words.setClearButtonEnabled(True)
        self.list = QListWidget()
        self.list.setAccessibleName("Pages")
        self.list.setTextElideMode(Qt.TextElideMode.ElideRight)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.note = plain_label("")
        self.note.setWordWrap(True)
        self.view = PageView()
        self.back, self.forward = QPushButton("← Back"), QPushButton("Forward →")
        self.copy = QPushButton("Copy page")
        self._visited: list[tuple[Page, int]] = []
        self._ahead: list[tuple[Page, int]] = []
        self._texts = {one.name: _read(one) for one in pages()}
        self._lay_out()
        self._connect()
        self._fill()
        self.resize(1020, 680)

    def open(self, name: str = FIRST, heading: str = "") -> None:
        """Show the page of a name; where it has none, the first."""
        known = {one.name: one for one in pages()}
        page = known.get(name) or next(iter(known.values()), None)
        if page is not None:
            self._go(page, heading)

    def _lay_out(self) -> None:
        left, right = QWidget(), QWidget()
        column = QVBoxLayout(left)
        for widget in (self.words, self.list, self.note):
            column.addWidget(widget)
        row = QHBoxLayout()
        for button in (self.back, self.forward, self.copy):
            button.setAutoDefault(False)
            row.addWidget(button)
        row.insertStretch(2)
        page = QVBoxLayout(right)
        page.addLayout(row)
        page.addWidget(self.view, 1)
        split = QSplitter()
        split.addWidget(left)
        split.addWidget(right)
        split.setSizes([260, 760])
        split.setStretchFactor(1, 1)
        for one in (column, page):
            one.setContentsMargins(0, 0, 0, 0)
        QVBoxLayout(self).addWidget(split)

    def _connect(self) -> None:
        self.words.textChanged.connect(self._fill)
        self.words.returnPressed.connect(self._first_found)
        self.list.currentItemChanged.connect(self._chosen)
        self.view.opened.connect(self._linked)
        self.view.outside.connect(lambda target: self._say(OUTSIDE.format(clean(target))))
        self.back.clicked.connect(lambda: self._travel(self._visited, self._ahead))
        self.forward.clicked.connect(lambda: self._travel(self._ahead, self._visited))
        self.copy.clicked.connect(self._copy)
        for keys, button in (("Alt+Left", self.back), ("Alt+Right", self.forward)):
            QShortcut(QKeySequence(keys), self, button.click)
            button.setToolTip(keys)
        QShortcut(QKeySequence(QKeySequence.StandardKey.Find), self, self.words.setFocus)

    def _fill(self) -> None:
        """The pages that hold every word that was typed."""
        words = self.words.text().casefold().split()
        shown = self.view.page
        self.list.blockSignals(True)
        self.list.clear()
        for page, count in self._found(words):
            item = QListWidgetItem(f"{page.title} ({count})" if words else page.title)
            item.setData(PAGE, page)
            item.setToolTip(page.name)
            self.list.addItem(item)
            if shown is not None and page.name == shown.name:
                self.list.setCurrentItem(item)
        self.list.blockSignals(False)
        self._say(NONE if not pages() else "" if self.list.count() else NOWHERE)
        self.view.mark(self.words.text().split())

    def _say(self, note: str) -> None:
        self.note.setText(note)
        self.note.setVisible(bool(note))

    def _found(self, words: list[str]) -> list[tuple[Page, int]]:
        """Pages that hold all the words, and how often: those with one in their title first, then by how often;
        the changelog, which names everything, last."""
        found = []
        for page in pages():
            text, title = self._texts[page.name].casefold(), page.title.casefold()
            if all(word in text or word in title for word in words):
                found.append((sum(word in title for word in words), sum(text.count(word) for word in words), page))
        if words:
            found.sort(key=lambda one: (one[2].short == HISTORY, -one[0], -one[1]))
        return [(page, count) for _, count, page in found]

    def _first_found(self) -> None:
        if self.list.count():
            self._chosen(self.list.item(0))

    def _chosen(self, item: QListWidgetItem | None) -> None:
        if item is not None:
            self._go(item.data(PAGE))
            self.view.go_to_first_mark()

    def _linked(self, path: Path, heading: str) -> None:
        known = {one.path: one for one in pages()}
        self._go(known.get(path) or Page(path.name, path, path.name), heading)

    def _go(self, page: Page, heading: str = "") -> None:
        """Show a page, and remember where one was."""
        if self.view.page is not None:
            self._visited.append((self.view.page, self.view.verticalScrollBar().value()))
            self._ahead.clear()
        self._show(page, 0, heading)

    def _travel(self, to: list[tuple[Page, int]], other: list[tuple[Page, int]]) -> None:
        if to and self.view.page is not None:
            other.append((self.view.page, self.view.verticalScrollBar().value()))
            self._show(*to.pop())

    def _show(self, page: Page, scrolled: int, heading: str = "") -> None:
        if self.view.page is None or self.view.page.path != page.path:
            self.view.show_page(page, self._texts.get(page.name) or _read(page))
        self.view.verticalScrollBar().setValue(scrolled)
        if heading:
            self.view.go_to(heading)
        self.back.setEnabled(bool(self._visited))
        self.forward.setEnabled(bool(self._ahead))
        self._fill()

    def _copy(self) -> None:
        self.view.selectAll()
        self.view.copy()
        self.view.moveCursor(self.view.textCursor().MoveOperation.Start)


def _read(page: Page) -> str:
    try:
        return page.text()
    except OSError as problem:
        return f"{page.path} cannot be read: {problem.strerror or problem}."
