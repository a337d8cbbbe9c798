"""Weights, values and result of a contraction, brought to (heads, queries, keys) for the one selected sample."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from inspector.engine.attention.calls import picked_rows
from inspector.engine.attention.selected_sample import SelectedSample
from inspector.engine.attention.written.contraction import Contraction, Operand, Roles
from inspector.engine.cells.check import Check
from inspector.engine.errors import Unsupported
from inspector.engine.trace.heads import Heads, NewValue, PassedOn, edge_of

COMMON = "its values are the same for all sequences of the batch, or the sequences have no axis"
NO_BATCH = "its common axes of {} entries are no batch of {} sequences"
NOT_FOLLOWED = "the sum of its values is put together from several operations, whose gradient is not followed"
WINDOWS = "heads of several windows on the batch axis are not changed one by one"
QUERIES = "its queries have several axes"
ONE_AXIS = "{} maps of this sample on the batch axis, shown as heads: windows of {} steps each, or heads"
ROUNDING = 32.0
"""Allowed error of a sum of products, in rounding errors of the largest product: sums run in another order here."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Which axes of a contraction are the batch, heads, queries and keys. `heads` in `repeated` are not axes of the
    values: several heads share them."""

    selected: SelectedSample
    contraction: Contraction
    roles: Roles
    batch: str
    heads: str
    repeated: str
    queries: str
    open: bool = False
    """Sizes alone do not say which axis is the batch, or in which order it was merged with another."""

    def of_weights(self, tensor: Tensor) -> Tensor:
        """(1, a, q, k) the sample's part of the weights, or of a companion of as many entries."""
        given = Operand(tensor.reshape(self.contraction.left.tensor.shape), self.contraction.left.axes)
        part = self._part(given.ordered(self.batch + self.heads + self.queries + self.roles.keys))
        return part.reshape(1, -1, self.count(self.queries), self.count(self.roles.keys))

    def values(self) -> Tensor:
        """(a, k, d) the sample's values, repeated for heads that share them."""
        own = "".join(axis for axis in self.heads if axis not in self.repeated)
        right = self.contraction.right
        batch = self.batch if self.batch in right.axes else ""
        given = right.ordered(batch + own + self.roles.keys + self.roles.features)
        part = self.selected.part(given) if batch else given
        shape = [self.contraction.left.size(axis) if axis in own else 1 for axis in self.heads]
        wide = [self.contraction.left.size(axis) for axis in self.heads]
        keys, features = self.count(self.roles.keys), math.prod(map(right.size, self.roles.features))
        part = part.reshape(-1, *shape, keys, features)  # (n, heads, k, d), n windows
        return part.expand(len(part), *wide, keys, features).reshape(-1, keys, features)

    def value_sums(self) -> Tensor:
        """(k,) the sum of the numbers of each of the sample's values."""
        return self.values().detach().double().sum((0, 2))

    def returned(self) -> Tensor:
        """(a, q, d) what the contraction returned for the sample."""
        out = self.contraction.out.ordered(self.batch + self.heads + self.queries + self.roles.features)
        if self.batch:
            out = self.selected.returned(out)
        features = math.prod(map(self.contraction.right.size, self.roles.features))
        return out.reshape(-1, self.count(self.queries), features)

    def passed_on(self, result: object) -> Heads:
        """What the heads pass on to the tensor with which the model goes on: `result`, or a view of it without axes
        of one entry. Its gradient is known only where it is that."""
        out, value = self.contraction.out.tensor, self.values().detach()
        queries = self.count(self.queries)
        same = isinstance(result, Tensor) and result.data_ptr() == out.data_ptr() and not value.is_complex()
        if not isinstance(result, Tensor) or not same or [n for n in result.shape if n > 1] != [
            n for n in out.shape if n > 1
        ]:  # fmt: skip
            return Heads([PassedOn(value, queries)], incomplete=NOT_FOLLOWED)
        shape, axes = out.shape, self.contraction.out.axes

        def take(gradient: Tensor) -> Tensor:
            found = replace(self.contraction, out=Operand(gradient.reshape(shape), axes))
            return replace(self, contraction=found).returned()

        return Heads([PassedOn(value, queries, edge_of(result), take, self._put)])

    def _put(self, result: Tensor, head: int, rows: slice, new: NewValue) -> Tensor:
        """`result` with rows of queries of one head, in every sequence, replaced. Raises Unsupported."""
        if self.batch and self.selected.windows(self.contraction.left.size(self.batch)) > 1:
            raise Unsupported(WINDOWS)
        if not len(range(*rows.indices(self.count(self.queries)))):
            return result
        sizes = [self.contraction.left.size(axis) for axis in self.heads]
        at = [int(n) for n in torch.unravel_index(torch.tensor(head), sizes)] if sizes else []
        changed = result.clone(memory_format=torch.contiguous_format)
        out = Operand(changed.reshape(self.contraction.out.tensor.shape), self.contraction.out.axes)
        own = out.ordered(self.batch + self.heads + self.queries + self.roles.features)
        own = own[(slice(None),) * len(self.batch) + tuple(at)]
        if len(self.queries) > 1:
            raise Unsupported(QUERIES)
        here = (slice(None),) * len(self.batch) + ((rows,) if self.queries else ())
        count = len(self.roles.features)
        before = own.flatten(-count) if count else own[..., None]  # every row: a mean is over all of them
        own[here] = new(before).expand_as(before).reshape(own.shape)[here]
        return changed

    def note(self) -> str:
        """What a reader must know of several windows of the sample on the batch axis; without an axis of heads, that
        one may have heads or windows."""
        if not self.heads or not self.batch:
            return self._windows_alone()
        heads = math.prod(map(self.contraction.left.size, self.heads))
        return self.selected.window_note(self.contraction.left.size(self.batch), heads)

    def _windows_alone(self) -> str:
        """What is said of maps that have all steps of the sample together, and each some of them."""
        first = self.batch or self.heads[:1]
        if not first or self.queries in self.roles.shared:
            return ""
        count = self.contraction.left.size(first) // (self.selected.batch if self.batch else 1)
        steps = self.count(self.queries)
        if count < 2 or count * steps != self.selected.padded or steps != self.count(self.roles.keys):
            return ""
        if len(self.heads) - (not self.batch) > 0:
            return self.selected.window_note(count * self.selected.batch, self.count(self.heads) // count)
        return ONE_AXIS.format(count, steps)

    def count(self, axes: str) -> int:
        """How many positions these axes of the weights have together."""
        return math.prod(map(self.contraction.left.size, axes))

    def check(self) -> Check:
        """A few rows of weights · values against what the operation returned.

        The weights are those that the operation was given, with dropout: wrong axes or another sample would show.
        """
        weights, values = self.of_weights(self.contraction.left.tensor.detach())[0], self.values().detach()
        rows = torch.tensor(picked_rows(weights.shape[1]), device=weights.device)
        wide = torch.float64 if weights.device.type == "cpu" else torch.float32
        wide = wide.to_complex() if values.is_complex() else wide
        ours = torch.bmm(weights[:, rows].to(wide), values.to(wide))
        theirs = self.returned().detach()[:, rows].to(wide)
        products = torch.bmm(weights[:, rows].abs().to(wide), values.abs().to(wide)).abs()
        error = (ours - theirs).abs()[~ours.isnan()]
        given = (weights.dtype, values.dtype, self.contraction.out.tensor.dtype)
        eps = max(torch.finfo(dtype).eps for dtype in given if dtype.is_floating_point or dtype.is_complex)
        size = max(float(products.nan_to_num().amax()) if products.numel() else 0.0, 1e-6)
        return Check(float(error.max()) if error.numel() else 0.0, ROUNDING * eps * size)

    def _part(self, tensor: Tensor) -> Tensor:
        return self.selected.part(tensor) if self.batch else tensor


def lay_out(
    selected: SelectedSample, contraction: Contraction, roles: Roles, choice: int = 0, batch: str | None = None
) -> Layout:
    """Find the axes of the selected sample. Raises Unsupported where the sequences of the batch cannot be told.

    choice: which of several axes that may be the batch; batch: the axis where it is known.
    """
    axes = _batch_axes(selected, contraction, roles) if batch is None else [batch]
    several = batch is None and _several(selected, contraction, roles, axes)
    batch = axes[min(choice, len(axes) - 1)]
    if several and choice >= len(axes):  # the same axis, merged in the other order
        selected.merged[contraction.left.size(batch)] = 1
    heads = "".join(axis for axis in roles.shared if axis != batch)
    queries, repeated = roles.queries.replace(batch, "") if batch else roles.queries, ""
    if len(queries) > 1 and _is_row_axis(selected, contraction, roles, queries[-1]):
        repeated, queries = queries[:-1], queries[-1]
    order = {axis: number for number, axis in enumerate(contraction.left.axes)}
    together = "".join(sorted(heads + repeated, key=lambda axis: order[axis]))
    return Layout(selected, contraction, roles, batch, together, repeated, queries, several)


def _several(selected: SelectedSample, contraction: Contraction, roles: Roles, axes: list[str]) -> bool:
    """Whether something else than the first of `axes` may be the batch, or its order in it is not known."""
    left, first = contraction.left, contraction.left.axes[0]
    if selected.batch == 1 or not axes[0]:
        return False
    hidden = left.size(first) == selected.batch and first not in (*roles.shared, *roles.keys) and first != axes[0]
    size = left.size(axes[0])
    return len(axes) > 1 or hidden or (size != selected.batch and size not in selected.merged)


def with_batch(selected: SelectedSample, contraction: Contraction, roles: Roles) -> tuple[Contraction, Roles]:
    """Weights that are the same for all sequences (learned, or of positions alone) as weights of each of them."""
    left, right = contraction.left, contraction.right
    first = right.axes[0]
    if selected.batch < 2 or first not in roles.features or right.size(first) != selected.batch or len(left.axes) < 2:
        return contraction, roles
    wide = Operand(left.tensor.expand(selected.batch, *left.tensor.shape), first + left.axes)
    found = replace(contraction, left=wide)
    return found, found.roles() or roles


def _is_row_axis(selected: SelectedSample, contraction: Contraction, roles: Roles, axis: str) -> bool:
    """Whether the last axis of the weights that the values lack is the queries, and those before it heads that share
    their values (grouped and multi-query attention). Elsewhere all of them are queries (rows and columns of a picture).
    """
    count, keys = contraction.left.size(axis), math.prod(map(contraction.left.size, roles.keys))
    return count in (1, keys, selected.padded, selected.length)


def _batch_axes(selected: SelectedSample, contraction: Contraction, roles: Roles) -> list[str]:
    """The axes that may be the batch, the likeliest first; "" where there is none.

    The first axis of the weights where that has its size or a multiple of it (windows, heads); a common axis of exactly
    its size (time first, heads first). Which of several it is, a call with one sequence shows.
    """
    left, first = contraction.left, contraction.left.axes[0]
    own = left.size(first) == selected.batch and len(left.axes) > 2 and first not in roles.keys
    if selected.batch == 1:
        if own and first not in roles.shared and roles.shared:
            raise Unsupported(COMMON)
        return [first if own else ""]
    exact = [axis for axis in roles.shared if left.size(axis) == selected.batch]
    if first in roles.shared and left.size(first) in selected.merged:
        return [first, *(axis for axis in exact if axis != first)]
    if exact:
        return exact
    if own and first not in roles.shared and roles.shared:
        raise Unsupported(COMMON)
    if first in roles.shared and left.size(first) % selected.batch == 0:
        return [first]
    if (
        not roles.shared
        and first in roles.queries
        and left.size(first) == selected.batch
        and _memory(selected, left, roles)
    ):
        return [first]
    raise Unsupported(COMMON if not roles.shared else NO_BATCH.format(_sizes(left, roles.shared), selected.batch))


def _memory(selected: SelectedSample, left: Operand, roles: Roles) -> bool:
    """Whether values without a batch may be a memory that all sequences have in common. Not where weights (q, k) are as
    many as positions: those may be of one sequence, in a loop over the batch."""
    return len(left.axes) > 2 or math.prod(map(left.size, roles.keys)) not in (selected.padded, selected.length)


def _sizes(operand: Operand, axes: str) -> str:
    return ", ".join(str(operand.size(axis)) for axis in axes)
