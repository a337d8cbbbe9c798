"""The shelf of loaders: one file a checkpoint format. Every loader refuses what it cannot read safely."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from torch import Tensor

MAX_STEP = 10**15
"""Larger numbers, which a file may well hold, are no training steps."""


@dataclass(slots=True)
class State:
    """What a checkpoint file holds, as found: tensors by name, the layout that was recognised, the training step."""

    tensors: dict[str, Tensor]
    layout: str
    step: int | None = None
    meta: dict[str, Any] = field(default_factory=dict)
    others: tuple[str, ...] = ()
    """Other tensor dicts in the same file that were not chosen (for example "ema" beside "model")."""


class Loader(Protocol):
    """Reads one checkpoint format."""

    summary: str
    suffixes: tuple[str, ...]

    def sniff(self, path: Path, head: bytes) -> bool:
        """True when the file's first bytes (4096) or name say that this loader can read it."""

    def load(self, path: Path) -> State:
        """All tensors on the CPU. Raises InputError with one clear sentence."""
