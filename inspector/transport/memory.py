"""Main memory: what is free on this machine, what a process takes of it, and how much a worker may take."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from inspector.transport.container_memory import left_in_container

MEMINFO = Path("/proc/meminfo")
MEMORY = "INSPECTOR_MEMORY"
"""In the environment: the most that a worker may take, in units of 10⁹ bytes; unset or 0 for most of what is free."""
MOST_PROCESSES = 10_000
MOST_OF_FREE = 0.9
"""Of the memory that would be free without the worker: beyond that the machine would begin to swap."""


def main_memory() -> int | None:
    """Bytes of main memory that are available to new work, a container's limit included; None where the system does
    not tell (other than Linux)."""
    try:
        lines = MEMINFO.read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    kilobytes = next((line.split()[1] for line in lines if line.startswith("MemAvailable:")), None)
    found = [left_in_container(), None if kilobytes is None else int(kilobytes) * 1024]
    return min((one for one in found if one is not None), default=None)


def taken_by(process: int) -> int:
    """Bytes of memory that a process has for itself, without the files that it has mapped; 0 where it has ended."""
    try:
        pages = Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()
    except OSError:
        return 0
    return (int(pages[1]) - int(pages[2])) * os.sysconf("SC_PAGE_SIZE")


def may_take_none(process: int) -> bool:
    """Whether a limit that cannot be lifted lies below the memory that a process has in use (Linux): whatever it tries
    next may fail, the start of a thread too, which is then waited for without end."""
    if sys.platform != "linux":
        return False
    import resource

    try:
        most = resource.prlimit(process, resource.RLIMIT_AS)[1]
        pages = int(Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()[0])
    except (OSError, ValueError, IndexError):
        return False
    return most != resource.RLIM_INFINITY and most < pages * resource.getpagesize()


def taken_below(process: int) -> int:
    """The same of all processes that a process has started and these have: pages that several share, as after a fork,
    count once. Of a single one this is `taken_by`, which takes less time."""
    below = started_by(process)
    return taken_by(below[0]) if len(below) == 1 else sum(map(_share_of, below))


def started_by(process: int) -> list[int]:
    """The processes that a process has started and these have, as far as the system tells (Linux)."""
    found, waiting = list[int](), [process]
    while waiting and len(found) < MOST_PROCESSES:
        for task in _listed(Path(f"/proc/{waiting.pop()}/task")):
            try:
                new = [int(one) for one in (task / "children").read_text(encoding="ascii").split()]
            except (OSError, ValueError):
                continue
            found += new
            waiting += new
    return found


def lives_below(process: int) -> bool:
    """Whether a process that it has started runs, and is no mere entry of one that has ended (Linux)."""
    for one in started_by(process):
        try:
            state = Path(f"/proc/{one}/stat").read_bytes().rpartition(b")")[2].split()[0]
        except (OSError, IndexError):
            continue
        if state not in (b"Z", b"X"):
            return True
    return False


def _listed(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def _share_of(process: int) -> int:
    """Bytes of a process without the files that it has mapped; of pages that n processes share, one n-th."""
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text(encoding="ascii").splitlines()
        return 1024 * sum(int(line.split()[1]) for line in lines if line.startswith(("Pss_Anon:", "Pss_Shmem:")))
    except (OSError, ValueError, IndexError):
        return 0


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
