"""Which checkpoints a folder holds: the request to the worker that looks at them, and its answer."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ListCheckpoints:
    """List the checkpoints that folders, patterns and files stand for. No model is opened and nothing is unpickled."""

    paths: tuple[str, ...]
    generation: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedCheckpoint:
    """One of them. `step` is None where nothing tells it; `told_by`: where it stands."""

    path: str
    name: str
    step: int | None = None
    told_by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointList:
    """The answer: the checkpoints in the order of training, and one sentence about what decided it."""

    checkpoints: tuple[ListedCheckpoint, ...] = ()
    order: str = ""
    generation: int = 0
