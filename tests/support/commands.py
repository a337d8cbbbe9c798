"""The command line: in this process with a worker in a thread, and as a process of its own."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from in_process_worker import InProcessWorker

from inspector import cli

CHECKOUT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Done:
    """How a command ended."""

    code: int
    stdout: str
    stderr: str


def called(*arguments: str, cwd: Path) -> Done:
    """`inspector …` in this process; its worker is a thread."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", how, newline="\n") for how in ("strict", "backslashreplace"))
    with pytest.MonkeyPatch.context() as patch, _qt_as_it_was("--panel" in arguments or "diagnose" in arguments):
        patch.setattr(sys, "argv", ["inspector", *arguments])
        patch.setattr("inspector.transport.run_client.WorkerProcess", InProcessWorker)
        with contextlib.chdir(cwd), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = cli.main()
    return Done(code, _text(out), _text(err))


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    written = stream.buffer
    assert isinstance(written, io.BytesIO)
    return written.getvalue().decode()


def call(*arguments: str, cwd: Path, expect: int = 0) -> Done:
    """The same, which ends with an exit code that is expected."""
    done = called(*arguments, cwd=cwd)
    assert done.code == expect, done.stdout + done.stderr
    return done


_applications: list[object] = []
"""A second QApplication after one that has gone can crash: the first stays, as pytest-qt's does."""


@contextlib.contextmanager
def _qt_as_it_was(drawing: bool) -> Iterator[None]:
    """Figures are drawn with a message handler of their own; who listened before listens again."""
    if not drawing:
        yield
        return
    from PySide6.QtCore import qInstallMessageHandler
    from PySide6.QtWidgets import QApplication

    _applications.append(QApplication.instance() or QApplication(["inspector"]))
    before = qInstallMessageHandler(None)
    qInstallMessageHandler(before)
    try:
        yield
    finally:
        qInstallMessageHandler(before)


def apart(*arguments: str, cwd: Path, expect: int = 0) -> subprocess.CompletedProcess[str]:
    """`inspector …` as the shell starts it."""
    done = subprocess.run(
        [sys.executable, "-m", "inspector", *arguments], cwd=cwd, capture_output=True, text=True, timeout=120,
        env={**os.environ, "QT_QPA_PLATFORM": "offscreen"},
    )  # fmt: skip
    assert done.returncode == expect, done.stdout + done.stderr
    return done
