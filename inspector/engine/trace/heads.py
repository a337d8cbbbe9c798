"""What the heads of one attention pass on: the sums of values z = A V, and where their gradient is in autograd's graph.

Kept only where a quantity calls the model again for it (`Trace.passing_on`). Since z = A V, the gradient at the weights
is ∂L/∂A = ∂L/∂z Vᵀ in whatever way the model computes its attention, fused kernels included, and no map is held for it.

Index letters: a head, q query, k key, d head width, e width of the residual stream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.autograd.graph import GradientEdge, get_gradient_edge

NewValue = Callable[[Tensor], Tensor]
"""From all rows (…, q, d) of a head to what is put in the place of some or all; it broadcasts."""
Put = Callable[[Tensor, int, slice, NewValue], Tensor]


@dataclass(frozen=True, slots=True)
class Replaced:
    """Rows of queries of a head in whose place the model goes on with a number, or with the mean over all rows."""

    head: int
    rows: slice
    mean: bool = False


_REPLACED: ContextVar[tuple[Replaced, ...]] = ContextVar("replaced heads", default=())


@contextmanager
def replacing(parts: Sequence[Replaced]) -> Iterator[None]:
    """Inside, calls of attention are recorded whose results are changed afterwards, out of sight of autograd's graph at
    those results: of y = z W_O the graph does not tell which head it is."""
    token = _REPLACED.set(tuple(parts))
    try:
        yield
    finally:
        _REPLACED.reset(token)


def behind_changes(take: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """`take` (… → (n, a, q, d) at the heads) of a call that is recorded now: nothing goes on from replaced rows, and in
    place of a mean an equal part of it to every row."""
    parts = _REPLACED.get()

    def changed(gradient: Tensor) -> Tensor:
        found = take(gradient).clone()
        for one in parts:
            own = found[:, one.head]
            arrived = own[:, one.rows].sum(1, keepdim=True) / own.shape[1]
            own[:, one.rows] = 0.0
            if one.mean:
                own += arrived
        return found

    return changed if parts else take


@dataclass(slots=True)
class PassedOn:
    """One call.

    Attributes:
        value: (a, k, d) the values, repeated for heads that share them.
        queries: of the call, padding included.
        edge: where the gradient of `result` is; None where the result needs no gradient.
        take: the gradient of what the call returned → (a, q, d) at the heads; it is linear. None once it was taken.
        put: (what the call returned, head, rows of queries, new value) → the same with those rows of the head changed,
            where a model computes its attention itself.
    """

    value: Tensor
    queries: int
    edge: GradientEdge | None = None
    take: Callable[[Tensor], Tensor] | None = None
    put: Put | None = None


@dataclass(slots=True)
class Heads:
    """The calls whose rows are one map, in order.

    Attributes:
        weight: (a, d, e) the projection W_O behind the heads, by head; None where none was found.
        incomplete: why the gradient at the weights is not known; "" where it is.
        delta: (a, q, d) the gradient at the heads, once it was taken.
    """

    calls: list[PassedOn]
    weight: Tensor | None = None
    incomplete: str = ""
    delta: Tensor | None = field(default=None)

    def spans(self, first: int, last: int) -> list[tuple[PassedOn, int, int]]:
        """The calls of rows first … last-1, each with the first and the last row of it."""
        found, start = [], 0
        for call in self.calls:
            stop = start + call.queries
            if start < last and first < stop:
                found.append((call, max(first, start), min(last, stop)))
            start = stop
        return found

    def sums(self, weights: Tensor, first: int, heads: slice = slice(None)) -> Tensor:
        """(a, q, d) z of rows of weights (a, q, k') of which the first is row `first`."""
        parts = []
        for call, q0, q1 in self.spans(first, first + weights.shape[1]):
            rows, value = weights[:, q0 - first : q1 - first], call.value[heads]
            keys = min(rows.shape[2], value.shape[1])
            parts.append(torch.bmm(rows[..., :keys], value[:, :keys].to(rows.dtype)))
        return torch.cat(parts, dim=1)

    def gradient(self, first: int, last: int, keys: int, heads: slice = slice(None)) -> Tensor:
        """(a, q, k) ∂L/∂A of rows first … last-1 and the first `keys` keys, also where these are masked."""
        assert self.delta is not None
        parts = []
        for call, q0, q1 in self.spans(first, last):
            value = call.value[heads, :keys].to(self.delta.dtype)
            part = torch.bmm(self.delta[heads, q0:q1], value.mT)
            parts.append(torch.nn.functional.pad(part, (0, keys - part.shape[-1])))
        return torch.cat(parts, dim=1)


def edge_of(result: Tensor) -> GradientEdge | None:
    """Where the gradient of a result is, as it is now: it may be overwritten later."""
    return get_gradient_edge(result) if result.requires_grad else None


def joined_heads(parts: Sequence[Heads | None]) -> Heads | None:
    """The heads of calls whose rows are one map; None where one of them is not known."""
    known = [part for part in parts if part is not None]
    if len(known) < len(parts) or not known:
        return None
    weight = next((part.weight for part in known if part.weight is not None), None)
    incomplete = next((part.incomplete for part in known if part.incomplete), "")
    return Heads([call for part in known for call in part.calls], weight, incomplete)


def take_all(heads: Sequence[Heads], total: Tensor) -> None:
    """One backward pass: the gradient of `total` at the heads of every attention, 0 where none arrives.

    The graph is released, and with it what is needed to take another one.
    """
    calls = [call for one in heads for call in one.calls]
    edges = [call.edge for call in calls if call.edge is not None]
    found = iter(torch.autograd.grad(total, edges, allow_unused=True) if edges else ())
    for one in heads:
        parts = []
        for call in one.calls:
            arrived = next(found) if call.edge is not None else None
            a, _, d = call.value.shape
            nothing = call.value.new_zeros(a, call.queries, d)
            parts.append(nothing if arrived is None or call.take is None else call.take(arrived).detach())
            call.edge = call.take = call.put = None
        one.delta = torch.cat([_wide(part) for part in parts], dim=1) if parts else None


def _wide(tensor: Tensor) -> Tensor:
    return tensor if tensor.dtype == torch.float64 else tensor.float()
