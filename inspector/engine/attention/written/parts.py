"""One softmax over the keys of several memories, whose parts are multiplied with the values of each and added.

`w[..., :m] @ memory + w[..., m:] @ x` attends to m + t keys: its map is both parts beside each other, in the order of
the softmax.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor

from inspector.engine.attention.written.contraction import Contraction, Roles
from inspector.engine.attention.written.facts import Facts, FactTable, Origin
from inspector.engine.trace.attention import joined_lineages
from inspector.engine.trace.heads import Heads
from inspector.engine.trace.trace import Attention

TOGETHER = "one softmax over the keys of several memories, in its order"
SHARE = "{} of the {} entries of its softmax: the others multiply no values that were seen"
SEVERAL = "its softmax is over the keys of several memories"
MOST = 8
"""Softmaxes whose parts wait: those of one are multiplied soon one after the other."""
Waiting = tuple[Contraction, Roles, Facts]


@dataclass(slots=True)
class Parts:
    """Attentions over a part of the axis of their softmax, by its identity."""

    seen: dict[int, Attention] = field(default_factory=dict)
    columns: dict[int, dict[int, tuple[Tensor, Tensor]]] = field(default_factory=dict)
    """Of each softmax (weights, mask), both (1, a, q, k'), by the first of their entries."""
    regions: dict[int, dict[int, tuple[int, ...]]] = field(default_factory=dict)
    """Of each softmax the shapes of the parts that were seen, by where they begin."""
    waiting: dict[int, list[Waiting]] = field(default_factory=dict)
    """Parts that multiply parameters: attention where another part is."""

    def further(self, facts: FactTable, contraction: Contraction, roles: Roles, origin: Origin) -> bool:
        """Whether a sum is over entries of a softmax of which others are shown already."""
        first, known = start(facts, contraction, roles, origin), self.columns.get(id(origin))
        if first is None or known is None:
            return False
        end = first + math.prod(map(contraction.left.size, roles.keys))
        return all(end <= at or first >= at + one.shape[-1] for at, (one, _) in known.items())

    def apart(self, facts: FactTable, contraction: Contraction, origin: Origin) -> bool:
        """Whether these are rows or heads of a softmax of which only others were seen: a map of their own, or rows of
        one that is put together. They are seen from now on."""
        key, part = region(facts, contraction, origin), contraction.left.tensor
        known = self.regions.setdefault(id(origin), {})
        if key[1] in known or -1 in known or (key[1] == -1 and known):
            return False
        other = bool(known) and all(shape == tuple(part.shape) for shape in known.values())
        known[key[1]] = tuple(part.shape)
        return other

    def wait(self, facts: FactTable, contraction: Contraction, roles: Roles, known: Facts, origin: Origin) -> None:
        """Remember a part that multiplies parameters."""
        if start(facts, contraction, roles, origin) is not None:
            self.waiting.setdefault(id(origin), []).append((contraction, roles, known))
            if len(self.waiting) > MOST:
                self.waiting.pop(next(iter(self.waiting)))

    def joined(self, seen: Attention, first: int, origin: Origin) -> bool:
        """Keep a part; whether it was added to one that is shown. Those with other heads or queries are not."""
        assert seen.weights is not None
        whole, known = self.seen.get(id(origin)), self.columns.setdefault(id(origin), {})
        fits = all(one.shape[:-1] == seen.weights.shape[:-1] for one, _ in known.values())
        if fits:
            mask = torch.ones_like(seen.weights, dtype=torch.bool) if seen.mask is None else seen.mask
            known[first] = seen.weights, mask.expand(seen.weights.shape)
        count = sum(one.shape[-1] for one, _ in known.values())
        share = "" if count == origin.shape[origin.axis] else SHARE.format(count, origin.shape[origin.axis])
        if whole is None:
            self.seen[id(origin)], seen.memories = seen, (seen.weights.shape[-1],)
            seen.note = _noted(seen.note, share)
        elif fits:
            _join(whole, known, seen)
            whole.note = _noted(whole.note, TOGETHER, share)
        return whole is not None and fits


def region(facts: FactTable, contraction: Contraction, origin: Origin) -> tuple[int, int]:
    """The origin and where a part of it begins; -1 where it is all of it, or a copy."""
    part = contraction.left.tensor
    known = facts.whole(part)
    whole = known is None or tuple(known.shape) != origin.shape
    return id(origin), -1 if whole else int(part.storage_offset())


def start(facts: FactTable, contraction: Contraction, roles: Roles, origin: Origin) -> int | None:
    """The first entry of its softmax that a part of it has; None where it is all of it, or something else of it."""
    part = contraction.left.tensor
    known = facts.whole(part) if origin.kind == "softmax" else None
    if known is None or tuple(known.shape) != origin.shape or known.stride[origin.axis] == 0:
        return None
    first, rest = divmod(int(part.storage_offset()) - known.offset, known.stride[origin.axis])
    count, size = math.prod(map(contraction.left.size, roles.keys)), origin.shape[origin.axis]
    all_others = part.numel() * size == known.shape.numel() * count
    return first if not rest and all_others and count < size and first + count <= size else None


def _join(whole: Attention, columns: dict[int, tuple[Tensor, Tensor]], seen: Attention) -> None:
    parts = [columns[at] for at in sorted(columns)]
    whole.weights = torch.cat([weights for weights, _ in parts], -1)
    whole.mask = torch.cat([mask for _, mask in parts], -1)
    whole.memories = tuple(weights.shape[-1] for weights, _ in parts)
    whole.keys_from, whole.source_asked, whole.first_query = "source step", True, 0
    whole.ends, whole.value_sums, whole.products = None, None, SEVERAL
    whole.lineage = joined_lineages([whole.lineage, seen.lineage])
    whole.heads = Heads([], incomplete=SEVERAL)
    tops = (whole.highest, seen.highest)
    whole.highest = None if tops[0] is None or tops[1] is None else torch.maximum(tops[0], tops[1])
    both = [one.check for one in (whole, seen) if one.check is not None]
    whole.check = max(both, key=lambda one: (not one.passed, one.error)) if both else None


def _noted(note: str, *more: str) -> str:
    """A note without what was said of fewer parts, and with more."""
    before = [one for one in note.split("; ") if one and "entries of its softmax" not in one and one not in more]
    return "; ".join([*(one for one in more if one), *before])
