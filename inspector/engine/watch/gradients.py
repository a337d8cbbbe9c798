"""Gradient norms and counts of non-finite entries, by parameter and of all, before clipping and after it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.optim import Optimizer

from inspector.engine.watch.backward_calls import Scaled
from inspector.engine.watch.measure import Found, Measure, Moment
from inspector.engine.watch.pack import Values
from inspector.engine.watch.sums import not_finite, squares
from inspector.engine.watch.tables import About

BY_PARAMETER = ("parameter", "parameter")
NORM = "parameters:gradient/norm"
CLIPPED = "parameters:gradient/norm_clipped"
NON_FINITE = "parameters:gradient/non_finite"
GLOBAL = "training:gradient_norm"
SCALE = "training:gradient_scale"
NORMS = "gradient norm"
STEPPED, TAKEN = "columns stepped since the last backward pass", "numbers as optimizers took them"
"""What the group stores in `Moment.extra`: the columns that an optimizer has stepped since the last measurement;
and by table and column what was measured then, where a later backward pass of the iteration has added to it."""

_SEEN = (
    "exact, computed in float32 at least; read where the backward pass ended, divided by the factor of a GradScaler; "
    "where no backward pass was seen (torch.autograd.grad), as the optimizer got it"
)


def root(values: Values, _columns: Sequence[int]) -> Values:
    """Norms from sums of squares."""
    with np.errstate(invalid="ignore"):
        found: Values = np.sqrt(values)
    return found


class GradientNorms(Measure):
    """Before clipping: after each backward pass of the iteration, so that the last one counts, with all accumulated.

    Of a parameter that an optimizer has stepped meanwhile it is the last one before that step: a generator's pass adds
    to the gradients of its discriminator, which has made its step, and those gradients are of no use.
    """

    summed = (NORM, NON_FINITE)
    finishing = MappingProxyType({NORM: root})
    reads_gradients = True
    tables = (
        About(
            name=NORM, title="gradient norm", formula="‖∂L/∂θ‖₂ of each parameter, before clipping", scale="log",
            column=BY_PARAMETER, method=_SEEN,
        ),
        About(
            name=NON_FINITE, title="gradient entries that are not finite", unit="entries", column=BY_PARAMETER,
            formula="number of NaN and infinite entries", dtype="float64",
        ),
        About(
            name=GLOBAL, title="gradient norm, all parameters", scale="log", column=("statistic", NORMS),
            formula="sqrt(Σ over parameters of ‖∂L/∂θ‖²)", dtype="float64", method=_SEEN,
        ),
        About(
            name=SCALE, title="factor of the GradScaler", scale="log", dtype="float64",
            formula="what the loss was multiplied by; norms are divided by it",
        ),
    )  # fmt: skip

    def backward_ended(self, moment: Moment, roots: Sequence[Tensor], scaled: Scaled | None) -> None:
        """Norms of all gradients that there are now."""
        factor = None if scaled is None else scaled.factor.detach().clone()
        self._keep_taken(moment)
        parts = moment.pack.parts
        for key in [key for key in parts if key[0] in self.summed]:
            del parts[key]  # of an earlier backward pass: more has been added to the gradients since
        self._measure(moment, self.counted(), factor)
        moment.extra[NORM] = True
        if factor is not None:
            moment.pack.add(SCALE, (0,), factor)

    def step_begins(self, moment: Moment, optimizer: Optimizer, columns: Sequence[int]) -> None:
        """The only chance where the backward pass was not seen."""
        if NORM not in moment.extra:
            self._measure(moment, columns, None)
        moment.extra.setdefault(STEPPED, set()).update(columns)
        for taken in moment.extra.get(TAKEN, {}).values():
            for column in columns:
                taken.pop(column, None)  # of its step before this one

    def _keep_taken(self, moment: Moment) -> None:
        stepped = moment.extra.pop(STEPPED, None)
        for part in list(moment.pack.parts.values()) if stepped else ():
            if part.table in self.summed:
                kept = zip(part.columns, part.values, strict=True)
                taken = moment.extra.setdefault(TAKEN, {}).setdefault(part.table, {})
                taken.update({column: value for column, value in kept if column in stepped})

    def ends(self, moment: Moment) -> None:
        """Put back what optimizers took, in the place of what later passes added to."""
        for table, taken in moment.extra.get(TAKEN, {}).items():
            own = [part for key, part in moment.pack.parts.items() if key[0] == table]
            found = {column: value for one in own for column, value in zip(one.columns, one.values, strict=True)}
            found.update(taken)
            for one in own:
                del moment.pack.parts[table, tuple(one.columns)]
            for device in {value.device for value in found.values()}:
                there = {column: value for column, value in found.items() if value.device == device}
                moment.pack.add(table, list(there), torch.stack(list(there.values())), self.finishing.get(table))

    def _measure(self, moment: Moment, columns: Any, factor: Tensor | None) -> None:
        numbers, gradients = self.parameters.with_gradient(columns)
        if not gradients:
            return
        sums = squares(gradients)
        bad = not_finite(gradients, sums)
        moment.pack.add(NORM, numbers, sums if factor is None else sums / factor.double().square(), root)
        moment.pack.add(NON_FINITE, numbers, bad)

    def derive(self, moment: Moment, found: Found) -> None:
        """The norm of all gradients together."""
        norms = found.get(NORM)
        if norms:
            found.setdefault(GLOBAL, {})[0] = together(norms.values())


class ClippedNorms(Measure):
    """After clipping: as the optimizer gets them."""

    summed = (CLIPPED,)
    finishing = MappingProxyType({CLIPPED: root})
    reads_gradients = True
    tables = (
        About(
            name=CLIPPED, title="gradient norm after clipping", scale="log", column=BY_PARAMETER,
            formula="‖∂L/∂θ‖₂ of each parameter as the optimizer gets it",
        ),
    )  # fmt: skip

    def step_begins(self, moment: Moment, optimizer: Optimizer, columns: Sequence[int]) -> None:
        """Norms of the gradients now; an optimizer that unscales inside its step has the factor."""
        numbers, gradients = self.parameters.with_gradient(columns)
        if gradients:
            sums = squares(gradients)
            factor = getattr(optimizer, "grad_scale", None)
            if isinstance(factor, Tensor):
                sums = sums / factor.detach().double().square()
            moment.pack.add(CLIPPED, numbers, sums, root)

    def derive(self, moment: Moment, found: Found) -> None:
        """The norm of all gradients together."""
        norms = found.get(CLIPPED)
        if norms:
            found.setdefault(GLOBAL, {})[1] = together(norms.values())


def together(norms: Any) -> float:
    """The norm of several vectors as one; computed relative to the largest, so that tiny ones count."""
    values = [float(value) for value in norms]
    largest = max(values)
    if not math.isfinite(math.fsum(values)) or largest == 0:
        return math.sqrt(sum(value * value for value in values)) if largest else 0.0
    return largest * math.sqrt(math.fsum((value / largest) ** 2 for value in values))


def closure_of(args: Any, kwargs: Any) -> bool:
    """Whether a step was given a closure: then gradients are computed inside the step."""
    given = kwargs.get("closure", args[1] if len(args) > 1 else None)
    return callable(given) and not isinstance(given, torch.Tensor)
