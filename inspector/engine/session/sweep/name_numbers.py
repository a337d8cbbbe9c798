"""The training step in the names of checkpoints: `step-000400.pt`, `epoch=3-step=1200.ckpt`, `checkpoint-500`."""

from __future__ import annotations

import re
from collections.abc import Sequence

WORDS = (
    "globalstep", "step", "steps", "iteration", "iterations", "iter", "it", "batch", "update", "updates", "checkpoint",
    "ckpt", "epoch", "ep", "e",
)  # fmt: skip
"""What stands before a number that counts training, the surest first."""
MOST_DIGITS = 15
_NUMBER = re.compile(r"([A-Za-z]*)[=_\-. ]*(\d+(?:\.\d+)*)")


def numbers_in_names(names: Sequence[str]) -> dict[str, int]:
    """The number in each name that counts training; names without one are left out.

    It is the one behind a word that says so, if all names that have numbers have the word, else the last one that is
    not the same in all of them. Numbers with a point (`loss=0.32`, `v1.2`) are none. Counter-example: of names with
    nothing but a date (`model_20240131.pt`) the date is taken for the step; the order is right.
    """
    found = {name: groups for name in names if (groups := _groups(name))}
    for word in WORDS:
        if found and all(any(said == word for said, _ in groups) for groups in found.values()):
            return {name: next(n for said, n in reversed(groups) if said == word) for name, groups in found.items()}
    constant = _constant([[number for _, number in groups] for groups in found.values()])
    return {name: _last(groups, constant) for name, groups in found.items()}


def _groups(name: str) -> list[tuple[str, int]]:
    """(word before it, number) of every whole number in a name without its suffix."""
    stem = re.sub(r"(\.index)?\.[A-Za-z]+$", "", name)
    return [
        (word.lower(), int(digits))
        for word, digits in _NUMBER.findall(stem)
        if "." not in digits and len(digits) <= MOST_DIGITS
    ]


def _constant(rows: list[list[int]]) -> frozenset[int]:
    """Positions from the end at which all names have the same number: `resnet50_10`, `resnet50_20`."""
    if len(rows) < 2:
        return frozenset()
    depth = min(map(len, rows))
    return frozenset(at for at in range(1, depth + 1) if len({row[-at] for row in rows}) == 1)


def _last(groups: list[tuple[str, int]], constant: frozenset[int]) -> int:
    at = next((at for at in range(1, len(groups) + 1) if at not in constant), 1)
    return groups[-at][1]


def natural(name: str) -> list[tuple[int, str]]:
    """A key that sorts names as a person does: `a2` before `a10`."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d{1,15})", name)]
