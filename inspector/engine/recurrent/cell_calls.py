"""Chains of calls of a cell in a user's own loop over a sequence: which belong together, and the recurrence that they
form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from inspector.engine.cells.base import Cell
from inspector.engine.cells.check import Check
from inspector.engine.cells.gate_products import resolution
from inspector.engine.cells.rounding import ROUNDINGS
from inspector.engine.recurrent.fused.calls import connected_parts
from inspector.engine.recurrent.verification import against_bound, allowed_error, distance, judge, largest
from inspector.engine.trace.run_gradients import Weights
from inspector.engine.trace.trace import Recurrence
from inspector.engine.trace.upstream import Upstream

CHUNK = 512
"""Steps whose gradients are separated at once."""


def rows_of(value: Tensor) -> Tensor:
    """(b, n), also of an unbatched (n,)."""
    return value if value.dim() == 2 else value[None]


@dataclass(slots=True)
class CellCallChain:
    """A chain of calls of a cell: inputs, the state before the first step, the state after each, of the columns that
    are recorded.

    Attributes:
        cut: the columns of the user's batch that are recorded; base: the sample of the batch that the first of them is.
        live: the cell's parameters as the model has them.
        column: among those, the one that is shown.
        alive: (b,) sequences that have continued from step to step so far; counts: (b,) their steps.
        newest: what the cell returned last, with versions (−1 where torch counts none), and a copy of it.
        linked: True while every state given had the values of the one returned before.
        cuts: step → for each part whether its gradient flows on to the step before (it was not detached in between).
        without: (step, part) of returned states that need no gradient.
        followed: an input, or the state before the first step, needs a gradient; upstream: what they are made of.
        asked: outputs whose gradient was requested, with their versions.
    """

    place: str
    module: nn.Module
    cell: Cell
    live: Weights
    weights: list[tuple[Tensor, int]]
    first: tuple[Tensor, ...]
    cut: slice
    column: int
    base: int
    alive: Tensor
    counts: Tensor
    newest: list[tuple[Tensor, int]] = field(default_factory=list)
    copied: tuple[Tensor, ...] = ()
    linked: bool = True
    cuts: dict[int, list[bool]] = field(default_factory=dict)
    without: list[tuple[int, int]] = field(default_factory=list)
    x: list[Tensor] = field(default_factory=list)
    states: list[tuple[Tensor, ...]] = field(default_factory=list)
    asked: list[tuple[Tensor, int]] = field(default_factory=list)
    gradients: dict[tuple[int, int], Tensor] = field(default_factory=dict)
    followed: bool = False
    upstream: Upstream = field(default_factory=Upstream)
    sent: int = 0
    sent_at: float = 0.0

    @property
    def parts(self) -> tuple[str, ...]:
        """Names of the parts of the state, in the order in which the cell takes and returns them."""
        return tuple(self.cell.parts)

    @property
    def count(self) -> int:
        """Steps of the sequence that is shown."""
        return int(self.counts[self.cut][self.column])

    def same(self, given: tuple[Tensor, ...]) -> bool:
        """True when the state given is the very one returned last, unchanged."""
        return len(given) == len(self.newest) and all(
            now is out and version >= 0 and now._version == version
            for now, (out, version) in zip(given, self.newest, strict=True)
        )

    def following(self, given: tuple[Tensor, ...]) -> Tensor | None:
        """(b,) sequences whose state is the one returned last; None when none of them is."""
        if self.same(given):
            return self.alive
        if len(given) != len(self.copied):
            return None
        pairs = [(rows_of(now), then) for now, then in zip(given, self.copied, strict=True)]
        if any(now.shape != then.shape for now, then in pairs):
            return None
        rows = self.alive.clone()
        for now, then in pairs:
            rows &= (now.detach() == then).all(-1).to(rows.device)
        return rows if bool(rows.any()) else None

    def link(self, given: tuple[Tensor, ...], rows: Tensor) -> None:
        """Note how the next step continues from the last one. Call before `step`."""
        if self.same(given) and all(part.requires_grad for part in given):
            return
        self.linked = self.linked and bool(rows.all())
        joined = connected_parts(self.parts, given, self.newest)
        self.cuts[len(self.states)] = [name in joined for name in self.parts]

    def step(self, x: Tensor, made: tuple[Tensor, ...], rows: Tensor) -> None:
        """Store one step, of the sequences in `rows`; all of it is copied, since user code may overwrite it."""
        self.alive = rows
        self.counts = self.counts + rows
        self.followed |= x.requires_grad
        self.upstream.add([x])
        self.x.append(rows_of(x).detach()[self.cut].clone())
        self.copied = tuple(rows_of(part).detach().clone() for part in made)
        self.states.append(tuple(part[self.cut] for part in self.copied))
        self.newest = [(part, -1 if part.is_inference() else part._version) for part in made]

    def receiver(self, step: int, number: int) -> Callable[[Tensor | None], None]:
        """A function that stores the gradient of one part of the state after a step."""

        def take(gradient: Tensor | None) -> None:
            if gradient is not None:
                self.gradients[step, number] = rows_of(gradient).detach()[self.cut]

        return take

    def overwritten(self) -> bool:
        """True when the cell's weights were written to after the first step."""
        return any(weight._version != version for weight, version in self.weights)

    def gradients_lost(self) -> bool:
        """True when a returned state was changed in place: its gradient is then that of the changed values."""
        return any(tensor._version != version for tensor, version in self.asked)


def recurrence_of(chain: CellCallChain, lengths: Tensor) -> Recurrence:
    """The chain as a Recurrence. `lengths` of the batch count where it has as many sequences and steps."""
    dtype = chain.first[0].dtype
    counts = chain.counts[chain.cut]
    steps = int(counts.max())
    fed, cell = chain.cell.feeds_parts(), chain.cell.in_main_memory()  # kernels differ between devices
    device = chain.first[0].device
    x = torch.stack(chain.x[:steps]).to("cpu", cell.dtype)
    states = torch.stack([torch.cat(state, -1) for state in (chain.first, *chain.states[:steps])]).to("cpu", cell.dtype)
    whole = chain.counts.numel() == lengths.numel() and int(lengths.max()) == steps
    real = torch.minimum(counts, lengths[chain.cut]) if whole else counts
    check = _check(cell, x, states, counts, resolution(dtype, device))
    found = Recurrence(
        chain.place, type(chain.module).__name__, cell, x, states, real.clone(), check=check, base=chain.base,
        weights=chain.live, followed_input=chain.followed, upstream=chain.upstream.found(),
    )  # fmt: skip
    found.cuts = {
        step: _joined(cell, kept) for step, kept in chain.cuts.items() if step < steps and not all(kept)
    }  # fmt: skip
    if chain.gradients and not chain.gradients_lost() and fed is not None:
        found.delta = _delta(chain, found, fed=fed)
        if chain.linked:
            found.arriving = _arriving(found)
        for step, number in chain.without:  # what reads them beside the next step is not known
            if step < steps:
                found.leave_out(step, cell.parts[chain.parts[number]])
    return found


def _joined(cell: Cell, kept: list[bool]) -> Tensor:
    """(s,) 1 for the entries of the parts that are joined to the step before, 0 for the others."""
    joined = torch.zeros(cell.state_size)
    for entries, one in zip(cell.parts.values(), kept, strict=True):
        joined[entries] = float(one)
    return joined


def _check(cell: Cell, x: Tensor, states: Tensor, counts: Tensor, unit: float) -> Check:
    """Every step against the same step recomputed, from the state before it."""
    t, b, s = states[1:].shape
    made = cell.step(x.flatten(0, 1), states[:-1].flatten(0, 1)).view(t, b, s)
    real = torch.arange(t)[:, None] < counts.cpu()
    pair = distance(made[real], states[1:][real]), allowed_error(unit, largest(states))
    if judge([pair]).passed:
        return judge([pair])
    bounds = cell.rounding_bound(x, states, (), ROUNDINGS * unit)
    if bounds is None:
        return judge([pair])
    limit = torch.cat([bounds[name] for name in cell.parts], -1)
    return judge([against_bound(made, states[1:], limit, real)])


def _delta(chain: CellCallChain, recurrence: Recurrence, *, fed: bool) -> Tensor:
    """(t, b, s) total gradients from autograd.

    On the unrolled graph ∂L/∂c_t may include the path through h_t (it does where h is computed from the returned c):
    the cell subtracts it, so that c_t's gradient is at fixed h_t, as everywhere else.
    """
    delta = torch.zeros_like(recurrence.states[1:])
    for (step, number), gradient in chain.gradients.items():
        if step < len(delta):
            delta[step, :, recurrence.cell.parts[chain.parts[number]]] = gradient.to(delta.dtype)
    if fed:
        for start in range(0, len(delta), CHUNK):
            stop = min(start + CHUNK, len(delta))
            recurrence.block(start, stop).hold_fixed_(delta[start:stop])
    return delta


def _arriving(recurrence: Recurrence) -> Tensor:
    """(t, b, s): the gradient that reaches each state from outside, δ_t − J_{t+1}ᵀ δ_{t+1};
    0 where that is only rounding."""
    delta = recurrence.delta
    assert delta is not None
    arriving = delta.clone()
    size = delta.abs().amax(-1)
    for start in range(1, len(delta), CHUNK):
        stop = min(start + CHUNK, len(delta))
        back = recurrence.block(start, stop).vjp(delta[start:stop, ..., None])[..., 0]
        for step in recurrence.cuts.keys() & set(range(start, stop)):
            back[step - start] *= recurrence.cuts[step].to(back)
        arriving[start - 1 : stop - 1] -= back
        size[start - 1 : stop - 1] = torch.maximum(size[start - 1 : stop - 1], back.abs().amax(-1))
    noise = arriving.abs().amax(-1) <= 64 * torch.finfo(arriving.dtype).eps * size
    return arriving.masked_fill_(noise[..., None], 0)
