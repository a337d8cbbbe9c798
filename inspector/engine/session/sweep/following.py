"""Checkpoints that can be read: one that is still being written is waited for."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from inspector.engine.errors import InputError
from inspector.engine.opening.read_checkpoint import loader_of
from inspector.engine.session.sweep.frames import Identity, key_of
from inspector.engine.session.sweep.identity import identity, size_and_time

SETTLE_SECONDS = 1.0
"""A checkpoint that has not changed for so long is taken for written, where its beginning and its end can be read."""
PATIENCE_SECONDS = 60.0
"""One that cannot be read is waited for this long after its last change; then its frame says what is wrong.

Counter-example: a writer that pauses for longer than that in the middle of a file has it reported as damaged; what the
file holds later gets a frame of its own.
"""


@dataclass(slots=True)
class Settled:
    """What checkpoints looked like the last time, and since when."""

    now: Any = time.monotonic
    _seen: dict[Path, tuple[Identity, float]] = field(default_factory=dict)
    _told: dict[Path, tuple[tuple[int, int], dict[str, Any]]] = field(default_factory=dict)
    """Sizes and times of the last look, and the identity then: what has not changed is not read again."""

    def identities(self, paths: list[Path], wait: bool) -> dict[Path, dict[str, Any]]:
        """The identity of every checkpoint that is whole; with `wait` those that may be being written are left out."""
        found: dict[Path, dict[str, Any]] = {}
        for path in paths:
            try:
                told = self._identity(path)
            except InputError:
                if not wait:
                    found[path] = {"path": str(path), "size": 0, "changed": 0, "hash": ""}
                continue  # it was removed since it was listed
            if not wait or self._has_settled(path, key_of(told)):
                found[path] = told
        return found

    def _identity(self, path: Path) -> dict[str, Any]:
        """Raises InputError."""
        shape = size_and_time(path)
        before = self._told.get(path)
        if before is None or before[0] != shape:
            before = self._told[path] = (shape, identity(path))
        return before[1]

    def _has_settled(self, path: Path, told: Identity) -> bool:
        before = self._seen.get(path)
        if before is None or before[0] != told:
            self._seen[path] = (told, self.now())
            return False
        quiet = self.now() - before[1]
        return quiet >= PATIENCE_SECONDS or (quiet >= SETTLE_SECONDS and _can_be_read(path))


def _can_be_read(path: Path) -> bool:
    """Whether the parts of a checkpoint that say what it holds are there (not whether its numbers are)."""
    try:
        loader = loader_of(path)
        step = getattr(loader, "step", None)
        if step is not None:
            step(path)
    except InputError:
        return False
    return True
