"""Running sums that are a memory of keys and values, told from those that are not: counts, means, logarithms.

A memory sums up products whose factors differ from step to step, and what reads it multiplies it. A running sum of
Δ_t A is one of logarithms of decays: A is the same at every step, and what reads it is an exponential.
"""

from __future__ import annotations

from inspector.engine.recurrent.traced.record.operation import given_to, name_of, results_of
from inspector.engine.scans.diagonal import Diagonal
from inspector.engine.scans.factors import PASSED, SUMS, VIEWS, factors_of
from inspector.engine.scans.values import Flow

PRODUCT = 2
"""Factors by step of what is summed up where a running sum is a memory: of keys and values."""
POWERS = frozenset({"exp", "exp2", "expm1", "exp_", "exp2_", "logsumexp", "logcumsumexp", "softmax"})
SAME = VIEWS | PASSED | SUMS | {
    "sub", "__sub__", "__rsub__", "rsub", "sub_", "__isub__", "add_", "__iadd__", "neg", "__neg__", "masked_fill",
    "masked_fill_", "where", "tril", "triu", "pad", "chunk", "split", "unbind", "diff", "cat", "clamp",
}  # fmt: skip
"""Operations after which logarithms are logarithms still: differences, masks, changes of axes."""
AFTER = 48
"""Operations after a running sum among which an exponential of it is looked for."""


def is_memory(flow: Flow, found: Diagonal) -> bool:
    """Whether a recurrence with decay 1 keeps products of keys and values, and is not the logarithm of something."""
    shape, steps = found.layout.shape, found.layout.steps
    own = [one for one in factors_of(flow, found.b) if one.extends(steps, shape)]
    return len(own) >= PRODUCT and not _is_logarithm(flow, found)


def _is_logarithm(flow: Flow, found: Diagonal) -> bool:
    """Whether an exponential is taken of the sum, or of differences of it."""
    same = {id(found.h.tensor)}
    for n in range(found.h.made + 1, min(found.h.made + AFTER + 1, len(flow.table.calls))):
        call = flow.table.calls[n]
        if not any(id(one) in same for one in given_to(call)):
            continue
        name = name_of(call[0])
        if name in POWERS:
            return True
        if name in SAME:
            same |= {id(one) for one in results_of(call[3])}
    return False
