"""A command of this program in a process of its own: what takes long there does not hold the window up."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence

from PySide6.QtCore import QProcess, QProcessEnvironment

from inspector.transport.parent_link import PARENT

PROGRESS = re.compile(r"  \d+ s: ")
"""A line of cli/progress.py, every ten seconds."""


def start_command(process: QProcess, words: Sequence[str]) -> None:
    """Start `inspector WORDS` in this Python, which finds the same packages. It ends with the window, however that
    ends."""
    environment = QProcessEnvironment.systemEnvironment()
    environment.insert("PYTHONPATH", os.pathsep.join(map(str, sys.path)))
    environment.insert(PARENT, str(os.getpid()))
    process.setProcessEnvironment(environment)
    process.start(sys.executable, ["-P", "-m", "inspector", *words])


def told_by(process: QProcess) -> str:
    """What it has written to stderr, without what it said of its progress meanwhile."""
    return without_progress(read_by(process))


def read_by(process: QProcess) -> str:
    """What it has written to stderr since that was read last."""
    return bytes(process.readAllStandardError().data()).decode("utf-8", "replace")


def without_progress(text: str) -> str:
    """The lines that say something else."""
    return "\n".join(line for line in text.splitlines() if not PROGRESS.match(line)).strip()


def newest_progress(text: str) -> str:
    """What the last line on its progress says; "" where there is none."""
    return next((line.strip() for line in reversed(text.splitlines()) if PROGRESS.match(line)), "")
