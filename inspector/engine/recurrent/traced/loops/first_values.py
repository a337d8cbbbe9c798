"""Initial values of a loop: every carried variable gets a first value of its own.

`h = c = torch.zeros(…)` is one tensor and two variables, `[zeros] * layers` one tensor and as many layers, and a
decoder may begin with what it reads at every step, `y = s; for …: y = f(s, y)`. Which of them a first step reads is
decided by the place where it is read. The recorded calls of those reads get a tensor of their own, so that all later
passes see two values. One row for all sequences of a batch is given in the shape of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from torch import Tensor

from inspector.engine.recurrent.traced.loops.iteration_classes import Twins
from inspector.engine.recurrent.traced.loops.loop import Label


class Carried(Protocol):
    """A carried variable: its values before the loop and after each iteration."""

    values: list[Tensor]


def part_starts(twins: Twins, begun: Sequence[tuple[Carried, Tensor]], reads: Callable[[Label, int], object]) -> None:
    """Give variables first values of their own in the recorded calls.

    `begun`: each variable with the tensor that its first reader was given; `reads`: which variable an operation's input
    of this number is.
    """
    taken: set[int] = set()
    for variable, given in begun:
        first = variable.values[0]
        readers = [(i, j, n, reads(twins.loop.iterations.labels[i][j], n)) for i, j, n in twins.readers(given)]
        if first is given and id(given) not in taken and not _is_input(twins, readers):
            taken.add(id(given))
            continue
        own = given.detach() if first is given else first
        variable.values = [own if value is first else value for value in variable.values]
        for i, j, n, one in readers:
            if one is variable:
                twins.give((i, j), n, own)


def _is_input(twins: Twins, readers: Sequence[tuple[int, int, int, object]]) -> bool:
    """Whether the tensor is also read where no value of a variable ever is: there it is an input of the steps.

    In a list of states that grows with every step it is the first of them, and no input.
    """
    sizes: dict[Label, set[int]] = {}
    for i, j, _, one in readers:
        if one is None:
            label, op = twins.loop.iterations[i][j]
            sizes.setdefault(label, set()).add(len(op.inputs))
    return any(len(own) == 1 for own in sizes.values())
