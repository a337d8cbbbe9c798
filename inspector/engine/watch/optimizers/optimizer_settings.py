"""Settings of the optimizer by group: learning rate, weight decay and every other number, and changes of the first."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from inspector.engine.watch.tables import About

SETTINGS = "training:optimizer"
NAMES = "optimizer setting"
CONSTANT = 10
"""Recorded iterations for which a learning rate was the same, so that a change of it is an event. A schedule that
changes it at each step (a warm-up, a cosine) has no events; one that does so every few recorded iterations has none
either."""

ABOUT = About(
    name=SETTINGS, title="settings of the optimizer", column=("statistic", NAMES), dtype="float64",
    formula="every number in the optimizer's parameter groups, as it was at the step",
)  # fmt: skip


def numbers(group: Mapping[str, Any]) -> dict[str, float]:
    """The settings of a group that are numbers; of a pair (betas) each. Tensors on other devices are left out."""
    found: dict[str, float] = {}
    for key, value in group.items():
        if key == "params" or key.startswith("initial_"):
            continue
        parts = value if isinstance(value, (tuple, list)) else (value,)
        for n, one in enumerate(parts):
            number = _number(one)
            if number is not None:
                found[key if len(parts) == 1 else f"{key} {n + 1}"] = number
    return found


def _number(value: object) -> float | None:
    if isinstance(value, Tensor):
        return float(value) if value.numel() == 1 and value.device.type == "cpu" else None
    return as_float(value) if isinstance(value, (bool, int, float)) else None


def as_float(value: Any) -> float:
    """A number as float64; infinite where it is larger. Raises TypeError, ValueError for what is no number."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def by_name(optimizers: Sequence[Optimizer]) -> dict[str, float]:
    """All settings, "group 0: lr"; with several optimizers "optimizer 1 group 0: lr"."""
    found = {}
    for n, optimizer in enumerate(optimizers):
        lead = f"optimizer {n} " if len(optimizers) > 1 else ""
        for g, group in enumerate(optimizer.param_groups):
            found.update({f"{lead}group {g}: {key}": value for key, value in numbers(group).items()})
    return found


class RateChanges:
    """Notices changes of a learning rate that had been constant."""

    def __init__(self) -> None:
        self._last: dict[str, float] = {}
        self._same: dict[str, int] = {}

    def seen(self, settings: Mapping[str, float]) -> list[str]:
        """A sentence for each learning rate that changed now."""
        said = []
        for name, value in settings.items():
            if not name.endswith(": lr"):
                continue
            before = self._last.get(name)
            if before is not None and before != value:
                if self._same.get(name, 0) >= CONSTANT:
                    said.append(f"{name.removesuffix(': lr')}: learning rate {before:g} → {value:g}")
                self._same[name] = 0
            self._same[name] = self._same.get(name, 0) + 1
            self._last[name] = value
        return said


def described(
    optimizers: Sequence[Optimizer], names: Sequence[str], column: Mapping[int, int], of_model: int
) -> dict[str, Any]:
    """For the run's meta: class, groups with their settings and the names of their parameters, and who has none."""
    taken: set[int] = set()
    told = []
    for optimizer in optimizers:
        groups = []
        for group in optimizer.param_groups:
            own = [column[id(one)] for one in group["params"] if id(one) in column]
            taken.update(own)
            groups.append({"settings": _plain(group), "parameters": [names[c] for c in own]})
        kind = type(optimizer)
        told.append({"class": f"{kind.__module__}.{kind.__qualname__}", "groups": groups})
    left = [names[c] for c in range(of_model) if c not in taken]
    return {"optimizers": told, "without_optimizer": left, "torch": torch.__version__}


def _plain(group: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in group.items() if key != "params"}
    return {key: _as_plain(value) for key, value in kept.items()}


def _as_plain(value: object) -> Any:
    if isinstance(value, (bool, int, float, str)) or value is None:
        return value
    if isinstance(value, (tuple, list)):
        return [_as_plain(one) for one in value]
    if isinstance(value, Tensor) and value.numel() == 1 and value.device.type == "cpu":
        return float(value)
    return type(value).__name__
