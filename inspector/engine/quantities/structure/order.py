"""Does the model see the order of its inputs? They are permuted, and its outputs compared with the permuted ones."""

from __future__ import annotations

import torch

from inspector.engine.analyses.structure.calls import Answer, Calls
from inspector.engine.analyses.structure.changes import alone, with_values
from inspector.engine.analyses.structure.findings import PLACE, Found, write
from inspector.engine.analyses.structure.modules import Moved, found_in, outputs
from inspector.engine.errors import NotApplicable, Unsupported
from inspector.engine.model.batch import Batch
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import Describe, per_run
from inspector.engine.trace.trace import Trace

ABOUT = Describe(
    kind="structure", compare="separate", scale="log", title="distance from permutation equivariance",
    formula="max_f |f(Px)_t[f] − (P f(x))_t[f]| / max |f(x)|, P a permutation of the steps",
    source="Vaswani et al. 2017, section 3.5; Zaheer et al. 2017, arXiv 1703.06114",
)  # fmt: skip
ROUNDING = 64.0
"""Sums over positions are made in another order: so many times the rounding of a call with the same order."""


@QUANTITIES.register("structure/order")
@per_run(
    summary="whether the model sees the order of its inputs", order=90, default=False,
    cost="some eight runs of the model", work=lambda run: run.call * 8,
)  # fmt: skip
def order(trace: Trace, emit: Emitter) -> None:
    """Write (step,) how far the outputs for permuted inputs are from the permuted outputs: 0 where order is not seen.

    Of a model without a step axis in its output: how far its output for permuted inputs is from its output.
    """
    try:
        calls, one = Calls(trace), alone(trace.batch)
        orders = [way for way in _orders(one.length, trace.seed) if not _is_same(one.inputs, way)]
        if not orders:
            raise Unsupported("All inputs of the sequence are the same, so that it has no order.")
        first = calls.settled(one)
        found = []
        for permutation in orders:
            other = with_values(one, one.inputs[:, permutation])
            found.append((_permuted(first, permutation).change(calls.answer(other))[0], permutation, other))
        values, permutation, other = max(found, key=lambda way: float(way[0].max()))
        limit = ROUNDING * first.rounding
        seen = _where(calls, one, other, permutation) if float(values.max()) > limit else None
    except NotApplicable:
        return
    except Unsupported as reason:
        emit.refuse(f"{PLACE}:structure/order", str(reason))
        return
    dims = ("step",) if first.steps else ("value",)
    write(Found("order", ABOUT, dims, values.numpy(), limit, seen), emit)


def _orders(length: int, seed: int) -> list[torch.Tensor]:
    """Orders to try: by chance, each step one later, and backwards. One alone may leave what a model looks at in place,
    as its first step. Counter-example: a model that sees none but the order of steps that all three leave as it is."""
    chance = torch.randperm(length, generator=torch.Generator().manual_seed(seed))
    return [chance, torch.arange(length).roll(1), torch.arange(length).flip(0)]


def _is_same(inputs: torch.Tensor, order: torch.Tensor) -> bool:
    return torch.equal(inputs[:, order.to(inputs.device)], inputs)


def _permuted(answer: Answer, permutation: torch.Tensor) -> Answer:
    return Answer(answer.values[:, permutation], True) if answer.steps else answer


def _where(calls: Calls, one: Batch, other: Batch, permutation: torch.Tensor) -> Moved:
    """By module; one whose output has no input in it (the positions of a learned embedding) is the same in both."""
    try:
        first, second = outputs(calls, one), outputs(calls, other)
    except Unsupported:
        return Moved((), (), "")
    pairs = [(a, b) for a, b in zip(first, second, strict=False) if a.name == b.name]
    return found_in(pairs, lambda a, b: float(_permuted(a, permutation).change(b).max()), ROUNDING)
