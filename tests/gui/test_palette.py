"""Everything by its name, and the keys: both come from the actions themselves."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from opened import opened
from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from inspector.gui.dialogs.keys import keys_of
from inspector.gui.dialogs.palette import Command, Palette, Uses, ranked
from inspector.gui.state.offered import Offered
from inspector.gui.state.remembered import opened as of_load
from inspector.gui.state.remembered import remember_model
from inspector.gui.window.main_window import Window
from inspector.gui.window.named import in_text, named
from inspector.records import Catalog, Entry, InputSpec, Load, Option


@pytest.fixture
def window(qtbot: object, qapp: QApplication, monkeypatch: pytest.MonkeyPatch) -> Iterator[Window]:
    monkeypatch.setattr("inspector.gui.state.session.Session.start_worker", lambda _session: None)
    with opened(qtbot) as made:
        entry = Entry(key="bptt", summary="itemise & truncate", options=(Option(name="most", type="int", default=3),))
        made.offer(Catalog(torch="2", threads=1, devices=("cpu",), quantities=(entry,)))
        yield made


def found(window: Window, text: str) -> list[str]:
    palette = Palette(list(named(window)), window.settings, window, partial(in_text, window))
    palette.line.setText(text)
    rows = [palette.list.topLevelItem(i) for i in range(palette.list.topLevelItemCount())]
    names = [row.text(0) for row in rows if row is not None]
    palette.deleteLater()
    return names


def do(window: Window, text: str) -> None:
    """Type a name and press Enter."""
    palette = Palette(list(named(window)), window.settings, window, partial(in_text, window))
    palette.line.setText(text)
    palette.line.returnPressed.emit()
    palette.deleteLater()


def test_everything_is_found_by_the_name_that_a_person_has_for_it(window: Window) -> None:
    assert found(window, "theme")[:4] == ["Theme: Auto", "Theme: Light", "Theme: Dark", "Preferences: theme"]
    assert found(window, "log")[0] == "Log" and found(window, "gates")[0] == "Gates"
    rows = found(window, "exploding")
    assert rows[0] == "char-elman-exploding" and "char-elman-exploding, step 0" in rows
    assert found(window, "where runs")[0] == "Preferences: where runs are kept"
    assert found(window, "also bptt") == ["Compute also bptt: itemise & truncate", "Compute also bptt: options"]


def test_models_and_their_checkpoints_are_found(
    window: Window, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, last, first = tmp_path / "mine.py", tmp_path / "last.pt", tmp_path / "first.pt"
    for path in (file, last, first):
        path.write_bytes(b"")
    load = Load(subject=f"{file}:make", checkpoint=str(last))
    remember_model(window.settings, of_load(load, "mine.py:make", InputSpec(kind="text", value="some words")))
    assert found(window, "last.pt") == ["mine.py:make, last.pt"] == found(window, "some words")
    opened: list[object] = []
    monkeypatch.setattr(window.session, "open_subject", lambda *request: opened.append(request[0].checkpoint))
    do(window, "last.pt")
    assert opened == [str(last)]
    monkeypatch.setattr(window, "open_path", opened.append)
    window.session.models.load = load
    catalog = Catalog(torch="2", threads=1, devices=("cpu",), loaders=(Entry(key="torch", suffixes=(".pt",)),))
    window.models.know(Offered(catalog))
    assert found(window, "first.pt") == ["first.pt"] and set(found(window, "last.pt")) == {
        "last.pt",
        found(window, "mine.py:make,")[0],
    }
    do(window, "first.pt")
    assert opened[-1] == str(first)


def test_a_panel_comes_to_the_front_with_the_focus_and_a_sample_is_opened(
    window: Window, monkeypatch: pytest.MonkeyPatch
) -> None:
    window.activateWindow()
    for _ in range(2):  # it is shown, and never hidden, by its name
        do(window, "lags")
        assert "lags" in window.docking.seen and window.panels["lags"].isAncestorOf(QApplication.focusWidget())
        do(window, "log")
        assert not window.docks["log"].isHidden()
    opened_now: list[str] = []
    monkeypatch.setattr(window.session, "open_subject", lambda load, _then: opened_now.append(load.subject))
    do(window, "exploding")
    assert opened_now == ["char-elman-exploding"]


def test_a_quantity_leads_to_the_panel_that_shows_it(window: Window) -> None:
    shown, not_shown = Entry(key="jacobian/lag", summary="norms by lag"), Entry(key="of no panel")
    window.session.catalog = Catalog(torch="2", threads=1, devices=("cpu",), quantities=(shown, not_shown))
    assert [one.name for one in named(window) if one.kind == "Quantity"] == ["jacobian/lag"]
    do(window, "jacobian/lag")
    assert "lags" in window.docking.seen


def test_text_of_the_sequence_is_found_over_tokens(window: Window, a_capture: Path) -> None:
    window.open_path(str(a_capture))
    window.tick()
    names = window.session.capture.labels("step", -1) if window.session.capture is not None else ()
    word = "".join(names[5:8])
    rows = [one for one in found(window, word) if one.startswith("step ")]
    assert rows[0].startswith("step 5: ")
    do(window, word)
    assert window.looking.position.step == 5


def test_what_is_used_more_often_comes_first_among_equals() -> None:
    names = [Command(name, "Action", lambda: None) for name in ("zoom in", "zoom out", "a zoom")]
    assert [one.name for one in ranked(names, "zoom", {})] == ["zoom in", "zoom out", "a zoom"]
    assert [one.name for one in ranked(names, "zoom", {"Action: zoom out": 2, "Action: a zoom": 9})] == [
        "zoom out", "zoom in", "a zoom",
    ]  # fmt: skip


def test_uses_are_remembered(window: Window) -> None:
    for _ in range(3):
        do(window, "under the cursor")
    assert Uses(window.settings).counts["Panel: Under the cursor"] == 3
    assert found(window, "")[0] == "Under the cursor"
    window.settings.set_text("palette uses", "spoilt by hand")
    assert Uses(window.settings).counts == {}


def test_where_nothing_has_that_name_the_list_says_so_and_enter_does_nothing(window: Window) -> None:
    assert found(window, "no such thing") == ["Nothing of that name"]
    palette = Palette(list(named(window)), window.settings, window)
    palette.show()
    palette.line.setText("no such thing")
    palette.line.returnPressed.emit()
    assert palette.isVisible()
    palette.close()


def test_a_long_name_makes_no_scroll_bar(window: Window, qapp: QApplication) -> None:
    palette = Palette([Command("a name " * 40, "Action", lambda: None)], window.settings, window)
    palette.show()
    qapp.processEvents()
    row = palette.list.topLevelItem(0)
    assert not palette.list.horizontalScrollBar().isVisible() and row is not None and row.toolTip(0)
    palette.close()


def test_arrows_choose_in_the_list_and_keys_are_shown(window: Window) -> None:
    palette = Palette(list(named(window)), window.settings, window)
    palette.show()
    palette.line.setText("run again")
    row = palette.list.topLevelItem(0)
    assert row is not None and (row.text(1), row.text(2)) == ("F5", "Action")
    palette.line.setText("theme:")
    for expected in ("Theme: Light", "Theme: Dark"):
        QTest.keyClick(palette.line, Qt.Key.Key_Down)
        assert palette.list.currentItem().text(0) == expected
    palette.close()


def test_every_key_of_every_action_is_listed(window: Window) -> None:
    listed = dict(keys_of(window.menu_actions))
    keys = {action.shortcut().toString() for action in window.menu_actions} - {""}
    assert keys <= set(listed) and {"Ctrl+E", "F11", "F5", "Esc"} <= keys
    for standard in (QKeySequence.StandardKey.ZoomIn, QKeySequence.StandardKey.Close, QKeySequence.StandardKey.Open):
        assert QKeySequence(standard).toString() in listed
    assert listed["F5"] == "Run again, or what was typed" and "Home, End" in listed


def test_layouts_are_found_by_their_names(window: Window) -> None:
    assert "Layouts: Save layout as" in found(window, "save layout") and found(window, "remove a layout") == [
        "Nothing of that name"
    ]
    layouts = window._menus.layouts
    layouts.save("two & more")
    window.docks["states"].hide()
    assert found(window, "two &")[0] == "Layouts: two & more" and found(window, "remove a layout")
    do(window, "layouts: two")
    assert not window.docks["states"].isHidden()
    layouts.remove("two & more")
