"""The documentation in the window: pages, links, the search, back and forward."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QImage, QTextTable
from PySide6.QtTest import QTest

from inspector.gui.dialogs.help import page_view
from inspector.gui.dialogs.help.reader import Reader
from inspector.gui.window.reading import show_documentation
from inspector.workspace.documentation import pages


@pytest.fixture
def reader(qtbot: object) -> Reader:
    made = Reader()
    qtbot.addWidget(made)  # type: ignore[attr-defined]
    made.open()
    made.show()
    return made


def shown(reader: Reader) -> str:
    assert reader.view.page is not None
    return reader.view.page.name


def first_line(reader: Reader) -> str:
    return reader.view.cursorForPosition(reader.view.viewport().rect().topLeft()).block().text()


def test_every_page_is_drawn_with_its_title_and_tables(reader: Reader) -> None:
    assert reader.list.count() == len(pages())
    for row, page in enumerate(pages()):
        reader.list.setCurrentRow(row)
        assert shown(reader) == page.name
        text = reader.view.toPlainText()
        assert text and "<!-- ci" not in text and not re.search(r"\]\(\S+\.md", text)
    reader.open("benchmarks.md")
    frames = reader.view.document().rootFrame().childFrames()
    assert sum(isinstance(one, QTextTable) for one in frames) >= 3


def test_a_link_leads_to_its_page_and_heading_and_back_returns(reader: Reader) -> None:
    reader.open("install.md")
    reader.view.anchorClicked.emit(QUrl("subjects.md#weights-without-a-model"))
    assert shown(reader) == "subjects.md" and first_line(reader) == "Weights without a model"
    scrolled = reader.view.verticalScrollBar().value()
    assert scrolled > 0
    reader.view.anchorClicked.emit(QUrl("../README.md#commands"))
    assert shown(reader) == "README.md" and first_line(reader) == "Commands"
    QTest.keyClick(reader, Qt.Key.Key_Left, Qt.KeyboardModifier.AltModifier)
    assert shown(reader) == "subjects.md" and reader.view.verticalScrollBar().value() == scrolled
    reader.back.click()
    assert shown(reader) == "install.md"
    reader.forward.click()
    assert shown(reader) == "subjects.md"
    reader.view.anchorClicked.emit(QUrl("examples/tagger.py"))
    assert shown(reader) == "tagger.py" and "import" in reader.view.toPlainText()


def test_every_link_with_a_heading_is_found_by_the_view(reader: Reader) -> None:
    for page in pages():
        reader.open(page.name)
        headings = [block for block in blocks(reader) if block.blockFormat().headingLevel()]
        assert headings and all(reader.view.go_to(page_view.slug(block.text())) for block in headings), page.name
    assert not reader.view.go_to("no-such-heading")


def blocks(reader: Reader) -> list:  # type: ignore[type-arg]
    found, block = [], reader.view.document().begin()
    while block.isValid():
        found.append(block)
        block = block.next()
    return found


def test_words_find_the_pages_that_hold_them(reader: Reader) -> None:
    reader.words.setText("Jacobian lag")
    listed = [reader.list.item(row).data(Qt.ItemDataRole.UserRole).name for row in range(reader.list.count())]
    expected = {p.name for p in pages() if all(word in (p.text() + p.title).casefold() for word in ("jacobian", "lag"))}
    assert "changelog.md" not in listed[:-1]  # it names everything
    assert set(listed) == expected and 0 < len(listed) < len(pages())
    QTest.keyClick(reader.words, Qt.Key.Key_Return)
    assert shown(reader) == listed[0]
    text = reader.view.toPlainText().casefold()
    assert reader.view.mark(["jacobian", "lag"]) == text.count("jacobian") + text.count("lag") > 1
    line = reader.view.textCursor().block().text().casefold()
    assert "jacobian" in line or "lag" in line
    assert reader.view.viewport().rect().contains(reader.view.cursorRect().center())
    reader.words.setText("qqqxyz")
    assert (
        reader.list.count() == 0 and reader.note.isVisible() and reader.note.text() == "No page has all of these words."
    )
    reader.words.clear()
    assert reader.list.count() == len(pages()) and not reader.note.isVisible()
    assert not reader.view.extraSelections()


def test_pictures_are_of_the_documentation_and_no_wider_than_the_page(reader: Reader, tmp_path: Path) -> None:
    kind = page_view.IMAGE
    for width in (700, 1100):
        reader.resize(width, 600)
        QTest.qWait(20)
        picture = reader.view.loadResource(kind, QUrl("docs/overview.png"))
        assert 100 <= picture.width() <= reader.view.viewport().width()
    QImage(4, 4, QImage.Format.Format_RGB32).save(str(tmp_path / "a.png"))
    assert reader.view.loadResource(kind, QUrl.fromLocalFile(str(tmp_path / "a.png"))).isNull()
    assert reader.view.loadResource(kind, QUrl("https://example.org/a.png")).isNull()
    assert reader.view.loadResource(kind + 1, QUrl("docs/overview.png")) is None


def test_links_out_are_given_to_the_system_and_no_others(reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(page_view.QDesktopServices, "openUrl", lambda url: opened.append(url.toString()))
    for target in ("https://pytorch.org/", "file:///etc/passwd", "../pyproject.toml", "javascript:1"):
        reader.view.anchorClicked.emit(QUrl(target))
    assert opened == ["https://pytorch.org/"] and shown(reader) == "README.md"
    reader.view.anchorClicked.emit(QUrl("LICENSE"))
    assert reader.note.isVisible() and reader.note.text() == "LICENSE is a file of the checkout, and no page."


def test_one_reader_is_brought_to_the_front(qtbot: object) -> None:
    from PySide6.QtWidgets import QWidget

    window = QWidget()
    qtbot.addWidget(window)  # type: ignore[attr-defined]
    first = show_documentation(window, "watching.md")
    assert show_documentation(window, "limits.md", "") is first and shown(first) == "limits.md"
    first.close()


def test_a_page_that_is_gone_is_said(qtbot: object, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(_page: object) -> str:
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr("inspector.workspace.documentation.Page.text", gone)
    made = Reader()
    qtbot.addWidget(made)  # type: ignore[attr-defined]
    made.open("limits.md")
    assert made.view.toPlainText().endswith("limits.md cannot be read: No such file or directory.")
