"""What the parts of a scan are to each other: x from which a step's input is made, B that weighs it, C that reads.

Axes of units along which neither decay, B nor C differ hold copies of one map (the values of a head of linear
attention), so that one of each is enough. Letters: t step, d channel, n state entry that the readout sums over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import torch
from torch import Tensor

from inspector.engine.recurrent.traced.record.operation import given_to, name_of
from inspector.engine.scans.diagonal import Diagonal
from inspector.engine.scans.equivalent import Factors
from inspector.engine.scans.factors import PRODUCTS, Factor, factors_of
from inspector.engine.scans.readout import Reading, Readout, readout_of
from inspector.engine.scans.values import Flow, Layout, Value, wide

NEAR = PRODUCTS | {
    "exp", "log", "neg", "__neg__", "rsub", "__rsub__", "sub", "__sub__", "unsqueeze", "__getitem__", "view", "reshape",
    "expand", "transpose", "permute", "movedim", "mT", "clone", "einsum",
}  # fmt: skip
"""Operations entry by entry, through which a decay is followed to what it is made of: Δ of exp(Δ A), z of 1 − z."""
DEEPEST = 6


@dataclass(frozen=True, slots=True)
class Roles:
    """The parts of a scan.

    Attributes:
        x: factors of b that carry the token; weights: all others; both are broadcast to the states.
        readout: what reads the states, None where units are looked at one by one.
        kept: the axes of units, without the one that is summed, that have maps of their own.
    """

    x: tuple[Factor, ...]
    weights: tuple[Factor, ...]
    readout: Readout | None
    kept: tuple[int, ...]

    @property
    def axis(self) -> int | None:
        """The axis that the readout sums over."""
        return None if self.readout is None else self.readout.axis


def roles_of(flow: Flow, found: Diagonal, decay: Tensor, reading: Reading) -> Roles:
    """The roles of a scan's parts. `decay`: a, broadcast to the states."""
    layout, shape = found.layout, found.layout.shape
    every = factors_of(flow, found.b)
    decays = set() if found.a is None else _near(flow, found.a)
    for readout in (readout_of(flow, found.h, layout, reading), None):
        axis = None if readout is None else readout.axis
        x = tuple(
            one for one in every if _carries(one, layout, axis) and _key(_of_one_step(flow, one.value)) not in decays
        )
        if axis is not None and not x:
            continue
        x = x or tuple(every)
        weights = tuple(one for one in every if not any(one is other for other in x))
        others = [decay, *(one.numbers for one in weights), *([] if readout is None else [readout.numbers])]
        own = tuple(
            n for n in layout.units if n != axis and (axis is None or any(_varies(o, n, shape) for o in others))
        )
        return Roles(x, weights, readout, own)
    raise AssertionError("without a readout there is always an x")


def _carries(factor: Factor, layout: Layout, axis: int | None) -> bool:
    shape = layout.shape
    return factor.extends(layout.steps, shape) and (axis is None or not factor.extends(axis, shape))


def _varies(numbers: Tensor, axis: int, shape: Sequence[int]) -> bool:
    at = axis - len(shape)
    return -at <= numbers.dim() and numbers.shape[at] > 1


def _key(tensor: Tensor) -> tuple[int, int]:
    """Equal for views of the same entries."""
    return tensor.data_ptr(), tensor.numel()


def _of_one_step(flow: Flow, value: Value) -> Tensor:
    """Of what a loop makes or reads, that of one iteration, the second; other tensors as they are."""
    stacked = flow.stacked(value)
    return value.tensor if stacked is None else stacked[0][1]


def _near(flow: Flow, value: Value) -> set[tuple[int, int]]:
    """What a decay is made of, entry by entry."""
    first = _of_one_step(flow, value)
    found, waiting = {_key(value.tensor), _key(first)}, [first]
    for _ in range(DEEPEST):
        further: list[Tensor] = []
        for one in waiting:
            made = flow.table.maker(id(one))
            if made is not None and name_of(flow.table.calls[made][0]) in NEAR:
                further += given_to(flow.table.calls[made])
        found |= {_key(one) for one in further}
        waiting = further
    return found


def factors_for_map(found: Diagonal, roles: Roles, decay: Tensor, start: Tensor, count: int) -> Factors:
    """The factors of the map, of the selected sequence. `start`: the state before the first step, in h's axes but the
    steps'; `count`: real steps."""
    layout, readout = found.layout, roles.readout
    one = torch.ones((), dtype=found.h.numbers().dtype)
    x = reduce(torch.mul, (factor.numbers for factor in roles.x))
    weight = reduce(torch.mul, (factor.numbers for factor in roles.weights), one)
    c = one if readout is None else readout.factor * readout.numbers

    def laid(numbers: Tensor) -> Tensor:
        return arranged(numbers, layout, roles)[-count:]

    y = laid(found.h.numbers())[..., 0] if readout is None else _output(readout, layout, roles)[-count:]
    plain = laid(x)[..., 0]
    own = arranged(start, layout, roles)[0]
    return Factors(_shared(laid(decay)), laid(weight), laid(c), plain, y, own)


def _shared(decay: Tensor) -> Tensor:
    """One row where all steps have the same."""
    return decay[:1] if bool((decay == decay[:1]).all()) else decay


def arranged(numbers: Tensor, layout: Layout, roles: Roles) -> Tensor:
    """(t, d, n) of the selected sequence, in double precision: channels that have maps of their own, n last."""
    axis = roles.axis
    order = [layout.steps, *roles.kept, *([] if axis is None else [axis])]
    whole = numbers.expand(layout.shape) if numbers.dim() <= len(layout.shape) else numbers
    at = [slice(None) if n in order else 0 for n in range(len(layout.shape))]
    if layout.batch is not None:
        at[layout.batch] = layout.sample
    taken = whole[tuple(at)]
    left = [n for n in range(len(layout.shape)) if n in order]
    taken = taken.permute([left.index(n) for n in order])
    return wide(taken.flatten(1).unsqueeze(-1) if axis is None else taken.flatten(1, -2) if taken.dim() > 2
                else taken.unsqueeze(1))  # fmt: skip


def _output(readout: Readout, layout: Layout, roles: Roles) -> Tensor:
    """y (t, d) of the selected sequence."""
    widened = readout.y.numbers().unsqueeze(readout.axis)
    shape = tuple(1 if n == readout.axis else size for n, size in enumerate(layout.shape))
    less = Layout(shape, layout.steps, layout.batch, layout.sample)
    return arranged(widened, less, roles)[..., 0]
