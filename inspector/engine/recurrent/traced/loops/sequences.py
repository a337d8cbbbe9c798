"""Whole sequences that a loop hands from iteration to iteration: they go through a stack of layers and are no state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from torch.nn import Parameter

from inspector.engine.recurrent.traced.loops.carried_state import Flow, Slot
from inspector.engine.recurrent.traced.loops.loop import FEWEST
from inspector.engine.recurrent.traced.record.operation import Op
from inspector.engine.recurrent.traced.record.operator_traits import Kind


def is_sequence(flow: Flow, state: Sequence[Slot], leading: Collection[int]) -> bool:
    """True where what is carried is put together from the steps of a loop inside, and nothing enters from outside.

    `leading`: operations of the second iteration that lead to its new values. A state of several layers may be put
    together from them as well, but at each step of time an input enters. Counter-example: a stack of layers that share
    their weights, run on through time without an input, is taken for layers over a sequence.
    """
    ops = [flow.loop.iterations[1][j][1] for j in sorted(leading)]
    return any(_collects_steps(flow, op) for op in ops) and not any(_enters(flow, op) for op in ops)


def _collects_steps(flow: Flow, op: Op) -> bool:
    if op.traits.kind is not Kind.JOIN or len(op.inputs) < FEWEST:
        return False
    makers = [flow.source.get(id(given)) for given in op.inputs]
    places = [flow.op(place) for place in makers if place is not None and place[0] == 1]
    sites = Counter((one.name, tuple((frame.f_code, at) for frame, at in one.chain)) for one in places)
    return max(sites.values(), default=0) >= FEWEST


def _enters(flow: Flow, op: Op) -> bool:
    """Whether an operation reads a tensor from outside the loop that is no weight."""
    if op.traits.forgets:
        return False
    own = {number for held in flow.held for number in held[:1].tolist()}
    return any(
        id(given) not in flow.source and id(given) not in own
        and not isinstance(given, Parameter) and not isinstance(given._base, Parameter)
        for given in op.inputs
    )  # fmt: skip
