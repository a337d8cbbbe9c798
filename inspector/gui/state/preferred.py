"""What was chosen in the preferences and no menu has too, as the settings remember it."""

from __future__ import annotations

import math
import os
from pathlib import Path

from inspector.gui.state.settings import Settings
from inspector.transport.interpreter import VARIABLE
from inspector.transport.memory import MEMORY, named_limit

POINTS, THREADS, MEMORY_GB, DEVICE, RUNS, PYTHON = "font size", "threads", "memory", "device", "runs", "python"
"""Names of the choices in the settings that no menu has too."""
MOST_DIGITS = 9


def whole(settings: Settings, name: str) -> int:
    """A remembered whole number; 0 where there is none, or none that can be read."""
    text = settings.text(name, "0")
    return int(text) if text.isdecimal() and len(text) <= MOST_DIGITS else 0


def budget_of(settings: Settings, usual: float) -> float:
    """The remembered seconds for what is computed by itself; the usual ones where no number can be read."""
    try:
        found = float(settings.text("budget", str(usual)))
    except ValueError:
        return usual
    return found if 0 <= found < math.inf else usual


def threads_of(settings: Settings) -> int:
    """Threads that a worker gets: at most as many as there are cores; 0 leaves it to the worker."""
    return min(whole(settings, THREADS), os.cpu_count() or 1)


def memory_of(settings: Settings) -> float:
    """The GB that a worker may take: as the command line says, else as preferred; 0 for most of what is free."""
    return named_limit(os.environ.get(MEMORY, "")) / 1e9 or float(whole(settings, MEMORY_GB))


def python_of(settings: Settings, named: str | None = None) -> str | None:
    """The Python that runs models: the one named on the command line, else in INSPECTOR_PYTHON, else the preferred."""
    return named or os.environ.get(VARIABLE) or settings.text(PYTHON) or None


def worker_of(settings: Settings, named: str | None = None) -> tuple[str | None, int, float]:
    """Python, threads and memory of a worker."""
    return python_of(settings, named), threads_of(settings), memory_of(settings)


def runs_of(settings: Settings) -> Path | None:
    """Where runs are kept, or None for the usual folder."""
    text = settings.text(RUNS)
    return Path(text) if text and "\0" not in text else None
