"""One page of the documentation: Markdown with its pictures. Links lead to other pages, to examples, or out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import Qt, QUrl, Signal
from PySide6.QtGui import (
    QDesktopServices,
    QFontDatabase,
    QImage,
    QPalette,
    QResizeEvent,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
    QTextFrameFormat,
    QTextLength,
    QTextTable,
    QTextTableFormat,
)
from PySide6.QtWidgets import QTextBrowser, QTextEdit, QWidget

from inspector.workspace.documentation import Page, linked

COMMENT = re.compile(r"<!--.*?-->\n?", re.DOTALL)
SMOOTH = Qt.TransformationMode.SmoothTransformation
IMAGE = QTextDocument.ResourceType.ImageResource.value
MARGIN = 48
"""Pixels beside a picture: margins of the page and the scroll bar."""
MOST_MARKED = 500
WIDE = 3
"""A table of up to as many columns shares the width by what its cells hold; one of more is as wide as it needs."""


class PageView(QTextBrowser):
    """Shows a page. `opened(path, heading)` where a link leads to another file of the documentation, `outside(target)`
    where it leads to none."""

    opened = Signal(object, str)
    outside = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setOpenLinks(False)
        self.setAccessibleName("Page")
        self.anchorClicked.connect(self._follow)
        self.page: Page | None = None
        self._pictures: dict[str, QImage] = {}
        self._first = -1

    def show_page(self, page: Page, text: str) -> None:
        """Draw a page from its top."""
        self.page = page
        self._pictures.clear()
        if page.markdown:
            self.setMarkdown(COMMENT.sub("", text))
            self._dress()
        else:
            self.setPlainText(text)
            self.selectAll()
            self.setCurrentFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        self.moveCursor(QTextCursor.MoveOperation.Start)

    def go_to(self, heading: str) -> bool:
        """Bring the heading of a link's `#…` to the top; whether there is one."""
        block = self.document().begin()
        while block.isValid():
            if block.blockFormat().headingLevel() and slug(block.text()) == heading:
                self._bring_up(QTextCursor(block))
                return True
            block = block.next()
        return False

    def mark(self, words: Sequence[str]) -> int:
        """Mark where any of the words stands; returns how many places were marked (of very many the first)."""
        marked: list[QTextEdit.ExtraSelection] = []
        form = QTextCharFormat()
        form.setBackground(self.palette().color(QPalette.ColorRole.Highlight))
        form.setForeground(self.palette().color(QPalette.ColorRole.HighlightedText))
        for word in words:
            found = self.document().find(word)
            while not found.isNull() and len(marked) < MOST_MARKED:
                selection = QTextEdit.ExtraSelection()
                selection.cursor, selection.format = found, form
                marked.append(selection)
                found = self.document().find(word, found)
        self._first = min((one.cursor.selectionStart() for one in marked), default=-1)
        self.setExtraSelections(marked)
        return len(marked)

    def go_to_first_mark(self) -> None:
        """Bring the first marked place to the top."""
        if self._first >= 0:
            place = QTextCursor(self.document())
            place.setPosition(self._first)
            self._bring_up(place)

    def _bring_up(self, place: QTextCursor) -> None:
        """The line of a place as the first one, with the text cursor before it."""
        self.setTextCursor(place)  # lays out what comes before
        self.verticalScrollBar().setValue(self.verticalScrollBar().value() + self.cursorRect(place).top())

    def loadResource(self, kind: int, name: QUrl | str) -> Any:
        """Pictures of the documentation, no wider than the page; nothing else is loaded."""
        target = QUrl(name).toString()
        if self.page is None or kind != IMAGE:
            return None
        if target not in self._pictures:
            path = linked(self.page, target)
            self._pictures[target] = QImage() if path is None else QImage(str(path))
        picture, most = self._pictures[target], max(self.viewport().width() - MARGIN, 100)
        return picture.scaledToWidth(most, SMOOTH) if picture.width() > most else picture

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Pictures follow the width."""
        super().resizeEvent(event)
        if self._pictures and event.oldSize().width() != event.size().width():
            self.document().markContentsDirty(0, self.document().characterCount())

    def _follow(self, url: QUrl) -> None:
        if url.scheme() in ("http", "https"):
            QDesktopServices.openUrl(url)
        elif self.page is not None:
            path = linked(self.page, url.path()) if url.path() else self.page.path
            if path is None:
                self.outside.emit(url.path())
            else:
                self.opened.emit(path, url.fragment())

    def _dress(self) -> None:
        """Tables with lines, which Markdown has none of, and code in the system's fixed font."""
        line = self.palette().color(QPalette.ColorRole.Mid)
        for frame in self.document().rootFrame().childFrames():
            if isinstance(frame, QTextTable):
                form = QTextTableFormat(frame.format().toTableFormat())
                form.setBorder(1)
                form.setBorderCollapse(True)
                form.setBorderBrush(line)
                form.setBorderStyle(QTextFrameFormat.BorderStyle.BorderStyle_Solid)
                form.setCellPadding(4)
                if frame.columns() <= WIDE:
                    form.setWidth(QTextLength(QTextLength.Type.PercentageLength, 100))
                frame.setFormat(form)


def slug(heading: str) -> str:
    """The `#…` by which links name a heading: small letters, `-` for spaces, other signs left out."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
