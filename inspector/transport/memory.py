"""Main memory: what is free on this machine, what a process takes of it, and how much a worker may take."""

from __future__ import annotations

import os
from pathlib import Path

MEMINFO = Path("/proc/meminfo")
MEMORY = "INSPECTOR_MEMORY"
"""In the environment: the most that a worker may take, in units of 10⁹ bytes; unset or 0 for most of what is free."""
MOST_OF_FREE = 0.9
"""Of the memory that would be free without the worker: beyond that the machine would begin to swap."""


def main_memory() -> int | None:
    """Bytes of main memory that are available to new work; None where the system does not tell (other than Linux)."""
    try:
        lines = MEMINFO.read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    kilobytes = next((line.split()[1] for line in lines if line.startswith("MemAvailable:")), None)
    return None if kilobytes is None else int(kilobytes) * 1024


def taken_by(process: int) -> int:
    """Bytes of memory that a process has for itself, without the files that it has mapped; 0 where it has ended."""
    try:
        pages = Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()
    except OSError:
        return 0
    return (int(pages[1]) - int(pages[2])) * os.sysconf("SC_PAGE_SIZE")


def named_limit(text: str) -> float:
    """The bytes that a number of GB says; 0 where it says none that can be used."""
    try:
        found = float(text) * 1e9
    except ValueError:
        return 0.0
    return found if 0 < found < float("inf") else 0.0


def allowed(taken: int, named: float) -> float:
    """The most bytes that a worker which has taken so many may take: `named`, or else most of what would be free."""
    if named:
        return named
    free = main_memory()
    return float("inf") if free is None else MOST_OF_FREE * (free + taken)
