"""Checkpoints that execute, lie, are cut or bring down what reads them."""

from __future__ import annotations

import random
import resource
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from campaign import Outcome, Section, refused
from made_checkpoints import CANARY, MAKES, model, weights

from inspector.engine.errors import InputError
from inspector.engine.opening.checkpoint_matching import fit
from inspector.engine.opening.read_checkpoint import read_checkpoint

PATIENCE = 5.0
"""Seconds of processor time: those of the clock, of which a section has its own limit, say what else the machine does."""
MOST_MEMORY = 1 << 30
"""Bytes that reading may take beyond what was taken before: the largest of them has 300 MB if it is unpacked."""


def cases(count: int, seed: int) -> Iterator[dict[str, Any]]:
    """Each kind in turn."""
    for number in range(count):
        yield {"kind": list(MAKES)[number % len(MAKES)], "seed": seed * 1_000_003 + number}


def attempt(case: dict[str, Any], _prepared: None, scratch: Path) -> Outcome:
    """Read it, fit it into a model, apply it."""
    path = scratch / "c.pt"
    MAKES[case["kind"]](path, random.Random(case["seed"]))
    path = path if path.exists() or path.is_symlink() else path.with_suffix(".safetensors")
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    try:
        outcome = _read(path)
    except InputError as error:
        outcome = refused(error)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10
    if (scratch / CANARY).exists():
        return Outcome("lost", "it was executed")
    if time.process_time() - began > PATIENCE:
        return Outcome("lost", f"took {time.process_time() - began:.1f} s")
    return Outcome("lost", f"took {grown >> 20} MB") if grown > MOST_MEMORY else outcome


def _read(path: Path) -> Outcome:
    """Numbers are compared where the file has checksums: a bit that flipped in safetensors, or in a torch file of the old
    kind, makes another file that is as good."""
    target, true = model(), weights()
    whole = path.is_file() and zipfile.is_zipfile(path)
    report, plan = fit(target, read_checkpoint(path), path)
    plan.apply(target)
    if whole and report.fits and report.matched == len(true):
        found = target.state_dict()
        wrong = [name for name, value in true.items() if not torch.equal(found[name], value)]
        if wrong:
            return Outcome("lost", f"other numbers in {wrong[0]}")
    for one in report.mismatches[:20]:
        str(one)
    return Outcome("survived")


SECTIONS = [
    Section(
        "checkpoints", "hostile and broken checkpoints", 132, 400, cases, lambda _folder: None, attempt, seconds=60.0
    )
]
