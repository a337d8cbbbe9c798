"""The list of keys: whole on every screen, searched by words, used without a mouse."""

from __future__ import annotations

from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from inspector.gui.app import make_window
from inspector.gui.dialogs.keys import OTHER_KEYS, keys_of
from inspector.gui.dialogs.keys_dialog import MOST, KeysDialog

KEYS = (
    *OTHER_KEYS,
    *((f"Ctrl+{n}", f"word{n} and a sentence that goes on for so long that it wraps") for n in range(60)),
)


@pytest.fixture
def dialog(qtbot: Any) -> KeysDialog:
    made = KeysDialog(KEYS)
    qtbot.addWidget(made)
    made.show()
    qtbot.waitUntil(lambda: made.isVisible())
    QApplication.processEvents()
    return made


def seen(dialog: KeysDialog) -> list[str]:
    rows = range(dialog.table.rowCount())
    return [dialog.table.item(row, 0).text() for row in rows if not dialog.table.isRowHidden(row)]  # type: ignore[union-attr]


def test_every_key_can_be_scrolled_to_and_none_is_cut(dialog: KeysDialog) -> None:
    table = dialog.table
    assert seen(dialog) == [key for key, _ in KEYS]
    assert dialog.height() <= MOST * dialog.screen().availableGeometry().height() + 1
    below = table.verticalHeader().length() - table.viewport().height()
    assert below > 0 and table.verticalScrollBar().maximum() >= below
    metrics = table.fontMetrics()
    for row in range(table.rowCount()):
        for column in (0, 1):
            item = table.item(row, column)
            assert item is not None
            room = table.visualItemRect(item)
            lines = room.height() // metrics.lineSpacing()
            assert metrics.horizontalAdvance(item.text()) <= lines * room.width(), item.text()
    assert table.horizontalHeader().length() <= table.viewport().width()


def test_words_leave_the_rows_that_have_them_all(dialog: KeysDialog) -> None:
    QTest.keyClicks(dialog.filter, "WORD17 sentence")
    assert seen(dialog) == ["Ctrl+17"]
    dialog.filter.clear()
    QTest.keyClicks(dialog.filter, "nothing of that")
    assert seen(dialog) == []


def test_arrows_in_the_field_move_in_the_table_and_escape_closes(dialog: KeysDialog) -> None:
    dialog.filter.setFocus()
    for key in (Qt.Key.Key_Down, Qt.Key.Key_Down):
        QTest.keyClick(dialog.filter, key)
    assert dialog.table.currentRow() >= 1 and dialog.filter.text() == ""
    QTest.keyClick(dialog.filter, Qt.Key.Key_Escape)
    assert not dialog.isVisible()


def test_a_few_keys_leave_no_empty_room(qtbot: Any) -> None:
    few = KeysDialog(KEYS[:3])
    qtbot.addWidget(few)
    few.show()
    QApplication.processEvents()
    assert few.table.verticalScrollBar().maximum() == 0
    assert few.table.viewport().height() - few.table.verticalHeader().length() < 30


def test_more_keys_than_fit_on_a_page_are_all_there_and_reached_by_keyboard(qapp: QApplication) -> None:
    actions = []
    for number in range(80):
        action = QAction(f"Action {number}")
        action.setShortcut(QKeySequence(f"Ctrl+F{number % 30 + 1}"))
        action.setStatusTip(f"number {number} does what a long sentence of many words says, of which none is left out")
        actions.append(action)
    dialog = KeysDialog(keys_of(actions))
    dialog.show()
    qapp.processEvents()
    assert set(keys_of(actions)) >= {(action.shortcut().toString(), action.statusTip()) for action in actions}
    assert len(seen(dialog)) == len(OTHER_KEYS) + 80
    dialog.table.setFocus()
    QTest.keyClick(dialog.table, Qt.Key.Key_End, Qt.KeyboardModifier.ControlModifier)
    assert dialog.table.currentRow() == dialog.table.rowCount() - 1
    last = dialog.table.visualItemRect(dialog.table.item(dialog.table.rowCount() - 1, 1))
    assert dialog.table.viewport().rect().contains(last.center())
    dialog.close()


def test_every_key_of_the_window_is_in_the_table(qtbot: Any) -> None:
    window = make_window()
    try:
        keys = {action.shortcut().toString() for action in window.menu_actions if not action.shortcut().isEmpty()}
        dialog = KeysDialog(keys_of(window.menu_actions), window)
        told = dict(keys_of(window.menu_actions))
        assert set(seen(dialog)) == told.keys()
        assert {"F6", "F9", "Ctrl+Tab", "Ctrl+Shift+P"} <= keys <= told.keys()
        assert all(what and "…" not in what[-1:] for what in told.values())
    finally:
        window.close()
