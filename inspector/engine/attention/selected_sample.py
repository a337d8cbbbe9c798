"""Which part of a call's tensors belongs to the one selected sample.

The batch is often merged with something else before attention is called: with heads, with the windows of local
attention, with variates. Which entries of such an axis are the sample's depends on the order in which axes were merged;
the reshapes of the run show it, see `SelectedSample.reshaped`.

Letters: b batch, n windows (entries of one sample on the batch axis), a heads, q query, k key.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor

from inspector.engine.errors import Unsupported
from inspector.records import counted


@dataclass(slots=True)
class SelectedSample:
    """What the calls of one run have in common: batch size, selected sample, its real and its padded length."""

    batch: int
    sample: int
    length: int
    padded: int
    over_answer: Callable[[str], bool] = lambda _place: False
    """Whether the module at a place runs over an output with a step axis of its own: its rows are not the input's."""
    masks: dict[int, tuple[Tensor, tuple[object, ...], object]] = field(default_factory=dict)
    """Masks already analysed, by id: a model passes the same mask to every layer."""
    merged: dict[int, int] = field(default_factory=dict)
    """{size of an axis: entries after the batch in it}, of the last reshape that made an axis of this size."""
    choices: dict[str, int] = field(default_factory=dict)
    """{place: which of several axes that may be the batch it is}, as a call with one sequence has shown."""
    passing_on: bool = False
    """Whether each attention keeps what its heads pass on (trace/heads.py)."""
    lineages: bool = False
    """Whether each attention notes of which earlier ones it was computed (attention/ancestry.py)."""
    products: bool = False
    """Whether attention that a model computes itself keeps what its scores are made of (trace/products.py)."""

    def reshaped(self, before: tuple[int, ...], after: tuple[int, ...]) -> None:
        """A reshape from `before` to `after`: remember how the batch lies in the axes that it makes.

        Heads are often merged in front of the batch (h·b), as are windows where time comes first.
        Counter-example: a model that makes an axis of this size of something else afterwards. Where several axes have
        the size of the batch and lie differently, nothing is remembered.
        """
        inner = {stride for size, stride in _strides(before) if size == self.batch}
        for size, stride in _strides(after):
            if size > self.batch > 1 and size % self.batch == 0:
                counts = {
                    at // stride for at in inner if at % stride == 0 and size % (self.batch * (at // stride)) == 0
                }
                if len(inner) == len(counts) == 1:
                    self.merged[size] = counts.pop()

    def joined(self, parts: tuple[tuple[int, ...], ...], size: int) -> None:
        """A concatenation along the first axis of parts of one batch each: the same as a merge of (parts, batch)."""
        if self.batch > 1 and len(parts) > 1 and all(part[:1] == (self.batch,) for part in parts):
            self.merged[size] = 1

    def heads_first(self, place: str, query: Tensor) -> tuple[bool, bool]:
        """Of queries (b·n, a, …, q, d): whether they are (a, b, q, d) in truth; whether sizes do not say which."""
        if self.batch == 1 or query.is_nested or query.dim() < 3:
            return False, False
        size, choice = query.shape[0], self.choices.get(place, 0)
        second = query.dim() > 3 and query.shape[1] == self.batch
        if second and size > 1 and size % self.batch:
            return True, False
        merged = size not in (1, self.batch) and size not in self.merged
        if choice and (not second or choice > 1) and size % self.batch == 0:
            self.merged[size] = 1
        return second and choice == 1, second or merged

    def windows(self, size: int) -> int:
        """How many entries of a batch axis of this size are the sample's. Raises Unsupported where that is unclear."""
        if size == 1:
            return 1
        if size % self.batch:
            raise Unsupported(f"its batch axis has {size} entries, not a multiple of the batch of {self.batch}")
        return size // self.batch

    def window_note(self, size: int, heads: int) -> str:
        """The note of an attention whose batch axis of this size holds windows of so many heads each, or ""."""
        windows = self.windows(size)
        if windows == 1:
            return ""
        order = "" if self.batch == 1 or size in self.merged else ", taken to lie next to each other"
        each = f"{counted(heads, 'head')}" if heads > 1 else "one head"
        return f"{windows} windows of this sample on the batch axis{order}, shown one after the other with {each} each"

    def part(self, tensor: Tensor, axis: int = 0) -> Tensor:
        """(…, n, …) the sample's entries along a batch axis; an axis of one entry belongs to every sample."""
        size = tensor.shape[axis]
        if size == self.windows(size):
            return tensor
        inner = self._inner(size)
        split = tensor.reshape(*tensor.shape[:axis], -1, self.batch, inner, *tensor.shape[axis + 1 :])
        return split.select(axis + 1, self.sample).flatten(axis, axis + 1)

    def members(self, size: int) -> Tensor:
        """(n,) which entries of a batch axis are the sample's: `part`, found by another method, for the check."""
        if size == self.windows(size):
            return torch.arange(size)
        entries = torch.arange(size)
        return entries[entries // self._inner(size) % self.batch == self.sample]

    def returned(self, tensor: Tensor, axis: int = 0) -> Tensor:
        """(…, n, …) what a call returned for the sample, picked by `members`."""
        size = tensor.shape[axis]
        if size == 1:
            return tensor
        return tensor.index_select(axis, self.members(size).to(tensor.device))

    def fold(self, tensor: Tensor) -> Tensor:
        """(1, n·a, x, y) the sample's part of (b·n, a, x, y) or (b·n, x, y)."""
        if tensor.is_nested:
            return self._nested(tensor)
        part = self.part(tensor if tensor.dim() > 2 else tensor[None])
        return part.reshape(1, -1, *part.shape[-2:])

    def fold_returned(self, tensor: Tensor) -> Tensor:
        """(n·a, x, y) what a call returned for the sample, from (b·n, a, x, y) or (b·n, x, y)."""
        if tensor.is_nested:
            return self._nested(tensor)[0]
        part = self.returned(tensor if tensor.dim() > 2 else tensor[None])
        return part.reshape(-1, *part.shape[-2:])

    def fold_mask(self, mask: Tensor, shape: tuple[int, ...]) -> Tensor:
        """(1, n·a or 1, q or 1, k) the sample's part of a mask that broadcasts to `shape` (b·n, …, q, k)."""
        mask = mask[(None,) * (len(shape) - mask.dim())]
        leading = mask.shape[:-2]
        if all(n == 1 for n in leading):
            return mask.reshape(1, 1, *mask.shape[-2:])
        return self.fold(mask.expand(*shape[:-2], *mask.shape[-2:]))

    def _nested(self, tensor: Tensor) -> Tensor:
        part = tensor.unbind()[self.sample]
        return part[(None,) * (4 - part.dim())]

    def _inner(self, size: int) -> int:
        """Entries after the batch in an axis; where nothing is known, samples lie one after the other."""
        return self.merged.get(size, size // self.batch)


def _strides(shape: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    """(size, numbers after one entry) of each axis of a tensor in memory order."""
    for axis, size in enumerate(shape):
        yield size, math.prod(shape[axis + 1 :])
