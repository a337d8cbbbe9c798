"""What reads the states of a scan: y = Σ_n C h over one axis of units, or Re of it, found by trying it on values.

Letters: t step, p entry of y that is looked at, n the axis that is summed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from torch import Tensor

from inspector.engine.recurrent.traced.record.operation import given_to, results_of
from inspector.engine.scans.diagonal import NEAR
from inspector.engine.scans.values import Flow, Layout, Value, laid, wide

AFTER = 24
"""Operations after the states were made among which y is looked for."""
MOST_TRIED = 48


@dataclass(frozen=True, slots=True)
class Readout:
    """y = factor · Σ C h over `axis` of the states (their real part where y is real): C as broadcast to the states."""

    y: Value
    c: Value
    numbers: Tensor
    axis: int
    factor: float

    def output_layout(self, layout: Layout) -> Layout:
        """The axes of y."""
        shape = tuple(size for n, size in enumerate(layout.shape) if n != self.axis)
        less = [None if one is None else one - (self.axis < one) for one in (layout.steps, layout.batch)]
        return replace(layout, shape=shape, steps=less[0] or 0, batch=less[1])


@dataclass(frozen=True, slots=True)
class Reading:
    """Among what y and C are looked for."""

    outputs: Sequence[Tensor]
    given: Sequence[Tensor]


def reading_after(flow: Flow, h: Value) -> Reading:
    """What the operations after some states made and were given."""
    numbers = range(h.made + 1, min(h.made + AFTER + 1, len(flow.table.calls)))
    outputs = [one for n in numbers for one in results_of(flow.table.calls[n][3])]
    given = {id(one): one for n in numbers for one in given_to(flow.table.calls[n])}
    return Reading(outputs, list(given.values()))


def reading_behind(flow: Flow, last: int, layout: Layout) -> Reading:
    """What the operations after a loop, whose last one has this number, made and were given, the steps where the states
    have them: a loop's states may be put together and read at once."""
    numbers = range(last + 1, min(last + AFTER + 1, len(flow.table.calls)))
    outputs = [one for n in numbers for one in results_of(flow.table.calls[n][3])]
    given = {id(one): one for n in numbers for one in given_to(flow.table.calls[n])}
    return Reading(list(_by_steps(outputs, layout)), list(_by_steps(given.values(), layout)))


def _by_steps(tensors: Iterable[Tensor], layout: Layout) -> Iterator[Tensor]:
    """Tensors with an axis of as many entries as steps, each such axis where the states have theirs."""
    steps = layout.shape[layout.steps]
    for one in tensors:
        if isinstance(one, Tensor) and (one.is_floating_point() or one.is_complex()):
            at = [axis for axis, size in enumerate(one.shape) if size == steps and one.dim() > layout.steps]
            yield from (one.detach().movedim(axis, layout.steps) for axis in at)


def readout_of(flow: Flow, h: Value, layout: Layout, reading: Reading) -> Readout | None:
    """What reads some states; None where nothing that was seen does."""
    if len(layout.units) < 2:
        return None
    outputs = [*reading.outputs, *(one[..., 0] for one in reading.outputs if one.shape[-1:] == (1,))]
    for axis in reversed(layout.units):
        size = layout.shape[axis]
        if size < 2:
            continue  # nothing is summed
        shape = tuple(one for n, one in enumerate(layout.shape) if n != axis)
        ys = [one for one in outputs if tuple(one.shape) == shape][:MOST_TRIED]
        cs = list(_coefficients(reading.given, layout, axis, size))[:MOST_TRIED]
        found = _tried(flow, h, layout, axis, ys, cs)
        if found is not None:
            return found
    return None


def _coefficients(given: Sequence[Tensor], layout: Layout, axis: int, size: int) -> Iterator[tuple[Tensor, Tensor]]:
    """(tensor, its entries in the axes of the states) of what may be C."""
    for one in given:
        if not (one.is_floating_point() or one.is_complex()) or size not in one.shape:
            continue
        same = one.dim() == len(layout.shape)  # a row or a column of a matrix, for one
        squeezed = one.detach().squeeze([n for n in layout.units if same and one.shape[n] == 1])
        for shape in laid(squeezed.shape, layout.shape):
            if shape[axis] == size:
                yield one, squeezed.reshape(shape)


def _tried(
    flow: Flow, h: Value, layout: Layout, axis: int, ys: Sequence[Tensor], cs: Sequence[tuple[Tensor, Tensor]]
) -> Readout | None:
    states = _entries(h.numbers(), layout, axis)
    best: tuple[float, Readout] | None = None
    for y in ys:
        own = Readout(flow.value(y), h, y, axis, 1.0).output_layout(layout)
        wanted = own.some(y.detach())
        size = float(wanted.abs().max())
        for tensor, numbers in cs if size > 0 else ():
            made = (states * _entries(numbers, layout, axis)).sum(-1)
            made = made.real if made.is_complex() and not wanted.is_complex() else made
            for factor in (1.0, 2.0):
                error = float((factor * made - wanted).abs().max()) / size
                if error <= NEAR**2 and (best is None or error < best[0]):
                    best = error, Readout(flow.value(y), flow.value(tensor), numbers, axis, factor)
    return None if best is None else best[1]


def _entries(numbers: Tensor, layout: Layout, axis: int) -> Tensor:
    """(t, p, n) the entries of y's that are looked at, with the axis that is summed."""
    whole = numbers.expand(layout.shape).movedim(axis, -1)
    shape = tuple(size for n, size in enumerate(layout.shape) if n != axis)
    own = [None if one is None else one - (axis < one) for one in (layout.steps, layout.batch)]
    less = replace(layout, shape=shape, steps=own[0] or 0, batch=own[1])
    whole = whole.movedim(less.steps, 0)
    at: tuple[slice | Tensor, ...] = (slice(None), *less.picked)
    return wide(whole[at] if less.picked else whole[:, None])
