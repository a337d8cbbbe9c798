"""What reaches a new state by ways that no recording sees: functions whose operations are not recorded, and numbers
that leave torch and come back.

Run again, such a value would stay as it was, though it may be computed from the state: its part of the derivative would
be missing without a word.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

import torch
from torch import Tensor

from inspector.engine.errors import Unsupported
from inspector.engine.recurrent.traced.loops.carried_state import Flow, Slot
from inspector.engine.recurrent.traced.origins import Origins
from inspector.engine.recurrent.traced.program.gates import leading_to
from inspector.engine.recurrent.traced.record.values import Numbers, same_entries

FROM_DATA = frozenset({"tensor", "as_tensor", "asarray", "new_tensor"})
"""Functions that make tensors of numbers; `torch.from_numpy` is not recorded."""
UNSEEN = (
    "something in them is made where no operation is recorded: by TorchScript, a transform of torch.func or an "
    "extension"
)
RETURNING = (
    "numbers of its state leave torch (numpy, tolist) and numbers that differ from step to step come back, so what the "
    "step computes is not known"
)


def check_recorded(flow: Flow, state: Sequence[Slot], made: Container[int]) -> None:
    """Raises Unsupported where a new state is made from a value that torch made unseen, another one at each step.

    Where autograd followed the run, a value without a gradient was not made from the state by torch.
    Counter-example: a value that such a function makes of the input alone; autograd's graph of the run has its steps.
    """
    followed = all(slot.values[-1].requires_grad for slot in state)
    for tensor in _unknown(flow, state, made):
        if (tensor.requires_grad or not followed) and not _from_outside(tensor):
            raise Unsupported(UNSEEN)


def check_returning(flow: Flow, state: Sequence[Slot], made: Origins) -> None:
    """Raises Unsupported where the numbers of a state leave torch, and a new state is made from numbers that come in.

    Counter-example: states that are kept as arrays in a loop that reads its inputs from arrays, too.
    """
    if not any(_of_state(flow, state, number) for number in made.left):
        return
    entering = any(_from_outside(tensor) for tensor in _unknown(flow, state, made))
    if entering or any(_created(flow, state)):
        raise Unsupported(RETURNING)


def _of_state(flow: Flow, state: Sequence[Slot], number: int) -> bool:
    """Whether a tensor is a value of the state, or is computed from one."""
    place = flow.source.get(number)
    bits = sum(1 << slot.index for slot in state)
    if place is not None and flow.reach[place[0]][place[1]] & bits:
        return True
    return any(bool((flow.held[slot.index] == number).any()) for slot in state)


def _unknown(flow: Flow, state: Sequence[Slot], made: Container[int]) -> Iterator[Tensor]:
    """Numbers with a fraction that a new state is made from, of no known origin, and not the same at every step."""
    carried = {number for held in flow.held for number in held.tolist()}
    alone: list[Tensor] = []
    for i, members in flow.twins.members.items():
        for j in leading_to(flow, state, i, through_others=True):
            for n, given in enumerate(flow.op((i, j)).inputs):
                if not _fraction(given) or id(given) in made or id(given) in carried:
                    continue
                if len(members) == 1:
                    alone.append(given)
                elif _changes(flow, members, j, n):
                    yield given
    if len({id(given) for given in alone}) > 1 and not all(same_entries(alone[0], given) for given in alone):
        yield from alone


def _changes(flow: Flow, members: Numbers, j: int, n: int) -> bool:
    first, second = flow.twins.inputs(members[:2], j, n)
    return first is not second and not same_entries(first, second)


def _created(flow: Flow, state: Sequence[Slot]) -> Iterator[bool]:
    """Whether numbers became a tensor, other ones at each step, for each such call that a new state is made from."""
    for i, members in flow.twins.members.items():
        for j in leading_to(flow, state, i, through_others=True):
            op = flow.op((i, j))
            if op.name in FROM_DATA and _fraction(op.outputs[0]):
                ones = flow.twins.results(members[:2], j, 0)
                yield len(ones) == 1 or not torch.equal(*ones)


def _fraction(tensor: Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()


def _from_outside(tensor: Tensor) -> bool:
    """Whether a tensor has memory of another library (numpy's): torch did not compute it."""
    return not tensor.untyped_storage().resizable()
