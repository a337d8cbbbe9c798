"""Sessions in the window: saved and opened again, what is asked first, and layouts by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from captures import numbers, write
from opened import finish, opened
from PySide6.QtWidgets import QComboBox, QFileDialog, QMessageBox

from inspector.capture import Difference, add_note, notes
from inspector.gui.state.pins import pins_of
from inspector.gui.window.bars.frame_bar import DIFFERENCE
from inspector.gui.window.docking.layouts import check, describe
from inspector.gui.window.sessions import OPEN
from inspector.records import InputSpec, Noted, parse_edit
from inspector.workspace.session_files import read_session


def test_a_session_brings_back_run_cursor_layout_choices_and_notes(
    tmp_path: Path, qtbot: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "mine.session.json"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(tmp_path / "mine"), ""))
    with opened(qtbot, background=False) as window:
        window.open_sample("char-elman")
        finish(window, qtbot)
        capture = window.session.capture
        assert capture is not None
        add_note(capture, Noted(step=2), "look here")
        capture.refresh()
        window.docking.show_panel("gradients")
        window.docks["open"].hide()
        states = window.panels["states"]
        boxes = [one for one in states.control_row.findChildren(QComboBox) if one.count() > 1 and one.accessibleName()]
        name, choice = boxes[0].accessibleName(), boxes[0].itemText(boxes[0].count() - 1)
        boxes[0].setCurrentIndex(boxes[0].count() - 1)
        window.looking.move(step=3, unit=1, place="rnn.l0")
        assert not pins_of(window.looking).add(window.looking.position)
        window.sessions.ask()
        assert window.status.sentence.whole == f"Saved the session to {path}."
        assert window.status.folder.isVisible()
        failed: list[str] = []
        monkeypatch.setattr(window, "fail", failed.append)
        window.sessions.ask()
        assert failed == [f"{path} exists; choose another name."], "the dialog asked about the name without its end"
        window.session.sentence = "another"
        window.show_state()
        assert not window.status.folder.isVisible()
        before, spec, first = describe(window.docking), window.session.spec, capture.path
        window.docking.reset()
        window.looking.move(step=0, unit=0)
        pins_of(window.looking).clear()
        boxes[0].setCurrentIndex(0)
        window.open_path(str(path))
        finish(window, qtbot)
        qtbot.waitUntil(lambda: _noted(window, first), timeout=30_000)  # after what is computed in the background
        position = window.looking.position
        assert (position.step, position.unit, position.place) == (3, 1, "rnn.l0")
        (pin,) = pins_of(window.looking).all
        assert (pin.position.step, pin.position.unit, pin.position.place) == (3, 1, "rnn.l0")
        assert window.session.spec == spec and window.session.subject == "char-elman"
        assert [note.text for note in notes(window.session.capture)] == ["look here"]
        assert window.docks["open"].isHidden() and "gradients" in window.docking.seen
        after = describe(window.docking)
        assert after["hidden"] == before["hidden"] and after["areas"].keys() == before["areas"].keys()
        box = next(
            one for one in window.panels["states"].control_row.findChildren(QComboBox) if one.accessibleName() == name
        )
        qtbot.waitUntil(lambda: box.currentText() == choice)
        assert str(path) in window.settings.recent()


def test_a_session_brings_back_its_text_edits_and_the_difference(tmp_path: Path, qtbot: Any) -> None:
    """The line was empty, so that the text could not be changed, and the newest frame was shown."""
    path, text = tmp_path / "a.session.json", "Alice was\nbeginning"
    edits = (parse_edit("rnn.l0:h[3]=0@2:"),)
    with opened(qtbot, background=False) as window:
        window.open_sample("char-elman", "", InputSpec(kind="text", value=text))
        finish(window, qtbot)
        window.session.run(InputSpec(kind="text", value=text), edits)
        window.tick()
        finish(window, qtbot)
        qtbot.waitUntil(lambda: DIFFERENCE in window.frames.places)
        window.frames.choose(DIFFERENCE)
        window.sessions.save(path)
        assert read_session(path)[0].at.frame == DIFFERENCE
    with opened(qtbot, background=False) as window:
        window.open_path(str(path))
        finish(window, qtbot)
        qtbot.waitUntil(lambda: window.frames.current == DIFFERENCE)
        assert isinstance(window.panels.source, Difference)
        assert window.session.shown.current.request.edits == edits
        assert window.input.line.text() == "Alice was↵beginning" and not window.input.typed
        assert window.input.spec() == InputSpec(kind="text", value=text), "Run runs it again"


def test_a_session_of_the_first_release_is_opened(tmp_path: Path, qtbot: Any) -> None:
    """As the window of then wrote it: no pins, no zoom, a cursor of one step, docks that were fewer, a control less."""
    path = tmp_path / "old.session.json"
    path.write_text(json.dumps(OF_FIRST_RELEASE))
    with opened(qtbot, background=False) as window:
        window.open_path(str(path))
        finish(window, qtbot)
        qtbot.waitUntil(lambda: window.looking.position.step == 12, timeout=30_000)
        assert window.session.subject == "char-elman" and window.session.spec.value == "Alice was beginning"
        assert window.looking.position.unit == 3 and not pins_of(window.looking).all
        assert {"states", "lags"} <= set(window.docking.seen) and window.docks["log"].isHidden()
        assert "lens" in window.docks, "a panel that came later is there"
        box = next(
            one for one in window.panels["states"].control_row.findChildren(QComboBox)
            if one.accessibleName() == "Order of units"
        )  # fmt: skip
        assert box.currentText() == "by similarity"


OF_FIRST_RELEASE = {
    "record": "SavedSession", "version": 1,
    "load": {
        "record": "Load", "subject": "char-elman", "arguments": {}, "checkpoint": "", "partial": False, "trusted": False,
        "agreed": {}, "device": "cpu", "seed": 0, "generation": 0,
    },
    "input": {
        "record": "InputSpec", "kind": "text", "value": "Alice was beginning", "options": {}, "look_at": 0, "parts": {},
    },
    "edits": [], "decode": None, "also": [], "opened": "",
    "at": {
        "record": "ViewAt", "panel": "states", "frame": -1, "place": "", "step": 12, "steps": None, "unit": 3,
        "head": None, "curves": [], "run": "",
    },
    "notes": [],
    "layout": {
        "areas": {
            "left": {
                "down": [{"tabs": ["open"], "front": "open"}, {"tabs": ["model"], "front": "model"}],
                "sizes": [364, 486],
            },
            "right": {"tabs": ["numbers"], "front": "numbers"},
            "bottom": {
                "down": [
                    {"tabs": ["overview", "states", "units", "gates", "outputs"], "front": "states"},
                    {"tabs": ["jacobians", "lags", "gradients", "training", "health"], "front": "lags"},
                ],
                "sizes": [372, 362],
            },
        },
        "hidden": ["log", "comparison"], "floating": {}, "enlarged": "",
    },
    "choices": {
        "states": {"Order of units": "by similarity", "Over training": False, "Run that is shown": "edited run"},
    },
}  # fmt: skip


def _noted(window: Any, before: Path) -> bool:
    """Whether another run than the one before is shown, with notes."""
    capture = window.session.capture
    return capture is not None and capture.path != before and bool(notes(capture))


def test_a_session_of_somebody_else_runs_nothing_without_being_agreed_to(
    tmp_path: Path, qtbot: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`subprocess:call` is code of an installed package, about which the worker does not ask."""
    mark, path = tmp_path / "ran", tmp_path / "a.session.json"
    code = f"from pathlib import Path\nPath({str(mark)!r}).touch()\nmake = None\n"
    (tmp_path / "model.py").write_text(code, encoding="utf-8")
    load = {"record": "Load", "subject": "model.py:make", "trusted": True}
    path.write_text(json.dumps({"record": "SavedSession", "load": load}), encoding="utf-8")
    asked: list[str] = []
    answer = ["Cancel"]

    def reply(box: QMessageBox) -> int:
        asked.append(box.text())
        next(one for one in box.buttons() if one.text().replace("&", "") == answer[0]).click()
        return 0

    monkeypatch.setattr(QMessageBox, "exec", reply)
    trusts: list[Any] = []
    monkeypatch.setattr("inspector.gui.window.main_window.ask_trust", lambda _window, asks, *_: trusts.append(asks))
    with opened(qtbot, background=False) as window:
        window.open_path(str(path))
        assert len(asked) == 1 and "model.py:make" in asked[0] and window.session.opening is None
        assert window.status.sentence.whole == "a.session.json was not opened."
        answer[0] = OPEN
        window.open_path(str(path))
        qtbot.waitUntil(lambda: bool(trusts))
        assert [Path(file.path).name for file in trusts[0].files] == ["model.py"], "the code itself is asked about too"
        window.session.refuse()
        window.open_path(str(path))
        assert len(asked) == 2, "this content was agreed to"
        qtbot.waitUntil(lambda: len(trusts) == 2)
        window.session.refuse()
    assert not mark.exists()


def test_layouts_are_kept_by_name_and_a_capture_by_its_path(tmp_path: Path, qtbot: Any) -> None:
    capture, path = write(tmp_path / "a.inspect", numbers()), tmp_path / "s.session.json"
    with opened(qtbot, background=False) as window:
        layouts, docks = window._menus.layouts, window.docks
        first = describe(window.docking)
        assert check(json.loads(json.dumps(first))) == first, "it is plain values"
        docks["model"].hide()
        docks["lags"].setFloating(True)
        docks["lags"].setGeometry(40, 50, 420, 310)
        qtbot.wait(20)
        layouts.save("small & mine")
        wanted = describe(window.docking)
        window.docking.reset()
        assert not docks["model"].isHidden() and not docks["lags"].isFloating()
        named = layouts.menu.actions()[0]
        assert named.text() == "small && mine"
        named.trigger()
        qtbot.wait(20)
        assert docks["model"].isHidden() and docks["lags"].isFloating()
        found = describe(window.docking)
        assert found["hidden"] == wanted["hidden"] and found["areas"].keys() == wanted["areas"].keys()
        assert _tabs(found) == _tabs(wanted)
        docks["lags"].setFloating(False)  # a window of its own, which would outlive the test
        layouts.remove("small & mine")
        assert layouts.known() == {}
        assert window.sessions.present() is None, "nothing is open"
        window.open_capture(str(capture))
        window.looking.move(step=5)
        window.sessions.save(path)
        saved, _ = read_session(path)
        assert saved.load is None and saved.opened == str(capture) and saved.at.step == 5
        assert '"opened": "a.inspect"' in path.read_text(encoding="utf-8")
        window.looking.move(step=0)
        window.open_path(str(path))
        qtbot.waitUntil(lambda: window.looking.position.step == 5)


def test_a_layout_docks_panels_that_float(qtbot: Any) -> None:
    with opened(qtbot, background=False) as window:
        layouts, docks = window._menus.layouts, window.docks
        wanted = describe(window.docking)
        layouts.save("docked")
        for key in ("lags", "states"):
            docks[key].setFloating(True)
        qtbot.wait(20)
        layouts.use("docked")
        layouts.remove("docked")
        assert not any(dock.isFloating() for dock in docks.values()), "they go back where the layout has them"
        assert _tabs(describe(window.docking)) == _tabs(wanted)


def _tabs(layout: dict[str, Any]) -> list[tuple[str, ...]]:
    """The groups of tabs, each in the order of the alphabet."""

    def groups(node: dict[str, Any]) -> list[tuple[str, ...]]:
        if "tabs" in node:
            return [tuple(sorted(node["tabs"]))]
        return [found for name in ("across", "down") for part in node.get(name, ()) for found in groups(part)]

    return sorted(found for node in layout["areas"].values() for found in groups(node))


@pytest.mark.parametrize(
    "layout",
    [
        {"areas": []}, {"areas": {"middle": {"tabs": []}}}, {"areas": {"left": 5}}, {"areas": {"left": {}}},
        {"areas": {"left": {"tabs": [1]}}}, {"areas": {"left": {"across": [{"tabs": ["a"]}]}}},
        {"areas": {"left": {"down": [{"tabs": ["a"]}], "sizes": [-1]}}}, {"hidden": "x"}, {"enlarged": 3},
        {"floating": {"a": [1, 2, 3]}}, {"floating": {"a": [1, 2, 3, 10**9]}}, [],
    ],
)  # fmt: skip
def test_a_layout_of_another_form_is_refused(layout: Any) -> None:
    with pytest.raises(ValueError, match="layout"):
        check(layout)
