"""A thread that imports and the window's thread work by turns; Qt's classes are there before; signals close a window."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from inspector.gui.runtime import turns
from inspector.gui.runtime.turns import Turns

TYPES = """
import sys, threading
from inspector.gui.window import first_frame
from inspector.gui.runtime import display
first_frame.has_display = lambda: True
missing = []
def looked(self, *given, start=threading.Thread.start):
    for name in ("QtCore", "QtGui", "QtWidgets", "QtSvg", "QtTest", "QtNetwork"):
        module = sys.modules.get("PySide6." + name)
        missing.extend(f"{name}.{each}" for each in dir(module) if each not in vars(module)) if module else missing.append(name)
    start(self, *given)
threading.Thread.start = looked
first_frame.import_behind_it()
print(missing)
"""
SIGNALLED = """
import os, signal, sys
from PySide6.QtCore import QCoreApplication, QTimer
from inspector.gui.runtime.signals import close_by_signals
signal.signal(signal.SIGHUP, signal.SIG_IGN)
application = QCoreApplication([])
close_by_signals(lambda: print("closed", flush=True))
assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
timer = QTimer(interval=10)  # Python gets its turn
timer.timeout.connect(lambda: None)
timer.start()
def work():
    os.kill(os.getpid(), signal.SIGTERM)
    print("worked", flush=True)
if sys.argv[1:]:
    QTimer.singleShot(0, work)
else:
    print("ready", flush=True)
application.exec()
"""


def test_they_never_work_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "SLICE_SECONDS", 0.0)
    monkeypatch.syspath_prepend(str(tmp_path))
    inside: list[str] = []
    names = [f"taken_in_turns_{n}" for n in range(8)]
    for name, then in zip(names, [*names[1:], "string"], strict=True):
        (tmp_path / f"{name}.py").write_text(
            f"import sys, time\nsys.inside.append({name!r})\ntime.sleep(0.005)\nimport {then}\n"
        )
    monkeypatch.setattr(sys, "inside", inside, raising=False)
    made = Turns(lambda: __import__(names[0]), "imports")
    assert not made.begun and not made.over
    given = 0
    while not made.over:
        made.give()
        given += 1
        before = list(inside)
        time.sleep(0.01)
        assert inside == before or made.over, "it worked in the other's turn"
    assert inside == names and given >= len(names) and made not in sys.meta_path
    made.give()  # nothing is left to be done


def test_it_goes_on_alone_where_no_turn_comes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "SLICE_SECONDS", 0.0)
    monkeypatch.setattr(turns, "ALONE_SECONDS", 0.05)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "taken_alone.py").write_text("import colorsys\n")
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    made = Turns(lambda: __import__("taken_alone"), "imports")
    made.give()
    made.thread.join(10)
    assert made.over


def test_work_that_raises_gives_its_turn_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    made = Turns(lambda: 1 / 0, "imports")
    made.finish()
    assert not made.begun
    made.give()
    made.finish()
    assert made.over and made not in sys.meta_path


def test_every_class_of_qts_is_made_before_another_thread_begins() -> None:
    environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen"}
    done = subprocess.run([sys.executable, "-c", TYPES], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_a_signal_closes_once_and_a_second_interrupt_ends() -> None:
    with subprocess.Popen([sys.executable, "-c", SIGNALLED], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGTERM)
        assert process.stdout.readline() == "closed\n"
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGHUP)
        time.sleep(0.1)
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == -signal.SIGINT and process.stdout.read() == ""


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_nothing_is_closed_in_the_middle_of_what_is_being_done() -> None:
    with subprocess.Popen([sys.executable, "-c", SIGNALLED, "x"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(2)] == ["worked\n", "closed\n"]
        process.kill()
