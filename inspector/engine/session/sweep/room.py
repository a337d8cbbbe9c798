"""How many processes compute at a time, by the cores and the memory of this machine."""

from __future__ import annotations

import os
import sys

import torch

from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline.room import needed
from inspector.transport.memory import main_memory

PROCESS_BYTES = 500 << 20
"""What Python and torch take in each."""
COPIES = 3
"""Of the model's weights: the model, its checkpoint, and the gradients of its parameters."""


def bytes_of_frame(subject: Subject, batch: Batch) -> float:
    """About what a process takes that runs this model on this batch."""
    weights = sum(value.nbytes for value in subject.model.parameters())
    try:
        run = needed(subject, batch).in_main
    except Exception:  # noqa: BLE001 - families of other packages may raise anything; a sweep does not end for an estimate
        run = 0.0
    return PROCESS_BYTES + COPIES * weights + run


def processes(wanted: int, frames: int, each: float, device: str, threads: int) -> tuple[int, str]:
    """(how many, one sentence about why). `wanted` is 0 for as many as fit; `frames` are to be computed."""
    free = main_memory()
    memory = "" if free is None else f", with {free / 1e9:.1f} GB free"
    if wanted:
        return wanted, f"{wanted} at a time, about {each / 1e9:.1f} GB each{memory}."
    if torch.device(device).type != "cpu":
        return 1, f"1 at a time on {device}; --workers N says otherwise."
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    fitting = cores // threads if free is None else min(cores // threads, int(free // each))
    count = max(1, min(fitting, frames))
    return (
        count,
        f"{count} at a time, on {cores} cores, about {each / 1e9:.1f} GB each{memory}; --workers N says otherwise.",
    )
