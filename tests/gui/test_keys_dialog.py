"""The table of keys has every key whole, however many there are."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from inspector.gui.app import make_window
from inspector.gui.dialogs.keys import KeysDialog, keys_of


def shown(dialog: KeysDialog) -> list[tuple[str, str]]:
    table = dialog.table
    rows = (i for i in range(table.rowCount()) if not table.isRowHidden(i))
    return [(table.item(i, 0).text(), table.item(i, 1).text()) for i in rows]


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
    assert sum(what == action.statusTip() for action in actions for _, what in shown(dialog)) == 80
    dialog.table.setFocus()
    QTest.keyClick(dialog.table, Qt.Key.Key_End, Qt.KeyboardModifier.ControlModifier)
    assert dialog.table.currentRow() == dialog.table.rowCount() - 1
    seen = dialog.table.visualItemRect(dialog.table.item(dialog.table.rowCount() - 1, 1))
    assert dialog.table.viewport().rect().contains(seen.center())
    dialog.close()


def test_words_leave_the_rows_that_have_them(qapp: QApplication) -> None:
    dialog = KeysDialog((("F6", "the next part"), ("Ctrl+Tab", "the next panel"), ("F5", "run again")))
    dialog.show()
    QTest.keyClicks(dialog.field, "NEXT pa")
    assert [key for key, _ in shown(dialog)] == ["F6", "Ctrl+Tab"]
    QTest.keyClicks(dialog.field, "nel")
    assert [key for key, _ in shown(dialog)] == ["Ctrl+Tab"]
    dialog.field.clear()
    assert len(shown(dialog)) == 3
    dialog.close()


def test_every_key_of_the_window_is_in_the_table(qapp: QApplication, qtbot: object) -> None:
    window = make_window()
    try:
        keys = {action.shortcut().toString() for action in window.menu_actions if not action.shortcut().isEmpty()}
        dialog = KeysDialog(keys_of(window.menu_actions), window)
        told = dict(shown(dialog))
        assert {"F6", "F9", "Ctrl+Tab", "Ctrl+Shift+P"} <= keys <= told.keys()
        assert all(what and "…" not in what[-1:] for what in told.values())
    finally:
        window.close()
