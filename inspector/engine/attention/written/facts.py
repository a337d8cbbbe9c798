"""What is known of results while a model runs: which softmax they come from, what was masked in them.

A fact belongs to the memory of a result, so that it holds for every view of it (transposed, sliced, with axes added)
without a look at the operations that made the view; `Known.seen_by` brings a companion of the result (a mask) into the
layout of such a view. Results that are copies (dropout, a cast, a reshape that copies) get the facts passed on.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef

from inspector.engine.attention.memory import storage_of
from inspector.engine.trace.trace import KeyEnds

RECENT = 96
"""Results of which something is known that is no softmax: the last ones. Masks are applied shortly before a softmax."""


@dataclass(slots=True, eq=False)
class Origin:
    """One call whose result may be weights, and what became of it.

    Attributes:
        kind: "softmax", "scaled" (that multiplied by other numbers), "mixed" (over heads), "sigmoid", … or "" (found by
            their values).
        shape: of the result; axis: over which it is normalised.
        features: the axis is the output of a layer with a weight for each of its positions.
        fixed: the scores are parameters.
        taken: it was attention.
        reason: why it is not, as far as is known.
        masked: of indices of keys, (…, k) which keys were masked in the scores.
        parts: of several softmaxes put together, or one that was multiplied or mixed, those.
        scores: what the softmax was given, with its graph; only where products are kept.
        unclear: why it is not known which of its keys are masked, or "".
    """

    kind: str
    place: str
    module: str
    shape: tuple[int, ...]
    axis: int
    features: bool = False
    fixed: bool = False
    taken: bool = False
    reason: str = ""
    masked: Tensor | None = None
    parts: tuple[Origin, ...] = ()
    scores: tuple[Tensor, Any] | None = None
    unclear: str = ""

    def take(self, reason: str = "") -> None:
        """It was attention; or not, for a reason. So are its parts."""
        for one in (self, *self.parts):
            one.taken, one.reason = not reason, reason or one.reason


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of one result; tensors have its shape, or one that broadcasts to it.

    Attributes:
        masked: True where a mask was applied.
        margins: by how much finite masks lie below the allowed scores, of size 1 along the axis of the keys.
        highest: the largest score, of size 1 along the axis of the keys.
        shift: what was subtracted from scores, their largest, of size 1 along the axis of the keys.
        entries: the position of each weight among those of its softmax; only where products are kept.
        clean: the weights before dropout.
        features: the size of the last axis, where that is the output of a layer.
        weight: the identity of the parameter by which the layer multiplies that made it; 0 for none.
        experts: it holds results of layers with different parameters beside each other.
        made: it was computed by an operation by which weights are made.
        scored: how it was computed from scores of queries and keys that were not normalised, see `scores.py`; None for
            what is no scores.
        ends: what it, or what it was computed from key by key, was put together from.
        given: a number of the tensor that the layer which made it was given; 0 for none.
        own: of weights without a graph, or their scores: of which sequence the keys are, "" where that is not known.
        unclear: why it is not known which scores are masked, or "".
        repeats: of which softmax it is a copy with repeated entries.
    """

    masked: Tensor | None = None
    margins: Tensor | None = None
    highest: Tensor | None = None
    shift: Tensor | None = None
    entries: Tensor | None = None
    clean: Tensor | None = None
    origin: Origin | None = None
    features: int = 0
    weight: int = 0
    experts: bool = False
    made: bool = False
    scored: str | None = None
    ends: KeyEnds | None = None
    given: int = 0
    own: str = ""
    unclear: str = ""
    repeats: Origin | None = None

    @property
    def worth(self) -> bool:
        """Whether there is anything to pass on."""
        known = self.masked is not None or self.origin is not None or self.scored is not None
        known = known or self.shift is not None
        return known or self.features > 0 or self.made or self.experts or bool(self.unclear)

    @property
    def weighs(self) -> bool:
        """Whether it may be weights, normalised or not."""
        return self.made or self.origin is not None or self.scored is not None


@dataclass(slots=True)
class Known:
    """Facts about the memory of one result, with the layout of the tensor for which they were noted."""

    alive: StorageWeakRef
    shape: torch.Size
    stride: tuple[int, ...]
    offset: int
    facts: Facts

    def seen_by(self, view: Tensor) -> Facts:
        """The facts in the layout of a view of the same memory; without those that cannot be brought into it."""
        if view.shape == self.shape and view.stride() == self.stride and view.storage_offset() == self.offset:
            return self.facts
        facts = self.facts
        if facts.features and view.shape[:-1] == self.shape[:-1] and view.stride() == self.stride:
            facts = replace(facts, features=view.shape[-1])  # some outputs of a layer
        if facts.ends is not None and view.numel() < self.shape.numel():
            facts = replace(facts, ends=None)
        companions = (facts.masked, facts.margins, facts.clean, facts.highest, facts.entries, facts.shift)
        if all(one is None for one in companions):
            return facts if not facts.features or view.shape[-1:] == (facts.features,) else replace(facts, features=0)
        return replace(
            facts,
            masked=self._companion(facts.masked, view),
            margins=self._companion(facts.margins, view),
            highest=self._companion(facts.highest, view),
            shift=self._companion(facts.shift, view),
            entries=self._companion(facts.entries, view),
            clean=self._companion(facts.clean, view),
            features=facts.features if view.shape[-1:] == (facts.features,) else 0,
        )

    @property
    def whole_in_order(self) -> bool:
        """Whether the tensor's entries lie one after the other, in order."""
        return self.stride == torch.empty(self.shape, device="meta").stride()

    def _companion(self, one: Tensor | None, view: Tensor) -> Tensor | None:
        if one is None:
            return None
        if self.whole_in_order and view.is_contiguous() and view.numel() == self.shape.numel():
            return one.expand(self.shape).reshape(view.shape)  # heads beside the batch: nothing is copied
        span = 1 + sum((size - 1) * step for size, step in zip(self.shape, self.stride, strict=True))
        if span != self.shape.numel():  # parts of a larger tensor, or repeated entries
            return None
        laid = torch.empty(span, dtype=one.dtype, device=one.device).as_strided(self.shape, self.stride)
        laid.copy_(one.expand(self.shape))
        return laid.as_strided(view.shape, view.stride(), view.storage_offset() - self.offset)


@dataclass(slots=True)
class FactTable:
    """Facts by the memory that they are about."""

    _known: dict[int, Known] = field(default_factory=dict)
    _numbers: dict[int, tuple[StorageWeakRef, int]] = field(default_factory=dict)
    _count: int = 0

    def note(self, result: Tensor, facts: Facts) -> None:
        """Facts about a result, in place of what was known of its memory."""
        storage = storage_of(result)
        if storage is None:
            return
        self._known.pop(storage._cdata, None)
        self._known[storage._cdata] = Known(
            StorageWeakRef(storage), result.shape, result.stride(), int(result.storage_offset()), facts
        )
        if len(self._known) > RECENT:
            self._forget()

    def knows(self, tensors: Iterable[object]) -> bool:
        """Whether anything is known of one of these, which need not be tensors."""
        known = self._known
        if not known:
            return False
        for one in tensors:  # at every operation of a loop: no generators
            if isinstance(one, Tensor):
                storage = storage_of(one)
                if storage is not None and storage._cdata in known:
                    return True
        return False

    def whole(self, part: Tensor) -> Known | None:
        """What is known of the memory of which a tensor is a part; None where it is all of it."""
        storage = storage_of(part) if self._known else None
        known = None if storage is None else self._known.get(storage._cdata)
        return known if known is not None and part.numel() < known.shape.numel() else None

    def of(self, tensor: object) -> Facts | None:
        """What is known of a tensor, or None."""
        if not self._known or not isinstance(tensor, Tensor):
            return None
        storage = storage_of(tensor)
        known = None if storage is None else self._known.get(storage._cdata)
        if known is None:
            return None
        return known.seen_by(tensor)

    def given(self, tensor: object) -> int:
        """A number of the memory of a tensor, the same as long as it lives."""
        storage = storage_of(tensor) if isinstance(tensor, Tensor) else None
        if storage is None:
            return 0
        before = self._numbers.get(storage._cdata)
        if before is None or before[0].expired():
            before = self._numbers[storage._cdata] = StorageWeakRef(storage), 1 + self._count
            self._count += 1
        return before[1]

    def alike(self, one: Tensor, other: Tensor) -> bool:
        """Whether two tensors are parts of what one layer made, or were made by layers that were given one tensor, or
        one of them by a layer that was given the other."""
        if same_memory(one, other):
            return True
        mine, yours = self.of(one), self.of(other)
        if mine is not None and yours is not None and mine.given == yours.given > 0:
            return True
        return self._made_of(mine, other) or self._made_of(yours, one)

    def _made_of(self, known: Facts | None, given: Tensor) -> bool:
        """Whether a layer made something of all that lies in the memory of a tensor, which is all of it as well."""
        storage = storage_of(given)
        whole = storage is not None and given.numel() * given.element_size() == storage.nbytes()
        return whole and known is not None and known.given > 0 and known.given == self.given(given)

    def pass_on(self, source: Tensor, result: object, facts: Facts | None = None) -> None:
        """What is known of one tensor holds for a result of the same shape, or one with its entries in their order."""
        changed = facts is not None
        facts = self.of(source) if facts is None else facts
        if facts is None or not isinstance(result, Tensor) or not (facts.worth or facts.ends is not None):
            return
        if not changed and same_memory(source, result):
            return  # a view
        self.note(result, moved(facts, source.shape, result.shape))

    def _forget(self) -> None:
        """Remove results that are gone, then the oldest that come from no softmax."""
        gone = [number for number, known in self._known.items() if known.alive.expired()]
        for number in gone:
            del self._known[number]
        many = len(self._known) - RECENT // 2
        if many > 0:
            idle = [number for number, known in self._known.items() if known.facts.origin is None]
            for number in idle[:many]:
                del self._known[number]


def moved(facts: Facts, before: torch.Size, after: torch.Size) -> Facts:
    """Facts about a tensor as facts about one that has the same entries, repeated or in another number of axes."""
    if before == after:
        return facts

    def companion(one: Tensor | None) -> Tensor | None:
        if one is None:
            return None
        if before.numel() == after.numel():
            return one.expand(before).reshape(after)
        return one.expand(before) if _repeats(before, after) else None

    return replace(
        facts, masked=companion(facts.masked), margins=companion(facts.margins), clean=companion(facts.clean),
        highest=companion(facts.highest), entries=companion(facts.entries), shift=companion(facts.shift),
        features=facts.features if before[-1:] == after[-1:] else 0,
    )  # fmt: skip


def _repeats(before: torch.Size, after: torch.Size) -> bool:
    """Whether a tensor of one shape can be repeated to another."""
    own = after[len(after) - len(before) :]
    return len(before) <= len(after) and all(a in (1, b) for a, b in zip(before, own, strict=True))


def same_memory(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors are views of one memory."""
    mine, yours = storage_of(one), storage_of(other)
    return mine is not None and yours is not None and mine._cdata == yours._cdata
