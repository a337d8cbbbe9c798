"""How many directions the outputs of a module take, over a batch: the effective rank, with its spread."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from inspector.engine.cells.family import sequence_family
from inspector.engine.watch.measure import Measure, Moment
from inspector.engine.watch.measures.activations import first_tensor
from inspector.engine.watch.parameters import Parameters, local
from inspector.engine.watch.tables import About

RANK, SPREAD = "modules:activation/effective_rank", "modules:activation/effective_rank_spread"
EVERY = 4
"""Of the recorded iterations in which a module is read, from one time to the next; the first one always."""
ROWS, FEWEST, NARROWEST = 64, 16, 4
"""Rows (a step of a sequence each) that are looked at, at most and at least; features that there are at least."""
GROUPS = 4
"""Every fourth row is left out in turn, for the spread."""
_BY_MODULE = ("module", "module")
MOST_KEPT, FEWEST_OF_A_CALL = 4 * ROWS, 4
"""Rows that are held while an iteration runs: of a module that is called step after step first fewer of each call, then
every other call, every fourth, …"""
_METHOD = (
    f"{ROWS} rows of the output at most, evenly spaced over all calls of the iteration; every {EVERY}th recorded "
    "iteration"
)


class EffectiveRank(Measure):
    """Of modules without others inside, and of recurrent ones."""

    tables = (
        About(
            name=RANK, title="effective rank of outputs", column=_BY_MODULE, method=_METHOD,
            formula="exp(−Σ p ln p), p = σ / Σ σ, σ the singular values of the outputs (rows, features)",
            source="Roy & Vetterli 2007; of a net's features: Dohare et al. 2024",
        ),
        About(
            name=SPREAD, title="spread of the effective rank", column=_BY_MODULE, method=_METHOD,
            formula=f"jackknife standard error, every {GROUPS}th row left out in turn", source="Efron & Stein 1981",
        ),
    )  # fmt: skip

    def __init__(self, parameters: Parameters) -> None:
        super().__init__(parameters)
        self._times: dict[str, int] = {}

    def reads(self, module: nn.Module) -> bool:
        """Modules whose output is not that of another one, and recurrent ones."""
        return not any(True for _ in module.children()) or sequence_family(module) is not None

    def called(self, moment: Moment, place: str, module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        """Take rows of every call of an iteration, now and then: the first step of a loop has its state at 0."""
        read: dict[str, _Rows | None] = moment.extra.setdefault(RANK, {})
        if place not in read:
            self._times[place] = times = self._times.get(place, 0) + 1
            read[place] = _Rows() if times % EVERY == 1 else None
        rows = read[place]
        if rows is not None:
            rows.take(output)

    def ends(self, moment: Moment) -> None:
        """The rank of what was taken."""
        read: dict[str, _Rows | None] = moment.extra.pop(RANK, {})
        for place, taken in read.items():
            rows = None if taken is None else taken.spaced()
            if rows is None or not bool(rows.isfinite().all()):
                continue
            rank, spread = with_spread(rows)
            moment.put(RANK, self.column("module", place), rank)
            moment.put(SPREAD, self.column("module", place), spread)


class _Rows:
    """Rows of what a module returned, of all its calls in an iteration; where they are many, evenly spaced ones."""

    def __init__(self) -> None:
        self._parts: list[Tensor] = []
        self._calls, self._every, self._most = 0, 1, ROWS

    def take(self, output: Any) -> None:
        """Copy rows of a call."""
        self._calls += 1
        rows = None if (self._calls - 1) % self._every else _rows_of(output)
        if rows is None or (self._parts and rows.shape[1] != self._parts[0].shape[1]):
            return
        self._parts.append(_evenly(rows, self._most))
        while sum(map(len, self._parts)) > MOST_KEPT:
            if self._most > FEWEST_OF_A_CALL:
                self._most //= 2
                self._parts = [_evenly(one, self._most) for one in self._parts]
            else:
                self._every *= 2
                self._parts = self._parts[::2]

    def spaced(self) -> Tensor | None:
        """(n, f) float64 on the CPU; None where there are too few."""
        if sum(map(len, self._parts)) < FEWEST:
            return None
        return _evenly(torch.cat(self._parts), ROWS).to("cpu", torch.float64)


def _rows_of(output: Any) -> Tensor | None:
    """(n, f) of a call; None where it returned no features."""
    values = first_tensor(output)
    if values is None or not values.is_floating_point() or values.dim() < 2 or values.shape[-1] < NARROWEST:
        return None
    rows = local(values).detach()
    return rows.reshape(-1, rows.shape[-1])


def _evenly(rows: Tensor, most: int) -> Tensor:
    picks = torch.linspace(0, len(rows) - 1, min(most, len(rows)), dtype=torch.float64).round().long()
    return rows[picks.to(rows.device)]


def effective_rank(rows: Tensor) -> float:
    """exp of the entropy of the singular values' shares; 0 of a matrix of zeros."""
    gram = rows @ rows.T if len(rows) < rows.shape[1] else rows.T @ rows
    sizes = torch.linalg.eigvalsh(gram).clamp(min=0).sqrt()
    whole = float(sizes.sum())
    return float(torch.special.entr(sizes / whole).sum().exp()) if whole > 0 else 0.0


def with_spread(rows: Tensor) -> tuple[float, float]:
    """(effective rank, jackknife standard error over interleaved groups of rows)."""
    group = torch.arange(len(rows)) % GROUPS
    parts = [effective_rank(rows[group != one]) for one in range(GROUPS)]
    mean = sum(parts) / GROUPS
    return effective_rank(rows), math.sqrt((GROUPS - 1) / GROUPS * sum((one - mean) ** 2 for one in parts))
