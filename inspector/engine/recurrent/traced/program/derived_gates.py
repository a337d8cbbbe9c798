"""Gates that are computed from a softmax or a sigmoid by more than 1 − g.

The sum of a softmax up to each unit (Shen et al. 2019, ON-LSTM, equation 6), and a sigmoid that is rounded while its
gradient passes as if it were not (Bengio et al. 2013), are what multiplies the state, and not what they are made of.
"""

from __future__ import annotations

from collections.abc import Sequence

from inspector.engine.recurrent.traced.program.hard_gates import multiplies
from inspector.engine.recurrent.traced.record.operation import Op
from inspector.engine.recurrent.traced.record.operator_traits import Kind

Ops = Sequence[tuple[object, Op]]
CUMULATIVE, ROUNDED = "the sum of a softmax", "rounding (its gradient is that of what is rounded)"
COMPARED = frozenset(["gt", "ge", "lt", "le", "round", "where", "heaviside", "bernoulli"])
TOLERANCE = 1e-5
"""How far from 0 and 1 a rounded gate may be: g − p + p is g up to rounding."""


def derived_gate(ops: Ops, j: int, near: set[int]) -> tuple[int, str] | None:
    """The operation whose result is a gate that is made of the result of operation j, and how; None where none is."""
    op = ops[j][1]
    if not op.traits.unit or not op.outputs:
        return None
    return _cumulative(ops, j, near) if op.traits.normalises else _rounded(ops, j, near)


def _cumulative(ops: Ops, j: int, near: set[int]) -> tuple[int, str] | None:
    for k in _readers(ops, j, near):
        if ops[k][1].name.rstrip("_") != "cumsum":
            continue
        last = [k, *(n for n in _readers(ops, k, near) if ops[n][1].traits.name == "sub")]
        at = next((n for n in last if multiplies(ops, n, near)), None)
        if at is not None:
            return at, CUMULATIVE
    return None


def _rounded(ops: Ops, j: int, near: set[int]) -> tuple[int, str] | None:
    """The last sum of a sigmoid and what was compared or rounded, where its values are 0 and 1."""
    made, compared = {id(ops[j][1].outputs[0])}, False
    for k in sorted(near):
        op = ops[k][1]
        if k <= j or not op.outputs or not any(id(one) in made for one in op.inputs):
            continue
        name = op.name.strip("_")
        compared |= name in COMPARED
        if op.traits.kind is Kind.SUM and compared and multiplies(ops, k, near):
            values = op.outputs[0].detach()
            distance = values.minimum((values - 1).abs()).abs() if values.is_floating_point() else None
            return (k, ROUNDED) if distance is not None and float(distance.max()) <= TOLERANCE else None
        if op.traits.kind is Kind.SUM or op.traits.keeps_entries or name in COMPARED:
            made.add(id(op.outputs[0]))
    return None


def _readers(ops: Ops, j: int, near: set[int]) -> list[int]:
    made = ops[j][1].outputs[0]
    return [k for k in sorted(near) if k > j and any(one is made for one in ops[k][1].inputs) and ops[k][1].outputs]
