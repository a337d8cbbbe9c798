"""The app's own command line in a process beside the window: what takes long goes on while the window is used."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from PySide6.QtCore import QObject, QProcess, QProcessEnvironment


def own_command(parent: QObject) -> QProcess:
    """A process, not started, that finds the modules that this one finds."""
    process = QProcess(parent)
    environment = QProcessEnvironment.systemEnvironment()
    environment.insert("PYTHONPATH", os.pathsep.join(map(str, sys.path)))
    process.setProcessEnvironment(environment)
    return process


def start(process: QProcess, words: Sequence[str]) -> None:
    """Start `inspector` with these words."""
    process.start(sys.executable, ["-P", "-m", "inspector", *words])


def end(process: QProcess) -> None:
    """End it now."""
    process.kill()
    process.waitForFinished(1_000)


def said(process: QProcess) -> str:
    """What it wrote to stderr."""
    return bytes(process.readAllStandardError().data()).decode("utf-8", "replace")
