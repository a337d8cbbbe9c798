"""torch's own cells inside a hand-written step: which probe the loop belongs to, and the gates inside the cells.

A loop that only passes the state from one call of a cell to the next belongs to that cell's probe, which unpacks it in
closed form. Where there are operations in between (zoneout, masks, an input that is computed from the state, memory
beside the cell), the loop is a recurrence of its own, and the cell one operation of its step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from inspector.engine.cells.base import Cell
from inspector.engine.cells.family import (
    family_of_operation,
    sequence_family,
    sequence_operations,
    step_operations,
)
from inspector.engine.cells.gate_products import resolution
from inspector.engine.recurrent.traced.loops.carried_state import Flow, Slot
from inspector.engine.recurrent.traced.program.gates import Gate, leading_to
from inspector.engine.recurrent.traced.record.operation import Op
from inspector.engine.recurrent.verification import allowed_error, distance, largest


def of_a_cell(flow: Flow, state: Sequence[Slot]) -> bool:
    """True for a loop that is nothing but torch's own cells or fused modules, one after the other.

    Four iterations are examined, of which the first and the last may differ from the rest. Counter-example: a cell
    whose state is changed at a few steps in between is left to the cells' own probe, which notices the change and
    begins a new chain there.
    """
    bits = sum(1 << slot.index for slot in state)
    count = len(flow.loop.iterations)
    found: list[Op] = []
    for i in {0, count // 2, count - 2, count - 1}:
        ops = flow.loop.iterations[i]
        found += [ops[j][1] for j in leading_to(flow, state, i) if flow.reach[i][j] & bits]
    cells, sequences = step_operations(), sequence_operations()
    if any(op.name in sequences for op in found):
        return True
    inside = [op.name in cells for op in found]
    return any(inside) and all(cell or op.traits.hands_on for cell, op in zip(inside, found, strict=True))


def of_a_family(flow: Flow, state: Sequence[Slot], claimed: Mapping[int, str]) -> tuple[bool, set[str]]:
    """(True for a loop that another probe unpacks, names of modules of a family that are a part of its step).

    `claimed`: ids of the modules of a known family whose Python code a recording follows, with their names. A loop is
    theirs when it is inside a module that runs whole sequences, or does nothing but call a cell.
    """
    if not claimed:
        return False, set()
    bits, count = sum(1 << slot.index for slot in state), len(flow.loop.iterations)
    found: set[str] = set()
    more = False
    for i in {0, count // 2, count - 2, count - 1}:
        ops = flow.loop.iterations[i]
        for op in (ops[j][1] for j in leading_to(flow, state, i) if flow.reach[i][j] & bits):
            owners = [flow.loop.iterations.table.owners.of(frame) for frame, _ in op.chain]
            own = [owner for owner in owners if isinstance(owner, nn.Module) and id(owner) in claimed]
            if any(sequence_family(module) is not None for module in own):
                return True, set()
            found |= {claimed[id(module)] for module in own}
            more |= not own and not op.traits.hands_on
    return bool(found) and not more, found if more else set()


def cells_within(flow: Flow, state: Sequence[Slot], parameters: dict[int, str]) -> set[str]:
    """Names of the modules whose cells the steps of this state call. `parameters`: id of a parameter → its name.

    The first and the last step are examined. Counter-example: a cell that is only called in between is shown by its
    own probe too, beside this recurrence.
    """
    found = set()
    for i in (0, len(flow.loop.iterations) - 1):
        for op in _calls(flow, state, i):
            name = parameters.get(id(op.args[2]), "")
            found.add(name.rpartition(".")[0])
    return found


def inner_gates(flow: Flow, state: Sequence[Slot], batch: int) -> list[Gate]:
    """The gates inside the cells that a step calls, recomputed and checked; none where the check fails."""
    columns: list[list[Op | None]] = []
    last: list[int] = []
    for i, members in flow.twins.members.items():
        for n, j in enumerate(_numbers(flow, state, i)):
            if n == len(columns):
                columns.append([None] * len(flow.loop.iterations))
                last.append(j)
            for step, call in zip(members.tolist(), flow.twins.calls(members, j).tolist(), strict=True):
                columns[n][step] = flow.twins.table.op(call)
    return [gate for calls, j in zip(columns, last, strict=True) for gate in _opened(calls, j, batch)]


def _numbers(flow: Flow, state: Sequence[Slot], i: int) -> list[int]:
    ops, cells = flow.loop.iterations[i], step_operations()
    return [j for j in sorted(leading_to(flow, state, i)) if ops[j][1].name in cells]


def _calls(flow: Flow, state: Sequence[Slot], i: int) -> list[Op]:
    return [flow.loop.iterations[i][j][1] for j in _numbers(flow, state, i)]


def _opened(calls: Sequence[Op | None], j: int, batch: int) -> list[Gate]:
    """The gates of one cell, called once in each iteration (None where it was not)."""
    own = [op for op in calls if op is not None]
    if len({id(weight) for op in own for weight in op.args[2:3]}) != 1 or any(op.kwargs for op in own):
        return []
    with torch.no_grad():
        cell = _cell(own[0])
        x = torch.stack([_rows(op.args[0]) for op in own])
        before = torch.stack([_state(op.args[1]) for op in own])
        after = torch.stack([_state(op.outputs) for op in own])
        if x.shape[1] != batch or x.dtype != before.dtype:
            return []
        again = cell.step(x.flatten(0, 1), before.flatten(0, 1)).view(after.shape)
        if distance(again, after) > allowed_error(resolution(after.dtype, after.device), largest(after)):
            return []
        gates = cell.gates(x, before)
    found = []
    for name, values in gates.items():
        rows = iter(values)
        found.append(Gate(name, [None if op is None else next(rows) for op in calls], j))
    return found


def _cell(op: Op) -> Cell:
    weights = tuple(None if one is None else one.detach() for one in (*op.args[2:6], None, None)[:4])
    family = family_of_operation(op.name)
    assert family is not None
    return family.make(op.name, [*weights, None])


def _state(value: Tensor | Sequence[Tensor]) -> Tensor:
    return _rows(value) if isinstance(value, Tensor) else torch.cat([_rows(one) for one in value], -1)


def _rows(value: Tensor) -> Tensor:
    return value.detach() if value.dim() == 2 else value.detach()[None]
