"""Attention over windows of keys that overlap: local attention by `unfold`, by an index, by shifted copies, by chunks.

Each query, or each chunk of queries, has values of its own, which are those of its neighbour moved on: value j of
window i is value m·i + j of one sequence. Weights over windows are then a map over that sequence, most of which is not
allowed. Windows are recognised by their values, since they are mostly copies.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product

import torch
from torch import Tensor

from inspector.engine.attention.selected_sample import SelectedSample
from inspector.engine.attention.written.contraction import Contraction, Operand, Roles
from inspector.engine.attention.written.layout import Layout, lay_out
from inspector.engine.errors import Unsupported
from inspector.engine.trace.trace import Attention

SEVERAL = "its values are windows that overlap along more than one axis, which are shown over one axis only"
UNEVEN = "its values are windows that overlap, each {} keys after the one before with {} queries"
UNKNOWN = "its values are windows that overlap, and which of its {} keys is the first step is not known"
NOTE = "windows that overlap, of {} keys"
BEFORE = "key {} is the first step, keys before and after the steps are padding"


@dataclass(frozen=True, slots=True)
class Windows:
    """Which axis of the weights is the windows, and how many keys each is after the one before (`step`).

    Attributes:
        layout: of the weights over windows, as the model has them.
        windows: letter of the axis of windows.
        turned: the keys of a window are in the opposite order (by lag).
    """

    layout: Layout
    windows: str
    step: int
    turned: bool

    @property
    def width(self) -> int:
        """Keys of a window."""
        return self.layout.count(self.layout.roles.keys)

    @property
    def chunk(self) -> int:
        """Queries of a window."""
        return self.layout.count(self.layout.queries)

    @property
    def keys(self) -> int:
        """Keys of all windows together."""
        return self.step * (self.layout.count(self.windows) - 1) + self.width

    @property
    def rest(self) -> str:
        """Batch and heads."""
        return self.layout.batch + self.layout.heads.replace(self.windows, "")

    def spread(self, given: Tensor, fill: float) -> Tensor:
        """(…, q, k) over all queries and keys, of something with the shape of the weights; `fill` elsewhere."""
        left = self.layout.contraction.left
        own = Operand(given.reshape(left.tensor.shape), left.axes)
        rows = own.ordered(self.rest + self.windows + self.layout.queries + self.layout.roles.keys)
        rows = rows.reshape(*rows.shape[: len(self.rest)], -1, self.width)
        rows = rows.flip(-1) if self.turned else rows
        starts = torch.arange(rows.shape[-2], device=given.device) // self.chunk * self.step
        at = starts[:, None] + torch.arange(self.width, device=given.device)
        out = rows.new_full((*rows.shape[:-1], self.keys), fill)
        return out.scatter(-1, at.expand(rows.shape), rows)

    def values(self) -> Operand:
        """The values of all keys."""
        right, roles = self.layout.contraction.right, self.layout.roles
        own = "".join(axis for axis in self.rest if axis in right.axes)
        each = right.ordered(own + self.windows + roles.keys + roles.features)
        each = each.flip(len(own) + 1) if self.turned else each
        at = torch.arange(each.shape[len(own)], device=each.device)[:, None] * self.step
        at = (at + torch.arange(self.width, device=each.device)).flatten()
        out = each.new_zeros(*each.shape[: len(own)], self.keys, *each.shape[len(own) + 2 :])
        return Operand(
            out.index_copy(len(own), at, each.flatten(len(own), len(own) + 1)), own + roles.keys + roles.features
        )

    def over_all(self, selected: SelectedSample) -> Layout:
        """The same sum of products over all keys."""
        roles, out = self.layout.roles, self.layout.contraction.out
        rows = out.ordered(self.rest + self.windows + self.layout.queries + roles.features)
        count, chunked = len(self.rest), len(self.layout.queries)
        rows = rows.flatten(count, count + chunked)
        weights = Operand(
            self.spread(self.layout.contraction.left.tensor.detach(), 0.0), self.rest + self.windows + roles.keys
        )
        whole = Contraction(weights, self.values(), Operand(rows, self.rest + self.windows + roles.features))
        batch = self.layout.batch if self.layout.batch in self.rest else None
        return lay_out(selected, whole, Roles(self.rest, self.windows, roles.keys, roles.features), batch=batch)

    def first_step(self, selected: SelectedSample) -> int | None:
        """How many keys are before the first step; None where the keys are no steps. Raises Unsupported.

        Padding is what no query attends to, what is 0, or what is the same for all sequences of the batch (the bias of
        a layer). Counter-example: steps that are 0 beside padding on both sides, which is refused.
        """
        more = self.keys - selected.padded
        if more <= 0:
            return 0 if not more else None
        values = self.values()
        each = values.tensor.detach().movedim(values.axes.index(self.layout.roles.keys), 0).reshape(self.keys, -1)
        dead = (each == 0).all(1)
        if selected.batch > 1 and self.layout.batch:
            samples = values.tensor.detach().movedim(values.axes.index(self.layout.roles.keys), 0)
            at = values.axes.replace(self.layout.roles.keys, "").index(self.layout.batch) + 1
            dead |= (samples == samples.narrow(at, 0, 1)).reshape(self.keys, -1).all(1)
        weights = self.spread(self.layout.contraction.left.tensor.detach(), 0.0)
        dead |= (weights == 0).reshape(-1, self.keys).all(0)
        alive = (~dead).nonzero().flatten()
        before, after = (int(alive[0]), self.keys - 1 - int(alive[-1])) if len(alive) else (self.keys, self.keys)
        found = before if before + after == more else more if not after and before > more else None
        found = 0 if not before and after > more else found
        if found is None:
            raise Unsupported(UNKNOWN.format(self.keys))
        return found


def windows_of(layout: Layout) -> Windows | None:
    """The windows that the values of a sum of products are, None where they do not overlap. Raises Unsupported."""
    right, roles = layout.contraction.right, layout.roles
    if layout.repeated or len(layout.queries) > 1 or (layout.batch and layout.batch not in right.axes):
        return None
    found = []
    for windows, keys in product(layout.heads, roles.keys):
        moved = _moved(right, windows, keys)
        if moved is not None:
            found.append(Windows(layout, windows, *moved))
    if not found:
        return None
    if len(found) > 1 or len(roles.keys) > 1:
        raise Unsupported(SEVERAL)
    one = found[0]
    alone = one.chunk == 1 and len(layout.heads) == 1
    if one.step != one.chunk and not alone:
        raise Unsupported(UNEVEN.format(one.step, one.chunk))
    return one


def _moved(values: Operand, windows: str, keys: str) -> tuple[int, bool] | None:
    """(by how many keys each window is after the one before, whether its keys are turned); None for no windows."""
    count, width = values.size(windows), values.size(keys)
    if count < 2 or width < 2:
        return None
    rest = "".join(axis for axis in values.axes if axis not in (windows, keys))
    each = values.ordered(windows + keys + rest).detach().reshape(count, width, -1)
    if torch.equal(each[1:], each[:-1]):
        return None
    for turned in (False, True):
        own = each.flip(1) if turned else each
        # The first key of the second window, among those of the first: nothing else is compared in most attentions.
        for step in (own[0, 1:] == own[1, 0]).all(-1).nonzero().flatten().tolist():
            kept = width - step - 1
            if torch.equal(own[1:, :kept], own[:-1, step + 1 :]):
                return step + 1, turned
    return None


@dataclass(frozen=True, slots=True)
class Place:
    """Which keys of all windows are shown, and how many of them are before the first step (None: none is a step)."""

    keys: slice
    first: int | None
    note: str

    def put(self, attention: Attention) -> Attention:
        """The attention with the positions of its keys."""
        if not self.first:
            return attention
        return replace(attention, first_query=self.first, keys_from="position")


WHOLE = Place(slice(None), None, "")
"""Every key, of weights that are over no windows."""


def place_of(windows: Windows, selected: SelectedSample, part: Tensor) -> Place:
    """Where the keys of the sample's weights (1, a, q, k) over all keys are. Raises Unsupported."""
    first, note = windows.first_step(selected), NOTE.format(windows.width)
    if first is None or part.shape[-2] != selected.padded:
        return Place(slice(None), None, note)
    steps = slice(first, first + selected.padded)
    outside = part[..., : steps.start].any() | part[..., steps.stop :].any()
    if bool(outside):
        return Place(slice(None), first, f"{note}; {BEFORE.format(first)}")
    return Place(steps, 0, note)
