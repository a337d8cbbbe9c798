"""torch's fused modules called inside a step, as plain operations: what such a call is given, its layers, its result.

A recorded call has the arguments of torch.lstm: input, state, all weights, then the options. States are ordered by
layer, then by direction; the directions' outputs lie side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from inspector.engine.cells.base import Cell
from inspector.engine.cells.family import CellFamily, families, sequence_operations
from inspector.engine.recurrent.traced.record.operation import Op

Parts = tuple[Tensor, ...]
MOST_STEPS = 64
"""Steps of one call that are written out: each is a dozen operations, and their derivatives are kept. Counter-example:
a step that reads a sentence of 100 words is known through autograd's graph of the run only."""
BIASED, PLAIN = 4, 2
"""Weights of one layer with and without biases; a projection is one more."""


@dataclass(frozen=True, slots=True)
class FusedArguments:
    """What one call of a fused module was given, in the order of torch's functions."""

    x: Tensor
    state: Any
    weights: Sequence[Any]
    biases: bool
    layers: int
    dropout: float
    training: bool
    bidirectional: bool
    batch_first: bool = False

    @property
    def drops(self) -> bool:
        """Whether dropout was active between its layers."""
        return self.training and self.dropout > 0 and self.layers > 1

    @property
    def parts(self) -> Parts:
        """The parts of the state, (layers · directions, b, ·) each."""
        return tuple(self.state) if isinstance(self.state, (tuple, list)) else (self.state,)

    @property
    def directions(self) -> int:
        """1 or 2."""
        return 2 if self.bidirectional else 1

    def steps_first(self) -> Tensor:
        """The input, (t, b, i)."""
        return self.x.transpose(0, 1) if self.batch_first else self.x

    def cells(self, family: CellFamily, name: str, *, live: bool) -> Iterator[Cell]:
        """The step of every layer in every direction, in the order of the states."""
        own = len(self.weights) // (self.layers * self.directions)
        for start in range(0, len(self.weights), own):
            weights = list(self.weights[start : start + own])
            if not self.biases:
                weights[PLAIN:PLAIN] = [None, None]
            yield family.make(name, [*weights, *[None] * (BIASED + 1 - len(weights))], live=live)


def fused_arguments(op: Op) -> FusedArguments | None:
    """The arguments of a recorded call of a fused module; None of another function, or of a packed sequence."""
    packed = len(op.args) > 1 and isinstance(op.args[1], Tensor) and not op.args[1].is_floating_point()
    if op.name not in sequence_operations() or op.kwargs or len(op.args) < 8 or packed:
        return None
    return FusedArguments(*op.args)


def takes_one_step(op: Op) -> bool:
    """Whether a call of a fused module computes a single step."""
    given = fused_arguments(op)
    return given is not None and given.steps_first().shape[0] == 1


def family_of_sequence(name: str) -> CellFamily | None:
    """The family that one of torch's functions for whole sequences ("lstm") belongs to."""
    return next((family for _, family in families() if name in family.kernels), None)


def runs_again(op: Op) -> bool:
    """Whether a recorded call can be run again as plain operations."""
    given = fused_arguments(op)
    return given is not None and not given.drops and 0 < given.steps_first().shape[0] <= MOST_STEPS


def fused_call(family: CellFamily, name: str, *args: Any) -> Parts:
    """(output, parts of the last state …) of a call, as torch.lstm returns them."""
    given = FusedArguments(*args)
    return _through(given, list(given.cells(family, name, live=True)), lambda cell, x, now: cell.eager_step(x, *now))


def fused_call_carried(family: CellFamily, name: str, *args: Any) -> Parts:
    """The same, with a derivative along the direct path of every layer only, everything else held fixed."""
    given = FusedArguments(*args)
    fixed = [None if one is None else one.detach() for one in given.weights]
    held = FusedArguments(given.x.detach(), given.state, fixed, *args[3:])
    return _through(held, list(held.cells(family, name, live=True)), _carried)


def _carried(cell: Cell, x: Tensor, now: Parts) -> Parts:
    fixed = tuple(part.detach() for part in now)
    after = cell.eager_step(x.detach(), *fixed)
    factors = cell.carry(x.detach(), *fixed)
    return tuple(
        new if factor is None else new + factor * (part - old)
        for new, factor, part, old in zip(after, factors, now, fixed, strict=True)
    )


def _through(given: FusedArguments, cells: Sequence[Cell], step: Callable[[Cell, Tensor, Parts], Parts]) -> Parts:
    rows: Sequence[Tensor] = given.steps_first().unbind(0)
    finals: list[Parts] = []
    for layer in range(given.layers):
        sides: list[list[Tensor]] = []
        for direction in range(given.directions):
            number = layer * given.directions + direction
            cell, now = cells[number], tuple(part[number] for part in given.parts)
            main = list(cell.parts).index(cell.main)
            made = []
            for x in reversed(rows) if direction else rows:
                now = step(cell, x, now)
                made.append(now[main])
            finals.append(now)
            sides.append(made[::-1] if direction else made)
        rows = [torch.cat(both, -1) if len(both) > 1 else both[0] for both in zip(*sides, strict=True)]
    last = tuple(torch.stack(values) for values in zip(*finals, strict=True))
    return torch.stack(list(rows), 1 if given.batch_first else 0), *last
