"""States that a fused module returns twice: one step's output y and its last state h_n have the same values.

In autograd's graph neither is made from the other. What reads the output reads the state all the same, so the gradient
of the state is the sum of both.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only

from inspector.engine.recurrent.traced.loops.carried_state import Flow, Slot
from inspector.engine.recurrent.traced.program.sequence_functions import fused_arguments, takes_one_step
from inspector.engine.recurrent.traced.record.operation import Op, results_of
from inspector.engine.recurrent.traced.record.operator_traits import Kind

OUTPUT, STATE = 0, 1
"""Which of a fused module's results are its output and its last state h (an LSTM's c is the third)."""


@dataclass(frozen=True, slots=True)
class Returned:
    """A result of a fused module that has a state's values: `at[n]` is the state's entry of entry n, −1 for none."""

    value: Tensor
    at: Tensor

    def sent(self, gradient: Tensor, like: Tensor) -> Tensor:
        """A gradient at the result as one at the state, in the state's shape."""
        own = (self.at >= 0).to(gradient.device)
        found = gradient.new_zeros(like.numel())
        found.index_add_(0, self.at.to(gradient.device)[own], gradient.flatten()[own])
        return found.view(like.shape)


def returned_twice(flow: Flow, slot: Slot, i: int) -> tuple[Returned, ...]:
    """The output and the last state of the call that made a slot's value in step i, if a call with one step did; else
    ().

    Between the call and the slot there may be operations that only rearrange (`h[0]`).
    """
    value, j = slot.values[i + 1], slot.made[i]
    moved: list[tuple[Op, int]] = []
    op = flow.op((i, j)) if j >= 0 else None
    while op is not None and fused_arguments(op) is None:
        plain = op.traits.rearranges and op.traits.kind not in (Kind.DETACH, Kind.CAST) and not op.in_place
        if not plain or len(op.inputs) != 1 or op.inputs[0] is value:
            return ()
        moved.append((op, op.output(value)))
        value = op.inputs[0]
        made = flow.made_here(value, i)
        op = None if made is None else flow.op((i, made))
    if op is None or not takes_one_step(op) or op.output(value) > STATE:
        return ()
    entries = _entries(op)
    own = entries[op.output(value)]
    for through, number in reversed(moved):
        own = _again(through, own)[number]
    where = torch.full((op.outputs[STATE].numel(),), -1)
    where[own.flatten()] = torch.arange(own.numel())
    return tuple(Returned(op.outputs[n], where[entries[n].flatten()]) for n in (OUTPUT, STATE))


def _again(op: Op, given: Tensor) -> tuple[Tensor, ...]:
    """The results of an operation that reads one tensor, of another one."""

    def other(_: Tensor) -> Tensor:
        return given

    args, kwargs = tree_map_only(Tensor, other, (op.args, op.kwargs))
    return results_of(op.function(*args, **kwargs))


def _entries(op: Op) -> tuple[Tensor, Tensor]:
    """Which entry of the last state every entry of the output is, and every entry of the state itself."""
    given = fused_arguments(op)
    assert given is not None
    state = torch.arange(op.outputs[STATE].numel()).view(op.outputs[STATE].shape)
    last = torch.cat(tuple(state[-given.directions :]), -1)
    return (last[:, None] if given.batch_first else last[None]), state
