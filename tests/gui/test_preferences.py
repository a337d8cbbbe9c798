"""Preferences are remembered and take effect, what cannot be is refused; versions and errors are kept in files to send."""

from __future__ import annotations

import math
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from opened import opened
from PySide6.QtCore import Qt, qInstallMessageHandler
from PySide6.QtGui import QFont, QPalette
from PySide6.QtWidgets import QApplication, QPushButton

from inspector.gui.dialogs.about import About
from inspector.gui.dialogs.preferences import FIELDS, Chosen, PreferencesDialog
from inspector.gui.runtime.crash_file import KEPT, NATIVE, NativeCrashes, write
from inspector.gui.runtime.exception_hooks import install
from inspector.gui.runtime.versions import versions
from inspector.gui.state.preferred import PYTHON, memory_of, python_of, runs_of, threads_of
from inspector.gui.state.settings import Settings
from inspector.gui.window.main_window import Window
from inspector.gui.window.preferences import ANOTHER_WORKER, NEXT_WORKER, chosen_now, show_preferences, use
from inspector.records import Catalog, Entry
from inspector.transport.interpreter import VARIABLE
from inspector.transport.memory import MEMORY
from inspector.transport.process import THREADS, WorkerProcess
from inspector.version import __version__


@pytest.fixture
def window(qtbot: object, qapp: QApplication, monkeypatch: pytest.MonkeyPatch) -> Iterator[Window]:
    """With what a worker would report; afterwards the application looks as before."""
    font, colours = QFont(qapp.font()), QPalette(qapp.palette())
    monkeypatch.setattr("inspector.gui.state.session.Session.start_worker", lambda _session: None)
    with opened(qtbot) as made:
        made.session.catalog = Catalog(
            torch="2", threads=1, devices=("cpu", "cuda:0"), quantities=(Entry(key="bptt", summary="itemise"),)
        )
        made.offer(made.session.catalog)
        yield made
    qapp.setFont(font)
    qapp.setPalette(colours)


def test_what_is_chosen_is_remembered_and_takes_effect(
    window: Window, qapp: QApplication, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(MEMORY, raising=False)
    now = chosen_now(window)
    assert (now.theme, now.points, now.threads, now.device) == ("Auto", 0, 0, "cpu") and not now.also
    assert threads_of(window.settings) == 0 and runs_of(window.settings) is None
    wanted = Chosen("Dark", 13, 1, "cuda:0", str(tmp_path), math.inf, frozenset({"bptt"}), "/an/env", 6)
    use(window, now, wanted)
    assert chosen_now(window) == wanted
    assert window.theme.dark and qapp.font().pointSizeF() == 13 and window.device == "cuda:0"
    assert window.session.background.budget == math.inf and window.session.also == ("bptt",)
    assert threads_of(window.settings) == 1 and runs_of(window.settings) == tmp_path
    assert memory_of(window.settings) == 6
    monkeypatch.setenv(MEMORY, "2.5")
    assert memory_of(window.settings) == 2.5, "what the command line says"
    assert "from the next start" in window.session.sentence
    use(window, wanted, replace(wanted, points=0, also=frozenset()))
    assert qapp.font().pointSizeF() == qapp.property("first points") and window.session.also == ()


def test_what_the_worker_says_later_comes_into_the_dialog_that_is_open(
    qtbot: Any, qapp: QApplication, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its list stayed empty, and *OK* switched off what was computed by default before."""
    monkeypatch.setattr("inspector.gui.state.session.Session.start_worker", lambda _session: None)
    Settings().set_text("also", "bptt")
    catalog = Catalog(
        torch="2", threads=1, devices=("cpu", "cuda:0"),
        quantities=(Entry(key="bptt", summary="itemise"), Entry(key="b", summary="another")),
    )  # fmt: skip
    with opened(qtbot) as window:
        seen: list[list[str]] = []

        def reply(dialog: PreferencesDialog) -> int:
            items = [dialog.also.item(n) for n in range(dialog.also.count())]
            assert [one.text() for one in items] == ["The list is filled when the worker is ready"]
            assert dialog.read().also == frozenset(), "nothing is known yet"
            window.session.catalog = catalog
            window.offer(catalog)
            qtbot.waitUntil(lambda: dialog.also.count() == 2, timeout=30_000)
            items = [dialog.also.item(n) for n in range(dialog.also.count())]
            seen.append([one.text() for one in items if one.checkState() == Qt.CheckState.Checked])
            assert [dialog.device.itemText(n) for n in range(dialog.device.count())] == ["cpu", "cuda:0"]
            dialog._accept()
            return dialog.result()

        monkeypatch.setattr(PreferencesDialog, "exec", reply)
        show_preferences(window)
        assert seen == [["bptt: itemise"]] and window.session.also == ("bptt",)


def test_a_dialog_that_lists_nothing_switches_nothing_off(window: Window, monkeypatch: pytest.MonkeyPatch) -> None:
    window.compute_menu.keys["bptt"].setChecked(True)
    window.session.catalog = None
    monkeypatch.setattr(PreferencesDialog, "exec", lambda dialog: (dialog._accept(), dialog.result())[1])
    show_preferences(window)
    assert window.session.also == ("bptt",)


def test_the_python_of_models_is_that_of_the_command_line_else_the_preferred(
    window: Window, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert python_of(window.settings) is None
    window.settings.set_text(PYTHON, "/preferred")
    assert python_of(window.settings) == "/preferred"
    monkeypatch.setenv(VARIABLE, "/from/the/environment")
    assert python_of(window.settings) == "/from/the/environment"
    assert python_of(window.settings, "/named") == "/named"


def test_another_python_gets_a_worker_at_once_where_nothing_runs(
    window: Window, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[str] = []
    monkeypatch.setattr(type(window.session.connection), "alive", True)
    monkeypatch.setattr(type(window.session.connection), "end", lambda _self: ended.append("end"))
    monkeypatch.setattr(type(window.session), "start_again", lambda _self, why="": ended.append(why))
    now = chosen_now(window)
    use(window, now, replace(now, python="/an/env"))
    assert ended == ["end", ANOTHER_WORKER]
    window.session.running = True
    use(window, chosen_now(window), replace(chosen_now(window), python=""))
    assert len(ended) == 2 and NEXT_WORKER in window.session.sentence
    window.session.running = False


@pytest.mark.parametrize(
    ("python", "said"),
    [
        (sys.executable, ""),
        ("/nowhere/python", "There is no Python interpreter /nowhere/python"),
        ("/bin/echo", "is not"),
    ],
)
def test_a_python_in_which_models_cannot_run_is_refused_while_the_dialog_stays(
    qtbot: object, qapp: QApplication, python: str, said: str
) -> None:
    dialog = PreferencesDialog(Chosen(), (), ())
    qtbot.addWidget(dialog)
    dialog.python.setText(python)
    dialog._accept()
    assert not dialog.isEnabled() and dialog.result() == 0
    qtbot.waitUntil(dialog.isEnabled, timeout=30_000)
    assert dialog.result() == (0 if said else 1) and dialog.chosen.python == ("" if said else python)
    assert not said or said in dialog.problem.text()


def test_a_device_that_the_worker_does_not_have_is_not_used(window: Window) -> None:
    window.settings.set_text("device", "cuda:7")
    assert window.device == "cpu"


@pytest.mark.parametrize(
    ("points", "runs", "said"),
    [(3, "", "7 to 20"), (0, "beside/it", "not a whole path"), (0, __file__, "nothing can be written into")],
)
def test_what_cannot_be_is_refused_in_a_sentence(qapp: QApplication, points: int, runs: str, said: str) -> None:
    dialog = PreferencesDialog(Chosen(points=points, runs=runs), (), ())
    dialog._accept()
    assert said in dialog.problem.text() and not dialog.problem.isHidden() and dialog.result() == 0


def test_every_choice_has_a_name_and_gets_the_focus_by_it(window: Window, qapp: QApplication) -> None:
    dialog = PreferencesDialog(Chosen(), ("cuda:0",), (Entry(key="bptt", summary="itemise"),), window)
    dialog.show()
    dialog.activateWindow()
    for name in FIELDS:
        assert dialog.fields[name].accessibleName() == name.capitalize() and dialog.fields[name].toolTip()
        dialog.go_to(name)
        qapp.processEvents()
        assert dialog.fields[name].hasFocus()
    item = dialog.also.item(0)
    assert item is not None
    item.setCheckState(Qt.CheckState.Checked)
    assert dialog.read() == Chosen(also=frozenset({"bptt"}))
    dialog.close()


def test_a_worker_gets_the_threads_that_were_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[dict[str, str]] = []
    monkeypatch.setattr(subprocess, "Popen", lambda *_all, env, **_more: given.append(env))
    for threads in (0, 3):
        WorkerProcess(lambda _: None, lambda *_: None, lambda _: None, None, threads)._child({})
    assert [env.get(THREADS) for env in given] == [None, "3"]


def test_about_names_the_versions(window: Window) -> None:
    dialog = About([*versions(), ("runs", "<b>here</b>")], window)
    text = dialog.text.toPlainText()
    assert f"inspector: {__version__}" in text and "PySide6_Essentials: 6." in text and "runs: <b>here</b>" in text
    dialog.deleteLater()


def test_an_error_leaves_a_file_to_send_without_the_name_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "home", lambda: Path("/home/somebody"))
    paths = [write(f'File "/home/somebody/net.py", line {n}', tmp_path) for n in range(KEPT + 2)]
    text = paths[-1].read_text() if paths[-1] is not None else ""
    assert '"~/net.py", line 11' in text and "somebody" not in text and f"inspector: {__version__}" in text
    assert sorted(tmp_path.iterdir()) == sorted(path for path in paths[2:] if path is not None)
    assert write("x", Path(__file__)) is None  # nowhere to write to


def test_an_error_is_told_at_once_with_the_file_to_send(
    window: Window, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sentence waited in a window in which nothing happened until something else was to be said."""
    monkeypatch.setattr("inspector.gui.runtime.crash_file.folder", lambda: tmp_path)
    for module in (sys, threading):
        monkeypatch.setattr(module, "excepthook", module.excepthook)
    window._ticker.stop()
    install(window.show_fault, window.session.note, window.close)
    qInstallMessageHandler(None)
    sys.excepthook(ValueError, ValueError("no <b>axis</b>"), None)
    (file,) = tmp_path.glob("error-*.txt")
    said = f"An error in the window, nothing captured is lost; please send {file}: no <b>axis</b>"
    assert window.status.sentence.whole == said and window.status.folder.isVisible()
    assert "Please send this file" in file.read_text() and "no <b>axis</b>" in file.read_text()
    monkeypatch.setattr(window, "show_state", lambda: 1 / 0)  # the row itself is what went wrong
    sys.excepthook(ValueError, ValueError("again"), None)
    assert "again" in window.session.sentence and len(list(tmp_path.glob("error-*.txt"))) == 2


def test_about_is_copied_whole(window: Window, qapp: QApplication) -> None:
    dialog = About([*versions(), ("runs", "<b>here</b>")], window)
    (copy,) = [one for one in dialog.findChildren(QPushButton) if one.text().replace("&", "") == "Copy"]
    copy.click()
    assert qapp.clipboard().text() == dialog.text.toPlainText() and "runs: <b>here</b>" in qapp.clipboard().text()
    dialog.deleteLater()


def test_a_crash_of_native_code_is_told_at_the_next_start(tmp_path: Path) -> None:
    crash = (
        "import sys, ctypes; from pathlib import Path; from inspector.gui.runtime.crash_file import NativeCrashes;"
        "NativeCrashes(Path(sys.argv[1])).begin(); ctypes.string_at(0)"
    )
    ended = subprocess.run([sys.executable, "-c", crash, str(tmp_path)], check=False, timeout=60)
    assert ended.returncode != 0 and list(tmp_path.glob(f"{NATIVE}*"))
    found = NativeCrashes(tmp_path)._collect()
    assert found is not None and "string_at" in found.read_text()
    assert not list(tmp_path.glob(f"{NATIVE}*")) and NativeCrashes(tmp_path)._collect() is None


def test_a_window_that_was_closed_leaves_nothing(tmp_path: Path) -> None:
    quiet = (
        "import sys; from pathlib import Path; from inspector.gui.runtime.crash_file import NativeCrashes;"
        "one = NativeCrashes(Path(sys.argv[1])); one.begin(); one.end()"
    )
    subprocess.run([sys.executable, "-c", quiet, str(tmp_path)], check=True, timeout=60)
    assert list(tmp_path.iterdir()) == []
