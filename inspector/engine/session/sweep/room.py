"""How many processes compute at a time, by the cores and the memory of this machine."""

from __future__ import annotations

import os
import sys
from pathlib import Path

PROCESS_BYTES = 600 << 20
"""What Python and torch take in each."""
COPIES = 5
"""Of the model's numbers: the model, its checkpoint, gradients, and as much again for what a run stores."""


def processes(wanted: int, frames: int, model_bytes: int, device: str, threads: int) -> tuple[int, str]:
    """(how many, one sentence about why). `wanted` is 0 for as many as fit; `frames` are to be computed."""
    need = PROCESS_BYTES + COPIES * model_bytes
    if wanted:
        return wanted, f"{wanted} at a time, about {need / 1e9:.1f} GB each."
    if device != "cpu":
        return 1, f"1 at a time on {device}; --workers N says otherwise."
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    free = free_bytes()
    fitting = cores // threads if free is None else min(cores // threads, int(free // need))
    count = max(1, min(fitting, frames))
    memory = "" if free is None else f" of {free / 1e9:.0f} GB that are free"
    return (
        count,
        f"{count} at a time: {cores} cores, about {need / 1e9:.1f} GB each{memory}; --workers N says otherwise.",
    )


def free_bytes() -> int | None:
    """Memory that can be taken without swapping; None where the system does not tell."""
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) << 10
    except (OSError, ValueError, IndexError):
        pass
    return None
