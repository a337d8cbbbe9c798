"""torch's own cells and fused modules inside a hand-written step: which probe the loop belongs to, and their gates.

A loop that only passes the state from one call of a cell to the next belongs to that cell's probe, which unpacks it in
closed form. Where there are operations in between (zoneout, masks, an input that is computed from the state, memory
beside the cell), the loop is a recurrence of its own, and the cell one operation of its step. A fused module that is
called for one step is such a cell of one or several layers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor, nn

from inspector.engine.cells.base import Cell
from inspector.engine.cells.family import (
    family_of_operation,
    sequence_family,
    sequence_operations,
    step_operations,
)
from inspector.engine.cells.gate_info import RecurrentWeight
from inspector.engine.cells.gate_products import resolution
from inspector.engine.recurrent.traced.loops.carried_state import Flow, Slot
from inspector.engine.recurrent.traced.program.gates import Gate, leading_to
from inspector.engine.recurrent.traced.program.sequence_functions import (
    family_of_sequence,
    fused_arguments,
    takes_one_step,
)
from inspector.engine.recurrent.traced.record.operation import Op, tensors
from inspector.engine.recurrent.traced.record.values import storage_of
from inspector.engine.recurrent.verification import allowed_error, distance, largest

STATE = 2
"""Arguments of a recorded call before its weights: the input and the state."""


def of_a_cell(flow: Flow, state: Sequence[Slot]) -> bool:
    """True for a loop that is nothing but calls of one of torch's own cells or fused modules, each given the last one's
    state, and inputs that do not depend on it.

    Not where two modules make one step together (`h = a(x, s); s = b(h, s)`, or by turns): the probe of each would hold
    fixed what the other makes of the state. Also where a fused module takes several steps a call: each call is then a
    sequence of its own, which its probe unpacks. Not where a fused module's output, and not its last state, is what the
    next call is given: the probe follows the last state.
    """
    bits = sum(1 << slot.index for slot in state)
    cells, sequences = step_operations(), sequence_operations()
    found: list[Op] = []
    for i in flow.twins.members:
        ops = flow.loop.iterations[i]
        found += [ops[j][1] for j in leading_to(flow, state, i) if flow.reach[i][j] & bits]
    calls = [op for op in found if op.name in cells or op.name in sequences]
    if not flow.loop.depth and (_of_several_modules(calls) or _fed_with_the_state(flow, state)):
        return False
    if any(op.name in sequences and not takes_one_step(op) for op in found):
        return True
    inside = [op.name in cells or op.name in sequences for op in found]
    alone = any(inside) and all(cell or op.traits.hands_on for cell, op in zip(inside, found, strict=True))
    return alone and not any(_is_an_output(flow, slot) for slot in state)


def _of_several_modules(calls: Sequence[Op]) -> bool:
    return len({id(weight) for op in calls if (weight := _first_weight(op)) is not None}) > 1


def _first_weight(op: Op) -> Tensor | None:
    """W_ih of the first layer, by which a module is known; None where the call has another form."""
    if op.name in step_operations():
        return op.args[2] if len(op.args) > STATE else None
    weights = next((one for one in op.args[STATE:] if isinstance(one, (tuple, list))), ())
    return weights[0] if weights else None


def _fed_with_the_state(flow: Flow, state: Sequence[Slot]) -> bool:
    """Whether the input of a cell or fused module on the way from state to state is computed from the state too."""
    bits = sum(1 << slot.index for slot in state)
    held = {number for slot in state for number in flow.held[slot.index].tolist()}
    names = step_operations() | sequence_operations()
    for i in flow.twins.members:
        ops = flow.loop.iterations[i]
        for j in _numbers(flow, state, i, names):
            if not (flow.reach[i][j] & bits and ops[j][1].args):
                continue
            x = ops[j][1].args[0]
            made = flow.made_here(x, i, j)
            if (id(x) in held) if made is None else flow.reach[i][made] & bits:
                return True
    return False


def _is_an_output(flow: Flow, slot: Slot) -> bool:
    """Whether a new value is the output of a fused module, rearranged or not."""
    for i in flow.twins.members:
        j: int | None = slot.made[i] if slot.made[i] >= 0 else None
        value = slot.values[i + 1]
        while j is not None:
            op = flow.loop.iterations[i][j][1]
            if op.name in sequence_operations():
                if op.output(value) == 0:
                    return True
                break
            if not op.traits.rearranges:
                break
            value = op.inputs[0]
            j = flow.made_here(value, i, j)
    return False


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
    more |= len(found) > 1 and not flow.loop.depth  # several modules make one step together
    return bool(found) and not more, found if more else set()


def cells_within(flow: Flow, state: Sequence[Slot], parameters: dict[int, str]) -> set[str]:
    """Names of the modules whose cells the steps of this state call. `parameters`: id of a parameter → its name.

    Of steps that make the same operations one is examined.
    """
    found = set()
    for i in flow.twins.members:
        for op in _calls(flow, state, i):
            name = parameters.get(id(op.args[2]), "")
            found.add(name.rpartition(".")[0])
    return found


def fused_within(flow: Flow, state: Sequence[Slot]) -> set[int]:
    """The memory of the outputs of the fused modules' calls that the steps of this state make."""
    found: set[int] = set()
    for i, members in flow.twins.members.items():
        for j in _numbers(flow, state, i, sequence_operations()):
            found.update(map(storage_of, flow.twins.results(members, j, 0)))
    return found


def inner_gates(flow: Flow, state: Sequence[Slot], batch: int) -> list[Gate]:
    """The gates inside the cells that a step calls, recomputed and checked; none where the check fails.

    A cell is known by its weights, and by how often they were used before in the same step: cells may be called at some
    steps only.
    """
    columns: dict[tuple[int, int], list[Op | None]] = {}
    last: dict[tuple[int, int], int] = {}
    for i, members in flow.twins.members.items():
        seen: Counter[int] = Counter()
        for j in _numbers(flow, state, i, step_operations() | sequence_operations()):
            weight = _weight(flow.op((i, j)))
            key = weight, seen[weight]
            seen[weight] += 1
            own = columns.setdefault(key, [None] * len(flow.loop.iterations))
            last[key] = max(j, last.get(key, 0))
            for step, call in zip(members.tolist(), flow.twins.calls(members, j).tolist(), strict=True):
                own[step] = flow.twins.table.op(call)
    return [
        gate for key, calls in columns.items() for layer in _layers(calls) for gate in _opened(layer, last[key], batch)
    ]


def inner_weights(flow: Flow, state: Sequence[Slot], taken: Container[str]) -> tuple[RecurrentWeight, ...]:
    """The matrices by which torch's own cells inside the step multiply the state, gate by gate, where the last two
    steps call the same ones. `taken`: names that are given away.

    Counter-example: a cell that only some steps call is not listed where one of the last two leaves it out.
    """
    if flow.loop.depth:
        return ()
    last = len(flow.loop.iterations) - 1
    before = {_weight(op) for op in _fed(flow, state, last - 1)}
    found: dict[str, RecurrentWeight] = {}
    for op in {_weight(one): one for one in _fed(flow, state, last)}.values():
        steps = _steps(op) if _weight(op) in before else []
        for n, weight in ((n, one) for n, step in enumerate(steps) for one in step.cell().recurrent_weights()):
            name = f"l{n}/{weight.signal}" if len(steps) > 1 else weight.signal
            while name in found or name in taken:
                name += "'"
            found[name] = replace(weight, signal=name, gain=None)  # there is more in the step than this cell
    return tuple(found.values())


def _fed(flow: Flow, state: Sequence[Slot], i: int) -> list[Op]:
    """The calls of cells in an iteration whose own state is computed from the state."""
    own = {id(slot.values[i - lag]) for slot in state for lag in range(slot.lags + 1) if i >= lag}
    bits = sum(1 << slot.index for slot in state)

    ops, found = flow.loop.iterations[i], list[Op]()
    for j in _numbers(flow, state, i, step_operations() | sequence_operations()):
        op = ops[j][1]
        fused = fused_arguments(op)
        parts = tensors((op.args[1] if fused is None else fused.state,))
        made = [flow.made_here(one, i, j) for one in parts]
        if any(id(one) in own for one in parts) or any(n is not None and flow.reach[i][n] & bits for n in made):
            found.append(op)
    return found


def _weight(op: Op) -> int:
    """The id of a cell's first weight, or of a fused module's; 0 where it is not known."""
    given = fused_arguments(op)
    if given is not None:
        return id(given.weights[0])
    return id(op.args[2]) if len(op.args) > 2 else 0


def _numbers(flow: Flow, state: Sequence[Slot], i: int, names: Container[str]) -> list[int]:
    ops = flow.loop.iterations[i]
    return [j for j in sorted(leading_to(flow, state, i)) if ops[j][1].name in names]


def _calls(flow: Flow, state: Sequence[Slot], i: int) -> list[Op]:
    return [flow.loop.iterations[i][j][1] for j in _numbers(flow, state, i, step_operations())]


@dataclass(frozen=True, slots=True)
class _Step:
    """One step of one layer: the cell, its weights, input (b, i), state before and after (b, s)."""

    cell: Callable[[], Cell]
    weight: Tensor
    x: Tensor
    before: Tensor
    after: Tensor


def _layers(calls: Sequence[Op | None]) -> list[list[_Step | None]]:
    """The steps of one cell, or of every layer of a fused module, called once in each iteration (None where it was
    not); none where one of the calls cannot be opened."""
    made = [None if op is None else _steps(op) for op in calls]
    counts = {len(one) for one in made if one is not None}
    if len(counts) != 1:
        return []
    return [[None if one is None else one[layer] for one in made] for layer in range(counts.pop())]


@torch.no_grad()
def _steps(op: Op) -> list[_Step]:
    if op.name in step_operations():
        if op.kwargs:
            return []
        return [_Step(partial(_cell, op), op.args[2], _rows(op.args[0]), _state(op.args[1]), _state(op.outputs))]
    given, family = fused_arguments(op), family_of_sequence(op.name)
    if given is None or family is None or given.directions > 1 or not takes_one_step(op) or given.drops:
        return []
    x, found = given.steps_first()[0].detach(), []
    own = len(given.weights) // given.layers
    for layer, cell in enumerate(given.cells(family, op.name, live=False)):
        before, after = (
            torch.cat([part[layer].detach() for part in parts], -1) for parts in (given.parts, op.outputs[1:])
        )
        found.append(_Step(partial(_same, cell), given.weights[layer * own], x, before, after))
        x = after[:, cell.parts[cell.main]]
    return found


def _same(cell: Cell) -> Cell:
    return cell


def _opened(calls: Sequence[_Step | None], j: int, batch: int) -> list[Gate]:
    """The gates of one cell, called once in each iteration (None where it was not)."""
    own = [step for step in calls if step is not None]
    if len({id(step.weight) for step in own}) != 1:
        return []
    with torch.no_grad():
        cell = own[0].cell()
        x, before, after = (torch.stack([getattr(step, name) for step in own]) for name in ("x", "before", "after"))
        if x.shape[1] != batch or x.dtype != before.dtype:
            return []
        again = cell.step(x.flatten(0, 1), before.flatten(0, 1)).view(after.shape)
        if distance(again, after) > allowed_error(resolution(after.dtype, after.device), largest(after)):
            return []
        gates = cell.gates(x, before)
    found = []
    for name, values in gates.items():
        rows = iter(values)
        found.append(Gate(name, [None if step is None else next(rows) for step in calls], j))
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
