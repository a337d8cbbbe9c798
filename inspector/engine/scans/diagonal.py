"""Which tensors of a run are a, b and h of h_t = a_t ⊙ h_{t−1} + b_t, found by trying the equation on their values.

h is looked for among what is made after steps were first mixed, a and b among all that is there before h. A tensor of
real numbers also stands for e to it, since scans are often computed in logarithms (Heinsen 2023, arXiv 2311.06281).
Letters: t step, b sequence, k unit, p entry that is looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import torch
from torch import Tensor

from inspector.engine.scans.mixing import Stretch
from inspector.engine.scans.values import Flow, Layout, Value, by_broadcasting, rounding

NEAR = 1e-2
"""Largest error, beside the largest state, at which an equation is taken for the one that is meant. What is not met to
rounding is refused with its error: sums of e to large numbers lose digits."""
CARRIES = 1e-3
"""Share of the largest state that steps must carry over, twice at least. Counter-example: decays below it throughout
make h = b, which is no recurrence."""
TWICE = 2
"""Steps that must carry: one alone is met by some decay, or nearly, whatever b is."""
MOST_STATES, MOST_TRIED, MOST_STEPS = 256, 96, 64
"""Tensors of one stretch that are tried as states; tensors that are tried as a and b of each, nearest first; steps."""
WORSE = 8.0
"""By how much the error of a later round may be larger than that of the one before, both being rounding."""
LARGEST_LOGARITHM = 80.0
"""Of what is taken for a logarithm: e to it fits float32."""


@dataclass(frozen=True, slots=True)
class Diagonal:
    """A recurrence: the model's states h, what enters b, and the decay a, None where it is constant and was fitted."""

    h: Value
    b: Value
    a: Value | None
    layout: Layout
    error: float

    def decay(self, h: Tensor, b: Tensor) -> Tensor:
        """The decay of every step, (t or 1, b or 1, k), from rows (t, b, k) of h and b."""
        if self.a is None:
            together = h.movedim(1, 0).flatten(0, 1), b.movedim(1, 0).flatten(0, 1)
            first = torch.arange(len(together[0])) % len(h) == 0
            return fitted(together[0].roll(1, 0)[~first], (together[1] * -1 + together[0])[~first])[None, None]
        own = self.a.numbers()
        rows = self.layout.rows(own)
        strides = own.expand(self.layout.shape).stride()
        over = [n for n in (self.layout.steps, self.layout.batch) if n is not None]
        return rows[:1, :1] if all(strides[n] == 0 for n in over) else rows

    @property
    def exact(self) -> bool:
        """Whether the equation holds to rounding at the entries that were looked at."""
        return self.error <= rounding(self.h.tensor.dtype)

    @property
    def unit(self) -> bool:
        """Whether a is 1: a running sum."""
        h, b = (self.layout.some(one.numbers()) for one in (self.h, self.b))
        a = fitted(h[:-1], h[1:] - b[1:])[None] if self.a is None else self.layout.some(self.a.numbers())
        return bool((a - 1).abs().max() <= 1e-6)


def fitted(before: Tensor, carried: Tensor, axis: int = 0) -> Tensor:
    """The constant decay a that fits best, by least squares over the steps: a · before = carried.

    before (t, …), carried (…, t, …) → carried without that `axis`. 0 where the state is 0 throughout.
    """
    least = torch.finfo(torch.float64).tiny
    own: Tensor = (before.conj() * carried).sum(axis) / before.abs().square().sum(0).clamp_min(least)
    return own


def diagonals(flow: Flow, stretch: Stretch, batch: int, sample: int) -> list[Diagonal]:
    """The recurrences of a stretch, one for each state. `batch`: sequences of the batch.

    Where none holds to rounding, the nearest one, which is refused later: what is made on the way to a state meets the
    equation of its last steps, and nearly that of the first ones.
    """
    found: list[Diagonal] = []
    tried = 0
    written = [one for one in flow.given(stretch.calls) if one.made >= stretch.calls[0]]  # in place, through views
    for h in {id(one.tensor): one for one in (*flow.made_by(stretch.making), *written)}.values():
        layout = layout_of(h.tensor, stretch.steps, batch, sample)
        if layout is None or _seen(h, found):
            continue
        tried += 1
        best = best_of(h, layout, _laid(h, flow, stretch, layout)) if tried <= MOST_STATES else None
        if best is not None:
            found.append(best)
    exact = _last_rounds([one for one in found if one.exact], stretch)
    decaying = [one for one in exact if not one.unit]  # running sums among them only serve to compute another scan
    return decaying or exact or sorted(found, key=lambda one: one.error)[:1]


def _last_rounds(found: Sequence[Diagonal], stretch: Stretch) -> list[Diagonal]:
    """Of states that a scan makes in rounds from the same b, those of its last round.

    Where decays are fast, what earlier rounds made meets the equation to rounding already.
    """
    if stretch.kinds.isdisjoint({"shifted", "halved"}):
        return list(found)
    last: dict[int, Diagonal] = {}
    for one in found:
        known = last.get(id(one.b.tensor))
        least = WORSE * max(one.error if known is None else known.error, float(torch.finfo(one.h.tensor.dtype).eps))
        if known is None or (one.error <= least and one.h.made > known.h.made):
            last[id(one.b.tensor)] = one
    return [one for one in found if any(one is kept for kept in last.values())]


def layout_of(tensor: Tensor, steps: int, batch: int, sample: int) -> Layout | None:
    """How to read a tensor as states: its axis of steps (or of one more), and that of the batch.

    The first axis of each size is taken. Counter-example: as many units as steps, before the axis of steps; another
    length of the sequence shows it.
    """
    shape = tuple(tensor.shape)
    axis = next((n for n, size in enumerate(shape[:2]) if size == batch), None)
    if len(shape) < 2 or (axis is None and batch > 1):
        return None
    for length in (steps, steps + 1):
        own = next((n for n, size in enumerate(shape) if size == length and n != axis), None)
        if own is not None:
            return Layout(shape, own, axis, sample if axis is not None else 0)
    return None


def best_of(h: Value, layout: Layout, candidates: Iterable[tuple[Value, Tensor]]) -> Diagonal | None:
    """The recurrence whose states are h, with a and b among some candidates and the entries of them that are looked at;
    None where no pair comes near."""
    states = layout.some(h.tensor.detach())
    size = float(states.abs().max())
    if not 0 < size < float("inf") or bool((states[1:] == states[:-1]).all()):
        return None  # the same at every step: a parameter that was spread over them, as a learned sink of attention is
    at = torch.linspace(1, len(states) - 1, min(MOST_STEPS, len(states) - 1)).round().long()
    own = list(islice(candidates, MOST_TRIED))
    if not own:
        return None
    step = Pairs(states[at - 1], states[at], size)
    numbers = torch.stack([one[at if len(one) > 1 else at * 0].to(states.dtype) for _, one in own])
    enters = numbers.abs().flatten(1).amax(1) > 0
    values = [value for value, _ in own]
    enters &= torch.tensor([layout.by_step(value.tensor) for value in values])  # else h counts steps, as exponents do
    found = [Diagonal(h, values[b], values[a], layout, error) for a, b, error in _varying(step, numbers, enters)]
    if not any(one.exact for one in found):  # what a tensor holds is better than what is fitted
        found += [Diagonal(h, values[b], None, layout, error) for b, error in _constant(step, numbers, enters)]
    return min(found, key=lambda one: one.error, default=None)


@dataclass(frozen=True, slots=True)
class Pairs:
    """States before and after some steps, (t, p) each, and the largest of all."""

    before: Tensor
    after: Tensor
    size: float


def _varying(step: Pairs, numbers: Tensor, enters: Tensor) -> Iterator[tuple[int, int, float]]:
    """(number of a, number of b, error) of the candidates (n, t, p) that meet the equation; (n,) True in `enters` of
    those that may be b."""
    for a, decay in enumerate(numbers):
        carried = decay * step.before
        if int((carried.abs().flatten(1).amax(1) >= CARRIES * step.size).sum()) < TWICE:
            continue
        errors = ((step.after - carried) - numbers).abs().flatten(1).amax(1).nan_to_num(nan=torch.inf) / step.size
        errors = errors.masked_fill(~enters, torch.inf)
        b = int(errors.argmin())
        if float(errors[b]) <= NEAR and a != b:
            yield a, b, float(errors[b])


def _constant(step: Pairs, numbers: Tensor, enters: Tensor) -> Iterator[tuple[int, float]]:
    """(number of b, error) where a constant decay meets the equation, whether or not a tensor holds it."""
    decay = fitted(step.before, step.after - numbers, 1)
    carried = decay[:, None] * step.before
    errors = (step.after - carried - numbers).abs().flatten(1).amax(1).nan_to_num(nan=torch.inf) / step.size
    twice = (step.before.abs() >= CARRIES * step.size).sum(0) >= TWICE
    enough = (carried * twice).abs().flatten(1).amax(1) >= CARRIES * step.size
    enough &= enters
    b = int(errors.masked_fill(~enough, torch.inf).argmin())
    if bool(enough[b]) and float(errors[b]) <= NEAR**2:
        yield b, float(errors[b])


def _laid(h: Value, flow: Flow, stretch: Stretch, layout: Layout) -> Iterator[tuple[Value, Tensor]]:
    """What may be a or b of h, with the entries that are looked at.

    What the mixing operations were given is tried too: a step inside a transform of torch.func leaves no trace of what
    h was made of (`associative_scan`).
    """
    known = {id(one.tensor): one for one in (*flow.before(h), *flow.given(stretch.calls))}
    for one in known.values():
        if one.made >= h.made:
            continue
        yield from laid_into(one, h, layout)


def laid_into(one: Value, h: Value, layout: Layout) -> Iterator[tuple[Value, Tensor]]:
    """A tensor, and e to it, with the entries that are looked at, where it can be broadcast to the states."""
    if not by_broadcasting(one.tensor.shape, layout.shape) or one.tensor is h.tensor:
        return
    if one.tensor.is_complex() and not h.tensor.is_complex():
        return
    plain = layout.some(one.tensor.detach())
    yield one, plain
    if not one.tensor.is_complex() and float(plain.max()) < LARGEST_LOGARITHM:
        yield Value(one.tensor, one.made, True), plain.exp()


def _seen(h: Value, found: Sequence[Diagonal]) -> bool:
    """Whether a tensor is another view of states that were found."""
    mine = h.tensor.untyped_storage().data_ptr()
    return any(one.h.tensor.untyped_storage().data_ptr() == mine for one in found)
