"""Gates that are computed from a softmax or a sigmoid by more than 1 − g.

The sum of a softmax up to each unit (Shen et al. 2019, ON-LSTM, equation 6), and a sigmoid that is rounded while its
gradient passes as if it were not (Bengio et al. 2013), are what multiplies the state, and not what they are made of.
"""

from __future__ import annotations

from inspector.engine.recurrent.traced.program.hard_gates import multiplies
from inspector.engine.recurrent.traced.program.near import Near, Onwards
from inspector.engine.recurrent.traced.record.operator_traits import Kind

CUMULATIVE, ROUNDED = "the sum of a softmax", "rounding (its gradient is that of what is rounded)"
COMPARED = frozenset(["gt", "ge", "lt", "le", "round", "where", "heaviside", "bernoulli"])
TOLERANCE = 1e-5
"""How far from 0 and 1 a rounded gate may be: g − p + p is g up to rounding."""


def derived_gate(near: Near, j: int) -> tuple[int, str] | None:
    """The operation whose result is a gate that is made of the result of operation j, and how; None where none is."""
    op = near.ops[j][1]
    if not op.traits.unit or not op.outputs:
        return None
    return _cumulative(near, j) if op.traits.normalises else _rounded(near, j)


def _cumulative(near: Near, j: int) -> tuple[int, str] | None:
    ops = near.ops
    for k in _readers(near, j):
        if ops[k][1].name.rstrip("_") != "cumsum":
            continue
        last = [k, *(n for n in _readers(near, k) if ops[n][1].traits.name == "sub")]
        at = next((n for n in last if multiplies(near, n)), None)
        if at is not None:
            return at, CUMULATIVE
    return None


def _rounded(near: Near, j: int) -> tuple[int, str] | None:
    """The last sum of a sigmoid and what was compared or rounded, where its values are 0 and 1."""
    made, compared = Onwards(near, near.ops[j][1].outputs[0], j), False
    for k in made:
        op = near.ops[k][1]
        if not op.outputs:
            continue
        name = op.name.strip("_")
        compared |= name in COMPARED
        if op.traits.kind is Kind.SUM and compared and multiplies(near, k):
            values = op.outputs[0].detach()
            distance = values.minimum((values - 1).abs()).abs() if values.is_floating_point() else None
            return (k, ROUNDED) if distance is not None and float(distance.max()) <= TOLERANCE else None
        if op.traits.kind is Kind.SUM or op.traits.keeps_entries or name in COMPARED:
            made.follow(op.outputs[:1])
    return None


def _readers(near: Near, j: int) -> list[int]:
    return [k for k in near.readers(near.ops[j][1].outputs[0], j) if near.ops[k][1].outputs]
