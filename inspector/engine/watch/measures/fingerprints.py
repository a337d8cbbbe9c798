"""Fingerprints of every parameter and gradient, by which two trainings can be compared afterwards.

Eight numbers a tensor (engine/analyses/fingerprints.py), computed where it is and packed with the others. Of parameters
of which each process holds a part they are summed over the processes.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.optim import Optimizer

from inspector.engine.analyses.fingerprints import projections, projections_at
from inspector.engine.watch.measure import Found, Measure, Moment
from inspector.engine.watch.parameters import Parameters, local
from inspector.engine.watch.processes.ranks import several, share_of
from inspector.engine.watch.processes.shards import block_of
from inspector.engine.watch.tables import About
from inspector.records import FINGERPRINTS

NUMBERS = 8
START, GRADIENT, WEIGHT = (f"{FINGERPRINTS}/{word}" for word in ("start", "gradient", "weight"))


def _about(name: str, title: str, method: str) -> About:
    return About(
        name=name, title=title, kind="fingerprint", dtype="float64", column=("value", "fingerprint of a parameter"),
        formula=f"Σ_i ±x_i for {NUMBERS} fixed choices of signs, {NUMBERS} columns for each parameter", method=method,
        source="Alon, Matias & Szegedy 1996",
    )  # fmt: skip


class Fingerprints(Measure):
    """Weights before the first recorded step and after each, and gradients as the optimizer gets them.

    The signs belong to places in the whole parameter, so sums over shards add up to the numbers of the whole.
    """

    reads_gradients = True
    tables = (
        _about(START, "fingerprints of the weights at the beginning", "float64, before the first recorded step"),
        _about(GRADIENT, "fingerprints of gradients", "float64, as the optimizer gets them"),
        _about(WEIGHT, "fingerprints of weights", "float64, after the step"),
    )

    def __init__(self, parameters: Parameters) -> None:
        super().__init__(parameters)
        self._begun: set[int] = set()
        if any(share_of(one) is not None for one in parameters.tensors):
            self.summed = tuple(_part(table, n) for table in (START, GRADIENT, WEIGHT) for n in range(NUMBERS))

    def step_begins(self, moment: Moment, optimizer: Optimizer, columns: Sequence[int]) -> None:
        """Gradients; the first time the weights too."""
        first = [column for column in columns if column not in self._begun]
        if first:
            self._begun.update(first)
            self._add(moment, START, first, [self.parameters.tensors[column] for column in first])
        gradients = [self.parameters.tensors[column].grad for column in columns]
        known = [(column, one) for column, one in zip(columns, gradients, strict=True) if one is not None]
        self._add(moment, GRADIENT, [column for column, _ in known], [one for _, one in known])

    def step_ended(self, moment: Moment, optimizer: Optimizer, columns: Sequence[int]) -> None:
        """The weights."""
        self._add(moment, WEIGHT, columns, [self.parameters.tensors[column] for column in columns])

    def _add(self, moment: Moment, table: str, columns: Sequence[int], tensors: Sequence[Tensor]) -> None:
        found = [(column, one, _of(one)) for column, one in zip(columns, tensors, strict=True)]
        whole = [(column, numbers) for column, one, numbers in found if numbers is not None and share_of(one) is None]
        parts = [
            (column, numbers) for column, one, numbers in found if numbers is not None and share_of(one) is not None
        ]
        if whole:
            places = [column * NUMBERS + n for column, _ in whole for n in range(NUMBERS)]
            moment.pack.add(table, places, torch.cat([numbers for _, numbers in whole]))
        for n in range(NUMBERS) if parts else ():
            values = torch.stack([numbers[n] for _, numbers in parts])
            moment.pack.add(_part(table, n), [column for column, _ in parts], values)

    def derive(self, moment: Moment, found: Found) -> None:
        """Of sharded parameters the sums over all processes; none where the others did not add theirs."""
        for table in (START, GRADIENT, WEIGHT):
            for n in range(NUMBERS):
                for column, value in found.pop(_part(table, n), {}).items():
                    if moment.shared or not several():
                        found.setdefault(table, {})[column * NUMBERS + n] = value


def _part(table: str, number: int) -> str:
    return f"{table} {number}"


def _of(tensor: Tensor) -> Tensor | None:
    """(NUMBERS,) of the entries that are here; None where it is not known which these are."""
    flat = local(tensor).reshape(-1)
    flat = flat.cpu() if flat.device.type == "mps" else flat
    if share_of(tensor) is None:
        return projections(flat)[:NUMBERS]
    block = block_of(tensor)
    if block is None:
        return None
    start = block.start
    if start is not None:
        return projections(flat, start)[:NUMBERS]
    return projections_at(flat, lambda first, last: block.positions(first, last, flat.device))[:NUMBERS]
