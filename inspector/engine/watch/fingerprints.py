"""Fingerprints of every parameter and gradient, by which two trainings can be compared afterwards.

Eight numbers a tensor (engine/analyses/fingerprints.py), computed where it is and packed with the others. Parameters
of which this process holds a part only have none.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.optim import Optimizer

from inspector.engine.analyses.fingerprints import projections
from inspector.engine.watch.measure import Measure, Moment
from inspector.engine.watch.parameters import Parameters, local
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
    """Weights before the first recorded step and after each, and gradients as the optimizer gets them."""

    reads_gradients = True
    tables = (
        _about(START, "fingerprints of the weights at the beginning", "float64, before the first recorded step"),
        _about(GRADIENT, "fingerprints of gradients", "float64, as the optimizer gets them"),
        _about(WEIGHT, "fingerprints of weights", "float64, after the step"),
    )

    def __init__(self, parameters: Parameters) -> None:
        super().__init__(parameters)
        self._begun: set[int] = set()

    def step_begins(self, moment: Moment, optimizer: Optimizer, columns: Sequence[int]) -> None:
        """Gradients; the first time the weights too."""
        if id(optimizer) not in self._begun:
            self._begun.add(id(optimizer))
            self._add(moment, START, columns, [self.parameters.tensors[column] for column in columns])
        numbers, found = self.parameters.with_gradient(columns)
        self._add(moment, GRADIENT, numbers, found)

    def step_ended(self, moment: Moment, optimizer: Optimizer, columns: Sequence[int]) -> None:
        """The weights."""
        self._add(moment, WEIGHT, columns, [self.parameters.tensors[column] for column in columns])

    def _add(self, moment: Moment, table: str, columns: Sequence[int], tensors: Sequence[Tensor]) -> None:
        whole = [
            (column, local(one)) for column, one in zip(columns, tensors, strict=True)
            if not hasattr(self.parameters.tensors[column], "_local_tensor")
        ]  # fmt: skip
        if whole:
            places = [column * NUMBERS + n for column, _ in whole for n in range(NUMBERS)]
            moment.pack.add(table, places, torch.cat([_of(one) for _, one in whole]))


def _of(tensor: Tensor) -> Tensor:
    flat = tensor.reshape(-1)
    found = projections(flat.cpu() if flat.device.type == "mps" else flat)
    return found[:NUMBERS]
