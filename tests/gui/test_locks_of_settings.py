"""Locks of the settings that nobody gives back: the window does not wait for them, and what was chosen is kept."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication

from inspector.gui.state import settings as module
from inspector.gui.state import unlocked_store
from inspector.gui.state.settings import Settings

HOLDER = """
import os, signal, sys, time
from PySide6.QtCore import QLockFile
lock = QLockFile(sys.argv[1])
print(lock.lock(), flush=True)
os.kill(os.getpid(), signal.SIGSTOP)
"""


@pytest.fixture
def lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qapp: QApplication) -> Path:
    """Where Qt has the lock of the settings."""
    folder = tmp_path / "inspector"
    monkeypatch.setattr(module.platformdirs, "user_config_dir", lambda *_, **__: str(folder))
    return folder / "window.ini.lock"


def kept(lock: Path) -> str:
    return (lock.parent / "window.ini").read_text()


@pytest.mark.skipif(sys.platform != "linux", reason="SIGSTOP")
def test_a_window_that_was_stopped_while_it_wrote_holds_no_other(lock: Path, qapp: QApplication) -> None:
    """Qt waits without end for the lock of a process that lives: also where it writes by itself, after an event."""
    one = Settings()
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(lock)], stdout=subprocess.PIPE, text=True)
    try:
        for how in ("asked", "event", "layout"):
            if how == "asked":
                assert holder.stdout is not None and holder.stdout.readline() == "True\n"
            else:
                lock.write_text(f"{holder.pid}\npython\nhere\n")
            one.set_text("marker", f"kept {how}")
            began = time.monotonic()
            if how == "asked":
                assert one.not_written() == ""
            elif how == "event":
                qapp.processEvents()
            else:
                one._store.sync()
            assert time.monotonic() - began < 10
            assert f"kept {how}" in kept(lock) and not lock.exists()
    finally:
        holder.send_signal(signal.SIGKILL)
        holder.communicate()


def test_a_lock_that_the_disk_did_not_remove_is_not_waited_for(lock: Path) -> None:
    """Qt waits for half a minute for one of this process."""
    one = Settings()
    one.set_text("marker", "kept")
    lock.write_text(f"{os.getpid()}\npython\nhere\n")
    began = time.monotonic()
    one._store.free()
    assert not lock.exists() and time.monotonic() - began < 0.9 * unlocked_store.HELD_SECONDS
    assert one.not_written() == "" and "kept" in kept(lock)


@pytest.mark.parametrize("content", ["1\nsystemd\nhere\n", "", "x\n", "{own}0\n"])
def test_a_lock_of_another_is_left_while_that_may_write(
    content: str, lock: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As long as writing may take, and each that writes anew has that time."""
    monkeypatch.setattr(unlocked_store, "HELD_SECONDS", 0.4)
    one, seen, content = Settings(), list[bool](), content.format(own=os.getpid())
    lock.write_text(content)

    def writes() -> None:
        time.sleep(0.25)
        seen.append(lock.exists())
        lock.unlink()
        lock.write_text(content + "again")
        time.sleep(0.25)
        seen.append(lock.exists())
        lock.unlink()

    thread = threading.Thread(target=writes)
    thread.start()
    one._store.free()
    thread.join()
    assert seen == [True, True]
    lock.write_text(content)
    one._store.free()
    assert not lock.exists()
