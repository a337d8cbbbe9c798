"""The training step of each of many checkpoints, what told it, and their order."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from inspector.engine.errors import InputError
from inspector.engine.opening.read_checkpoint import loader_of
from inspector.engine.session.sweep.name_numbers import natural, numbers_in_names
from inspector.records import counted

FILE, NAME, EPOCH = "file", "name", "epoch"
KINDS = (FILE, NAME, EPOCH)
"""What can tell a step, the surest first: the checkpoint itself, its name, an epoch that it tells."""
HOW = {FILE: "the step that each tells itself", NAME: "the numbers in their names", EPOCH: "the epoch that each tells"}
Told = Mapping[str, tuple[int, str]]
"""{kind: (step, where it stands)}."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A checkpoint in its place among the others. `step` is None where nothing tells it."""

    path: Path
    name: str
    step: int | None = None
    told_by: str = ""


def in_order(paths: Sequence[Path], by: str = "") -> tuple[list[Candidate], str]:
    """The checkpoints in the order of training, and which kind decides it ("" where nothing does).

    All steps are of one kind where possible, since an epoch and an iteration do not compare: the first kind that most
    checkpoints have, or `by`, which decided before. Those that lack it come in by another kind that counts the same, or
    last, in natural order.
    """
    names = names_of(paths)
    numbers = numbers_in_names([names[path] for path in paths])
    told = {path: _told(path, numbers.get(names[path])) for path in paths}
    counts = {kind: sum(kind in one for one in told.values()) for kind in KINDS}
    chosen = by or max(KINDS, key=lambda kind: (counts[kind], -KINDS.index(kind)))
    if not by and not counts[chosen]:
        chosen = ""
    found = [_placed(path, names[path], told[path], chosen) for path in paths]
    found.sort(key=lambda one: (one.step is None, one.step or 0, natural(one.name)))
    return found, chosen


def _told(path: Path, number: int | None) -> Told:
    try:
        loader = loader_of(path)
        step = getattr(loader, "step", lambda _path: None)(path)
    except InputError:  # reported when its frame is computed
        step = None
    beside = _beside(path) if step is None else None
    found: dict[str, tuple[int, str]] = {}
    if step is not None or beside is not None:
        value, where = step or beside  # type: ignore[misc]
        found[EPOCH if "epoch" in where else FILE] = (value, where)
    if number is not None:
        found[NAME] = (number, "the number in its name")
    return found


def _beside(path: Path) -> tuple[int, str] | None:
    """The step in a trainer's state beside the last weights, which stand in the folder of the checkpoints."""
    from inspector.engine.registries import LOADERS

    folder = LOADERS["hugging-face"]
    weights = ("model.safetensors", "pytorch_model.bin")
    told: tuple[int, str] | None = folder.trainer_step(path.parent) if path.name.startswith(weights) else None  # type: ignore[attr-defined]
    return told


def _placed(path: Path, name: str, told: Told, chosen: str) -> Candidate:
    usable = [chosen, *(kind for kind in KINDS if kind != chosen and EPOCH not in (kind, chosen))]
    kind = next((kind for kind in usable if kind in told), None)
    return Candidate(path, name) if kind is None else Candidate(path, name, *told[kind])


def names_of(paths: Sequence[Path]) -> dict[Path, str]:
    """A name for each: that of the file or folder, or where two are the same from the folder on that they share."""
    own = {path: path.name for path in paths}
    if len(set(own.values())) == len(own):
        return own
    top = os.path.commonpath([str(path.parent) for path in paths])
    return {path: path.relative_to(top).as_posix() for path in paths}


def said_of_order(found: Sequence[Candidate], chosen: str) -> str:
    """One sentence about what decided the order."""
    many = counted(len(found), "checkpoint")
    if not chosen:
        return f"{many}; nothing tells a training step, so they are in the order of their names."
    first = next(one for one in found if one.step is not None)
    without = [one.name for one in found if one.step is None]
    last = f" Without one, and last: {', '.join(without[:3])}{' …' if len(without) > 3 else ''}." if without else ""
    return f"{many} in the order of {HOW[chosen]} ({first.name}: {first.step}, {first.told_by}).{last}"
