"""The training log beside a checkpoint, `history.json`, read with checks, since it comes from outside."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from inspector.capture.regular import in_words, read_text, regular_stat
from inspector.engine.errors import Unsupported
from inspector.records.json_text import read_json

NAME = "history.json"
LARGEST = 64 << 20
"""Bytes up to which the file is read."""


def read_history(checkpoint: str) -> Mapping[str, Any] | None:
    """The file beside a checkpoint as it is; None where there is none. Raises Unsupported."""
    path = Path(checkpoint).parent / NAME
    if not checkpoint:
        return None
    try:
        if regular_stat(path).st_size > LARGEST:
            raise Unsupported(f"it is larger than {LARGEST >> 20} MB")
        found = read_json(read_text(path))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, Unsupported) as fault:
        raise Unsupported(unreadable(in_words(fault) if isinstance(fault, OSError) else fault)) from None
    if not isinstance(found, dict):
        raise Unsupported(unreadable("it has no named columns"))
    return found


def unreadable(why: object) -> str:
    """The message about a file that does not have the expected content."""
    return f"{NAME} beside the checkpoint cannot be read: {why}."


def column(values: Any, name: str) -> Tensor:
    """A column as float64, NaN where it is null. Raises Unsupported where it is not a list of numbers."""
    try:
        return torch.tensor([math.nan if value is None else float(value) for value in values], dtype=torch.float64)
    except (TypeError, ValueError):
        raise Unsupported(unreadable(f"{name} is not a list of numbers")) from None


def columns(known: Mapping[str, Any]) -> tuple[Tensor, dict[str, Tensor]]:
    """(steps (n,), {name: (n,)}) of every list of a table beside its "step"; without that, rows are numbered.

    Raises Unsupported where one is not as long as the others.
    """
    found = {name: column(values, name) for name, values in known.items() if isinstance(values, list)}
    steps = found.pop("step", None)
    if steps is None:
        steps = torch.arange(max(map(len, found.values()), default=0), dtype=torch.float64)
    for name, values in found.items():
        if len(values) != len(steps):
            raise Unsupported(unreadable(f"{name} has {len(values):,} values for {len(steps):,} steps"))
    return steps, found
