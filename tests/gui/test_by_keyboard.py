"""Every part of the window and every panel is reached by keyboard, what has the focus is framed, and Tab leaves tables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import shiboken6
from opened import opened
from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QColor, QKeySequence
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QCheckBox, QDialog, QListWidget, QTableWidgetItem, QWidget

from inspector.gui.window.docking.docks import ON_OCCASION
from inspector.gui.window.keyboard.stops import holds
from inspector.gui.window.main_window import Window

Key, Modifier = Qt.Key, Qt.KeyboardModifier


@pytest.fixture
def window(qtbot: object, qapp: QApplication, monkeypatch: pytest.MonkeyPatch) -> Iterator[Window]:
    """Active, as one that somebody types in; it runs no model."""
    monkeypatch.setattr("inspector.gui.state.session.Session.start_worker", lambda _session: None)
    with opened(qtbot) as made:
        made.activateWindow()
        qapp.processEvents()
        yield made


def press(key: Key, modifier: Modifier = Modifier.NoModifier) -> QWidget:
    """A key where the focus is; what has it afterwards."""
    before = QApplication.focusWidget()
    assert before is not None
    QTest.keyClick(before, key, modifier)
    QApplication.processEvents()
    after = QApplication.focusWidget()
    assert after is not None
    return after


def test_f6_comes_to_every_part_that_is_seen_and_back_to_the_first(window: Window) -> None:
    parts = window.stops.parts()
    assert {window.sequence.strip, window.readout, window.opener, window.tree} <= set(parts)
    window.sequence.strip.setFocus()
    there = [press(Key.Key_F6) for _ in parts]
    order = parts[parts.index(window.sequence.strip) + 1 :] + parts[: parts.index(window.sequence.strip) + 1]
    assert all(holds(part, focus) for part, focus in zip(order, there, strict=True))
    assert holds(order[-2], press(Key.Key_F6, Modifier.ShiftModifier))


def test_going_round_leaves_the_menus_as_they_are(window: Window, qapp: QApplication) -> None:
    """What PySide takes for a child of a frame of the focus is lost with it: the window was, with every action that Qt
    had made in it, so that menus failed and nothing could be computed on request."""
    made = window.compute_menu.addAction("made by Qt")
    window.sequence.strip.setFocus()
    for _ in window.stops.parts():
        press(Key.Key_F6)
        QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    assert shiboken6.isValid(made) and made.text() == "made by Qt"


def test_ctrl_tab_brings_every_panel_to_the_front_with_the_focus(window: Window) -> None:
    window.panels["states"].setFocus()
    keys = [key for key in window.panels.kinds if key not in ON_OCCASION]
    came = []
    for _ in keys:
        press(Key.Key_Tab, Modifier.ControlModifier)
        came += [key for key in keys if key in window.docking.seen and window.panels[key].hasFocus()]
    first = keys.index("states") + 1
    assert came == keys[first:] + keys[:first]
    press(Key.Key_Tab, Modifier.ControlModifier | Modifier.ShiftModifier)
    assert window.panels[keys[first - 2]].hasFocus()


def test_every_entry_of_the_menus_has_a_key_that_keyboards_have(window: Window) -> None:
    """*Preferences* had the key that Qt calls Settings: few keyboards have one."""
    keys = {action.text(): action.shortcut() for action in window.menu_actions if not action.shortcut().isEmpty()}
    assert keys["Prefere&nces…"] == QKeySequence("Ctrl+,") and len(keys) > 20
    for text, sequence in keys.items():
        key = sequence[0].key()
        assert key.value < Qt.Key.Key_Back.value, f"{text} has a key of multimedia keyboards: {sequence.toString()}"


def test_a_panel_that_was_closed_is_passed_over(window: Window) -> None:
    keys = list(window.panels.kinds)
    window.stops.show(keys[2])
    window.docks[keys[3]].close()
    press(Key.Key_Tab, Modifier.ControlModifier)
    assert window.panels[keys[4]].hasFocus() and window.docks[keys[3]].isHidden()


def test_what_has_the_focus_is_framed_in_the_colour_of_what_is_chosen(window: Window, qapp: QApplication) -> None:
    for part in (window.panels["states"], window.sequence.strip, window.readout, window.tree.tree):
        part.setFocus(Qt.FocusReason.TabFocusReason)
        qapp.processEvents()
        ring = window.focus_follower.ring
        assert ring is not None and ring.parent() is part and ring.size() == part.size()
        edge = QColor(part.grab().toImage().pixel(0, 0))
        assert edge == window.palette().highlight().color() or ring.grab().toImage().pixelColor(0, 0) == edge
    before = ring
    window.tree.filter.setFocus(Qt.FocusReason.TabFocusReason)  # draws its own
    assert window.focus_follower.ring is None and not before.isVisible()


def test_the_frame_stays_as_large_as_what_it_is_around(window: Window, qapp: QApplication) -> None:
    panel = window.panels["states"]
    window.stops.show("states")
    window.resize(window.width() - 60, window.height() - 40)
    qapp.processEvents()
    assert window.focus_follower.ring is not None and window.focus_follower.ring.size() == panel.size()


def test_the_read_out_is_one_stop(window: Window) -> None:
    window.readout.show_rows([("a", "1"), ("b", "2"), ("c", "3")])
    window.readout.setFocus(Qt.FocusReason.TabFocusReason)
    window.readout.setCurrentItem(window.readout.item(0, 0) or QTableWidgetItem())
    assert press(Key.Key_Down) is window.readout and window.readout.currentRow() == 1
    assert press(Key.Key_Tab) is not window.readout


def test_what_has_the_focus_in_a_panel_that_floats_is_framed_too(window: Window, qapp: QApplication) -> None:
    window.docking.bars["states"].float()
    qapp.processEvents()
    dock = window.docks["states"]
    assert dock.isFloating()
    window.stops.show("states")
    qapp.processEvents()
    focus = QApplication.focusWidget()
    assert focus is not None and focus.window() is dock
    ring = window.focus_follower.ring
    assert ring is not None and ring.parent() is focus and ring.isVisible()
    dock.close()
    window.sequence.strip.setFocus()
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    assert shiboken6.isValid(dock) and shiboken6.isValid(window)


def test_a_list_in_a_dialog_is_framed_as_one_in_the_window_is(
    window: Window, qapp: QApplication, tmp_path: Path
) -> None:
    """Its chosen row looks the same whether keys go to it or not."""
    (tmp_path / "mine.py").write_text("def make(): ...\n\ndef other(): ...\n")
    window.models.ask(str(tmp_path / "mine.py"))
    dialog = window.models.dialog
    assert dialog is not None
    qapp.processEvents()
    found = next(one for one in dialog.findChildren(QListWidget) if one.isVisible() and one.count() == 2)
    found.setFocus(Qt.FocusReason.TabFocusReason)
    qapp.processEvents()
    ring = window.focus_follower.ring
    assert ring is not None and ring.parent() is found and ring.size() == found.size()
    dialog.arguments.setFocus(Qt.FocusReason.TabFocusReason)  # draws its own
    assert window.focus_follower.ring is None
    dialog.reject()


def test_a_dialog_shows_what_has_the_focus_as_it_opens(window: Window, qapp: QApplication) -> None:
    dialog = QDialog(window)
    box = QCheckBox("All panels", dialog)
    other = QCheckBox("All panels", dialog)
    other.move(0, 40)
    dialog.show()
    dialog.activateWindow()
    box.setFocus()
    qapp.processEvents()
    assert qapp.focusWidget() is box
    assert box.grab().toImage() != other.grab().toImage(), "before any Tab"
    dialog.close()
