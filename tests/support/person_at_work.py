"""What a person does again and again at a window: tabs, menus, boxes, dialogs of files, numbers that are read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from person import Person, of_tab
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QApplication, QComboBox, QFileDialog, QMenu

Facts = dict[str, Any]


def finished(person: Person) -> None:
    """What runs has ended, and all of it is shown."""
    session = person.window.session

    def over() -> bool:
        shown = session.capture is not None and session.capture.stop is not None
        return shown and not session.running and session.sentence.startswith("Done")

    person.until(over, "the end of a run")


def tab(person: Person, title: str) -> Any:
    """Bring a panel to the front by a click on its tab, and wait until it draws."""
    docking = person.window.docking
    key = person.ask(lambda: next(k for k, kind in person.window.panels.kinds.items() if kind.title == title))
    go = lambda: person.click(lambda: next(of_tab(b, title) for b in docking.tabs.bars() if title in texts(b)))  # noqa: E731
    person.again_until(go, lambda: key in docking.seen, f"{title} in front")
    return drawn(person, key)


def texts(bar: Any) -> list[str]:
    """Of the tabs of a bar."""
    return [bar.tabText(n) for n in range(bar.count())]


def drawn(person: Person, key: str) -> Any:
    """A panel that is in front and draws something."""
    panels = person.window.panels

    def there() -> Any:
        panel = panels.made.get(key)
        return panel if panel is not None and key in person.window.docking.seen and panel.state == "figure" else None

    return person.until(there, f"{key} with a figure")


def numbers(person: Person) -> list[list[str]]:
    """The rows under the cursor, with all digits."""
    return person.ask(lambda: _numbers(person.window.readout))


def _numbers(table: Any) -> list[list[str]]:
    """With all digits, as they are copied."""
    kept = Qt.ItemDataRole.UserRole
    rows, columns = range(table.rowCount()), range(table.columnCount())
    return [
        [str(one.data(kept) or "") if (one := table.item(row, column)) else "" for column in columns] for row in rows
    ]


def row_of(person: Person, begins: str, columns: int = 1) -> list[str]:
    """The numbers of the row whose name begins so, once nothing is waited for that would change them."""
    at(person)

    def found() -> list[str]:
        rows = [row for row in _numbers(person.window.readout) if row[0].startswith(begins)]
        done = rows and len(rows[0]) == 1 + columns and all(rows[0][1:]) and not person.window.reader.isActive()
        return rows[0] if done else []

    return person.until(found, f"a row {begins!r} with {columns} numbers")


def at(person: Person) -> Facts:
    """Where the cursor is, once it stays there."""
    position = person.still(lambda: person.window.looking.position, "a cursor that stays")
    return {name: getattr(position, name) for name in ("step", "unit", "head", "key")}


def menu(person: Person, title: str, name: str) -> None:
    """Choose an action of the menu bar with the mouse."""
    bar = person.window.menuBar()

    def head() -> Any:
        return next(one for one in bar.actions() if one.text().replace("&", "") == title)

    person.click(lambda: bar.mapToGlobal(bar.actionGeometry(head()).center()))
    pick(person, name)


def pick(person: Person, name: str) -> None:
    """Choose an action of the menu that is open."""

    def there() -> QPoint:
        popup = QApplication.activePopupWidget()
        assert isinstance(popup, QMenu)
        one = next(one for one in popup.actions() if one.text().replace("&", "").startswith(name))
        return popup.mapToGlobal(popup.actionGeometry(one).center())

    person.until(lambda: isinstance(QApplication.activePopupWidget(), QMenu), "a menu")
    person.click(there)
    person.until(lambda: QApplication.activePopupWidget() is None, "the menu closed")


def choose(person: Person, box: Callable[[], QComboBox], text: str) -> None:
    """Choose in a box: a click, then the keys that lead there."""
    person.press(box)
    person.until(lambda: QApplication.activePopupWidget(), "the list of a box")
    row = person.ask(lambda: box().findText(text))
    assert row >= 0, (text, person.ask(lambda: [box().itemText(n) for n in range(box().count())]))
    person.keys("Home", *["Down"] * row, "Return")
    person.until(lambda: box().currentText() == text, f"{text} chosen")


def name_file(person: Person, path: Path) -> None:
    """Type a path into the dialog of files that has the keyboard."""

    def there() -> bool:
        top = QApplication.activeWindow()
        return isinstance(top, QFileDialog) and top.focusWidget() is not None

    person.until(there, "a dialog of files")
    person.keys("ctrl+a")
    person.write(str(path))
    person.keys("Return")
    person.until(lambda: not isinstance(QApplication.activeModalWidget(), QFileDialog), "the dialog of files closed")


def leave(person: Person) -> None:
    """Ctrl+Q."""
    person.alone()
    person.keys("ctrl+q")


def reach(person: Person, widget: Callable[[], Any]) -> None:
    """Tab until a widget has the keyboard."""
    for _ in range(60):
        if person.ask(lambda: widget().hasFocus()):
            return
        before = person.ask(QApplication.focusWidget)
        person.keys("Tab")
        person.until(lambda before=before: QApplication.focusWidget() is not before, "Tab goes on")  # type: ignore[misc]
    raise AssertionError(f"Tab does not reach {widget()}")


def by_name(person: Person, name: str) -> None:
    """Bring a panel to the front through the palette."""
    person.alone()
    person.keys("ctrl+shift+p")
    dialog = person.dialog("Palette")
    person.write(name)
    person.until(lambda: dialog.line.text() == name and dialog.list.topLevelItemCount(), "what is found")
    person.until(lambda: dialog.list.topLevelItem(0).text(0).lower() == name, f"{name} first")
    person.keys("Return")
    person.alone()
