"""The steps of an input that the entries of a tensor come from, and how one operation passes them on.

An operation that only rearranges entries is run again on the numbers of the steps. Any other is taken to leave every
step in its place where the result has an axis of as many positions (a linear layer, an embedding, a convolution with
padding, attention). Counter-example: a function that permutes steps without being in `SHUFFLING` or `MOVING` is taken
to leave them in their order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only

from inspector.engine.recurrent.traced.record.operator_traits import Kind, Operator

MOVING = frozenset((
    "gather", "take_along_dim", "index_select", "expand", "expand_as", "broadcast_to", "repeat", "repeat_interleave",
    "tile", "pad", "unfold", "masked_select", "diagonal", "unsqueeze", "squeeze", "T", "mT",
))  # fmt: skip
"""Further functions that only rearrange the entries of their first argument (F.pad puts new ones beside them)."""
SHUFFLING = frozenset((
    "sort", "msort", "argsort", "topk", "scatter", "scatter_add", "index_add", "index_put", "fft", "rfft", "stft",
    "bincount", "unique",
))  # fmt: skip
"""Functions after which the position along an axis says nothing of the step."""
SAME = (Kind.CAST, Kind.DETACH, Kind.DROPOUT)
ELEMENTWISE = (Kind.SUM, Kind.PRODUCT, Kind.QUOTIENT, Kind.BLEND)
MOST = 1 << 24
"""Numbers that are compared for one tensor. Counter-example: a larger tensor whose steps were folded into another axis
is not followed, so its recurrence gets an axis of its own."""


@dataclass(frozen=True, slots=True, eq=False)
class Span:
    """For every entry of a tensor the first and the last step of an input that it comes from.

    Attributes:
        low, high: int32 with as many axes as the tensor, of size 1 along those on which nothing depends: the number of
            the step plus 1, or 0 for none.
    """

    low: Tensor
    high: Tensor

    @property
    def one(self) -> bool:
        """True where all entries come from the same steps."""
        return self.high.numel() == 1

    def bounds(self) -> tuple[int, int]:
        """(first, last) step that any entry comes from; (-1, -1) for none."""
        if self.one:
            return int(self.low) - 1, int(self.high) - 1
        some = self.low[self.low > 0]
        return (int(some.min()) - 1, int(self.high.max()) - 1) if len(some) else (-1, -1)

    def axis(self) -> int | None:
        """The one axis along which the steps differ; None where there is none, or several."""
        long = [n for n, size in enumerate(self.high.shape) if size > 1]
        return long[0] if len(long) == 1 else None

    def along(self) -> Tensor:
        """(n, 2): first and last step of each position of the one axis; -1 for none."""
        return torch.stack([self.low.flatten(), self.high.flatten()], 1).long() - 1


Origins = Mapping[str, Span]
"""Name of an input → where a tensor's entries come from in it."""


def steps_along(shape: Sequence[int], axis: int) -> Span:
    """The steps of an input itself, whose steps lie along an axis."""
    numbers = torch.arange(1, shape[axis] + 1, dtype=torch.int32)
    span = numbers.view([-1 if n == axis else 1 for n in range(len(shape))])
    return Span(span, span)


def at_step(low: int, high: int, dims: int) -> Span:
    """A tensor all of whose entries come from the same steps."""
    first, last = (torch.full((1,) * dims, one + 1, dtype=torch.int32) for one in (low, high))
    return Span(first, last)


def moves(name: str, operator: Operator) -> bool:
    """Whether a function returns entries of its input, unchanged, in some order."""
    return operator.traits.rearranges or operator.traits.kind is Kind.JOIN or name in MOVING


def moved(
    call: Callable[..., Any], args: Any, kwargs: dict[str, Any], origins: Mapping[int, Span], first: Tensor | None
) -> list[Span]:
    """What a function that rearranges does to the steps: one span for each tensor that it returns.

    `origins`: id of a tensor → its span; `first`: the only tensor that is rearranged, or None where all are (a join).
    """

    def numbers(which: int) -> list[Tensor]:
        def of(tensor: Tensor) -> Tensor:
            span = origins.get(id(tensor))
            if span is None:
                zero = torch.zeros((), dtype=torch.int32).expand(tensor.shape)
                return zero if first is None or tensor is first else tensor
            return (span.low, span.high)[which].expand(tensor.shape)

        if first is not None and args and args[0] is first:  # the common case: `x[:, t]`
            given, named = (of(first), *args[1:]), kwargs
        else:
            given, named = tree_map_only(Tensor, of, (args, kwargs))
        out = call(*given, **named)
        return [out] if isinstance(out, Tensor) else [one for one in out if isinstance(one, Tensor)]

    low = numbers(0)
    same = all(span.low is span.high for span in origins.values())
    high = low if same else numbers(1)
    return [_short(a, b) for a, b in zip(low, high, strict=True)]


def _short(low: Tensor, high: Tensor) -> Span:
    """The same without the axes on which nothing depends."""
    same = low is high
    for axis in range(high.dim()):
        if high.shape[axis] > 1 and (_even(low, axis) and (same or _even(high, axis))):
            low, high = low.narrow(axis, 0, 1), high.narrow(axis, 0, 1)
    low = low.contiguous()
    high = low if same else high.contiguous()
    if high.numel() > 1:
        return _one_step(low, high)
    return Span(low, high)


def _one_step(low: Tensor, high: Tensor) -> Span:
    """One step where only one occurs (beside entries from elsewhere, as in `cat([x_t, h])`)."""
    some = low[low > 0]
    if len(some) and int(some.min()) == int(high.max()):
        return at_step(int(some[0]) - 1, int(some[0]) - 1, high.dim())
    return Span(low, high)


def _even(values: Tensor, axis: int) -> bool:
    if values.stride(axis) == 0:
        return True
    return values.numel() <= MOST and bool((values == values.narrow(axis, 0, 1)).all())


def passed_on(span: Span, given: Tensor, out: Tensor, operator: Operator) -> Span | None:
    """What any other function does to the steps; None where that is not known."""
    if span.one:
        shape = (1,) * out.dim()
        return Span(span.low.reshape(shape), span.high.reshape(shape))
    if out.shape == given.shape:
        return span
    kind = operator.traits.kind
    if kind in ELEMENTWISE and out.dim() >= given.dim():
        wide = (1,) * (out.dim() - given.dim()) + tuple(span.high.shape)
        fits = all(size in (1, whole) for size, whole in zip(wide, out.shape, strict=True))
        return Span(span.low.reshape(wide), span.high.reshape(wide)) if fits else None
    axis = span.axis()
    if axis is None:
        return None
    steps = span.high.shape[axis]
    fitting = [n for n, size in enumerate(out.shape) if size == steps]
    place = axis if axis in fitting else fitting[0] if len(fitting) == 1 else None
    if place is None:
        return None
    shape = tuple(steps if n == place else 1 for n in range(out.dim()))
    return Span(span.low.reshape(shape), span.high.reshape(shape))


def together(one: Span | None, other: Span | None) -> Span | None:
    """Entries that come from both: from the first step of either to the last."""
    if one is None or other is None:
        return one if other is None else other
    if one is other:
        return one
    try:
        a, b = torch.broadcast_tensors(one.low, other.low)
        c, d = torch.broadcast_tensors(one.high, other.high)
    except RuntimeError:
        return None
    low = torch.where(a == 0, b, torch.where(b == 0, a, torch.minimum(a, b)))
    return Span(low, torch.maximum(c, d))
