"""Rows of attention weights from the queries and keys that a probe stored, computed when they are needed.

A map has q·k entries for each head and is never stored: a block of its rows is `softmax(scale·Q Kᵀ + mask)` of some
queries, and the keys that no row of the block may attend to (the upper half of a causal map) are not computed.

Index letters: a head, q query, k key, d head width.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from inspector.engine.errors import Unsupported
from inspector.engine.trace.trace import Attention

MASKED = -1.0e4
"""An additive mask at or below this forbids a key: −∞, the smallest finite number, −10⁹ and −10⁴ are all in use."""

LARGE = -1.0e3
"""A constant at or below this is meant to forbid, whether or not it does; a bias that a model learns is less."""

NEGLIGIBLE = 750.0
"""e to the minus this is 0 in float64, so a logit that is so much below another has no weight."""

FORBIDDEN = -1.0e30
"""Score of a forbidden key. Finite, so that weight · score is 0 there and not NaN; exp of it is exactly 0."""

ROUNDED = 1.0e-2
"""By how much the sum of a row may exceed 1 by rounding: that of weights in half precision."""

BLOCK_BYTES = 1 << 22
"""Bytes of a block of rows in float32, half of them as one page of float16: measured on GPT-2 small at 1,024 tokens,
the calls for a quarter of it cost as much again as the arithmetic, and twice as much gains little."""
MOST_ROWS = 128
"""Rows of a head in a block, where as many fit: products of fewer queries spend their time on packing the keys."""


@dataclass(frozen=True)
class RowBlock:
    """Consecutive rows of some heads' maps.

    Attributes:
        first: index of the first query of the block.
        weights: (a, q, k') rows that sum to 1; keys from k' on are forbidden to the whole block. A row that may attend
            to no key is NaN.
        scores: (a, q, k') the logits, FORBIDDEN where masked; None where the model itself computed the weights.
        count: (a or 1, q) how many keys each row may attend to.
        largest: (a, q) the largest weight of each row.
        keys: number of keys of the whole map, k ≥ k'.
        position: the position of the block's first query among the keys; `first` where no cache came before.
    """

    first: int
    weights: Tensor
    scores: Tensor | None
    count: Tensor
    largest: Tensor
    keys: int
    position: int

    @cached_property
    def top(self) -> Tensor | None:
        """(a, q) the largest logit of each row; None where the model itself computed the weights."""
        return None if self.scores is None else self.scores.amax(dim=-1)

    @cached_property
    def entropy(self) -> Tensor:
        """(a, q) −Σ_k A ln A in nats, with 0 ln 0 = 0; NaN for a NaN row, and where a weight is below 0.

        From the logits s it is −Σ_k A ln A with ln A = s − lse(s), where lse(s) = max s − ln max A. The largest logit
        is subtracted first: the difference of two large logits is exact where the weight is not negligible, while
        lse(s) − Σ_k A s would lose as many digits to cancellation as the logits are large.
        """
        if self.scores is None or self.top is None:
            each: Tensor = torch.special.entr(self.weights).sum(dim=-1)
            return each.masked_fill(self.signed, torch.nan)
        below = self.scores - self.top[..., None]
        return (-self.largest.log() - below.mul_(self.weights).sum(dim=-1)).clamp_min(0.0)

    def shares(self) -> RowBlock:
        """The absolute weights over the sum of each row."""
        sizes = self.weights.abs()
        sizes = sizes / sizes.sum(dim=-1, keepdim=True).clamp_min(torch.finfo(sizes.dtype).tiny)
        return replace(self, weights=sizes, scores=None, largest=sizes.amax(dim=-1))

    @property
    def signed(self) -> Tensor:
        """(a, q) True where a row has a weight below 0 (the difference of two maps)."""
        return (self.weights < 0).any(dim=-1)

    @cached_property
    def bounded(self) -> Tensor:
        """(a, q) True where a row has no weight below 0 and sums to 1 at most but for rounding. Of those of a softmax
        every one; a sigmoid of each score may sum to more."""
        if self.scores is not None:
            return torch.ones_like(self.largest, dtype=torch.bool)
        return (self.weights.sum(dim=-1) <= 1.0 + ROUNDED) & ~self.signed

    def full(self) -> Tensor:
        """(a, q, k) the weights with the zeros of the forbidden keys at the end."""
        missing = self.keys - self.weights.shape[-1]
        return torch.nn.functional.pad(self.weights, (0, missing)) if missing else self.weights


class Rows:
    """The rows of one sample of one Attention.

    Half precision is widened to float32, float64 stays. Raises Unsupported for a sample that was not stored.
    """

    def __init__(self, attention: Attention, sample: int) -> None:
        if attention.kept not in (None, sample):
            raise Unsupported(
                f"The attention of {attention.place} was recorded for sequence {attention.kept} only, not for {sample}."
            )
        at = self.sample = 0 if attention.kept is not None else sample
        """Where the sample is in the tensors of the attention."""
        self.causal = attention.causal
        self.weights = None if attention.weights is None else _wide(attention.weights[at])
        self._mask = _of_sample(attention.mask, at)
        self.device = (attention.query if self.weights is None else self.weights).device
        self._first_query = attention.first_query
        self._forbidding = MASKED
        if self._mask is not None and self._mask.dtype != torch.bool:
            self._forbidding = forbidding(attention.query, attention.key, attention.scale)
        if self.weights is None:
            self._queries = _wide(attention.query[at])
            self._scale = attention.scale
            self._keys = _wide(attention.key[at]).transpose(-1, -2)
            self.heads, self.queries = self._queries.shape[:2]
            self.keys = self._keys.shape[-1]
        else:
            self.heads, self.queries, self.keys = self.weights.shape

    @property
    def scaled(self) -> tuple[Tensor, Tensor] | None:
        """((a, q, d) queries times the scale, (a, d, k) keys); None where the model computed the weights itself."""
        return None if self.weights is not None else (self._queries * self._scale, self._keys)

    @property
    def bias(self) -> Tensor | None:
        """(a or 1, q or 1, k or 1) what is added to the scores, as wide as they are; None without an additive mask."""
        if self.weights is not None or self._mask is None or self._mask.dtype == torch.bool:
            return None
        return self._mask.to(self._queries.dtype)

    @property
    def unmasked(self) -> bool:
        """Whether no mask is known but that of the future: what a query may attend to is one span of keys then."""
        return self._allowed is None

    @property
    def forbidding(self) -> float:
        """A bias at or below this forbids a key."""
        return self._forbidding

    @cached_property
    def _allowed(self) -> Tensor | None:
        """(a or 1, q, k) which keys a mask allows, or None without a mask. Given weights: those that are not 0."""
        if self._mask is None:
            return None if self.weights is None else self.weights != 0
        return self._mask if self._mask.dtype == torch.bool else self._mask > self._forbidding

    @cached_property
    def _ends(self) -> Tensor | None:
        """(q,) for each row, one past the last key that any head may attend to; None without a mask."""
        if self._allowed is None:
            return None
        reachable = self._allowed.any(dim=0).expand(self.queries, self.keys)
        positions = torch.arange(1, self.keys + 1, device=self.device)
        return (reachable * positions).amax(dim=-1)

    def end(self, q0: int, q1: int) -> int:
        """One past the last key that a row of q0 … q1-1 may attend to; at least 1."""
        end = min(q1, self.keys) if self.causal else self.keys
        if self._ends is not None:
            end = min(end, int(self._ends[q0:q1].amax()))
        return max(end, 1)

    def allowed(self, q0: int, q1: int, heads: slice = slice(None)) -> Tensor:
        """(a or 1, q, k) True where a row may attend to a key."""
        return self._grid(slice(q0, q1), torch.arange(q0, q1, device=self.device), heads)

    def block(self, q0: int, q1: int, heads: slice = slice(None)) -> RowBlock:
        """Rows q0 … q1-1 of the given heads."""
        positions = torch.arange(q0, q1, device=self.device)
        return self._block(slice(q0, q1), positions, self.end(q0, q1), heads)

    def picked(self, positions: Tensor) -> RowBlock:
        """Some rows (q,) of all heads, over all keys."""
        return self._block(positions, positions, self.keys, slice(None))

    def _block(self, at: slice | Tensor, positions: Tensor, end: int, heads: slice) -> RowBlock:
        first = at.start if isinstance(at, slice) else 0
        count = self._count(at, positions, heads)
        empty = not bool(count.all())
        end = self.keys if empty else end  # a row without a key is NaN over all keys
        if self.weights is not None:
            given = self.weights[heads, at, :end]
            given = given.masked_fill((count == 0)[..., None], torch.nan) if empty else given
            return RowBlock(first, given, None, count, given.amax(dim=-1), self.keys, first + self._first_query)
        scores = torch.bmm(self._queries[heads, at] * self._scale, self._keys[heads, :, :end])
        self._forbid(scores, at, positions, heads)
        weights = torch.softmax(scores, dim=-1)
        if empty:
            weights.masked_fill_((count == 0)[..., None], torch.nan)
        largest = weights.amax(dim=-1)
        return RowBlock(first, weights, scores, count, largest, self.keys, first + self._first_query)

    def _forbid(self, scores: Tensor, at: slice | Tensor, positions: Tensor, heads: slice) -> None:
        end = scores.shape[-1]
        if self._mask is not None:
            part = _part(self._mask, at, heads)
            part = part if part.shape[-1] == 1 else part[..., :end]
            if part.dtype == torch.bool:
                scores.masked_fill_(~part, FORBIDDEN)
            else:
                scores.add_(part.to(scores.dtype)).masked_fill_(part <= self._forbidding, FORBIDDEN)
        if self.causal:
            start = at.start if isinstance(at, slice) else 0  # keys before the first row are open to all of them
            if end > start:
                scores[..., start:].masked_fill_(_later(start, end, positions), FORBIDDEN)

    def _grid(self, at: slice | Tensor, positions: Tensor, heads: slice) -> Tensor:
        if self._allowed is not None:
            grid = _part(self._allowed, at, heads).expand(-1, len(positions), self.keys)
        else:
            grid = torch.ones(1, len(positions), self.keys, dtype=torch.bool, device=self.device)
        return grid & ~_later(0, self.keys, positions) if self.causal else grid

    def _count(self, at: slice | Tensor, positions: Tensor, heads: slice) -> Tensor:
        """(a or 1, q) number of keys each row may attend to."""
        if self._allowed is not None:
            return self._grid(at, positions, heads).sum(dim=-1)
        reach = positions + 1 if self.causal else torch.full_like(positions, self.keys)
        return reach.clamp(max=self.keys)[None]

    def reach(self) -> Tensor:
        """(2, q) first and last key that a query may attend to in any head, -1 where there is none."""
        if self._allowed is None:
            last = torch.arange(self.queries, device=self.device) if self.causal else torch.tensor(self.keys)
            last = last.clamp(max=self.keys - 1).expand(self.queries)
            return torch.stack([torch.zeros_like(last), last]).to(torch.int32)
        parts = []
        step = max(1, (1 << 22) // max(1, self.keys))
        for q0 in range(0, self.queries, step):
            grid = self.allowed(q0, min(q0 + step, self.queries)).any(dim=0).to(torch.uint8)
            ends = torch.stack([grid.argmax(dim=-1), self.keys - 1 - grid.flip(-1).argmax(dim=-1)])
            parts.append(ends.where(grid.any(dim=-1).bool(), -1).to(torch.int32))
        return torch.cat(parts, dim=1)

    def margins(self, mask: float) -> Tensor:
        """(a, q) the least allowed score minus the largest masked one, where masks are finite numbers.

        mask: what a boolean or causal mask stands for. NaN for rows without a masked key, or without an allowed one.
        """
        found = torch.empty(self.heads, self.queries, dtype=torch.float64)
        for heads, q0, q1 in self.blocks():
            scores = torch.bmm(self._queries[heads, q0:q1] * self._scale, self._keys[heads])
            given = None if self._mask is None else _part(self._mask, slice(q0, q1), heads)
            if given is not None and given.dtype != torch.bool:
                masked, scores = (given <= LARGE).expand_as(scores), scores + given.to(scores.dtype)
            else:
                masked = ~self.allowed(q0, q1, heads).expand_as(scores)
                scores = scores + masked * mask
            found[heads, q0:q1] = margins(scores, masked).to("cpu", torch.float64)
        return found

    def blocks(self, block_bytes: int = BLOCK_BYTES) -> Iterator[tuple[slice, int, int]]:
        """The blocks in which the map is computed: (heads, first query, end query), each about `block_bytes` in
        float32.

        All heads of the same rows in turn, so that every head's map grows at the same pace.
        """
        entries = max(1, block_bytes // (4 * max(1, self.keys)))
        count = min(self.queries, max(16, min(MOST_ROWS, entries), entries // max(1, self.heads)))
        group = max(1, min(self.heads, entries // max(1, count)))
        for q0 in range(0, self.queries, count):
            for head in range(0, self.heads, group):
                yield slice(head, min(head + group, self.heads)), q0, min(q0 + count, self.queries)


def margins(scores: Tensor, masked: Tensor) -> Tensor:
    """(…, q) the least allowed score minus the largest masked one, of (…, q, k) with the masks added; NaN for rows
    without one of both."""
    least = scores.masked_fill(masked, torch.inf).amin(-1)
    most = scores.masked_fill(~masked, -torch.inf).amax(-1)
    return (least - most).masked_fill(masked.all(-1) | ~masked.any(-1), torch.nan)


def margin_or_none_allowed(scores: Tensor, masked: Tensor) -> Tensor:
    """`margins`, and −∞ for rows of which every key is masked by finite numbers: what is masked has all the weight."""
    return margins(scores, masked).masked_fill(masked.all(-1) & (scores.amax(-1) > -torch.inf), -torch.inf)


def forbidding(query: Tensor, key: Tensor, scale: float) -> float:
    """An additive mask at or below this forbids a key: MASKED, or less where the logits are larger than that.

    |scale · q · k| is at most scale · ‖q‖ · ‖k‖ =: m. Logits lie within 2 m of each other, so that a finite mask takes
    all weight from a key only where it is below −2 m; a mask of −10⁴ does not stop a logit of 2·10⁴.
    """
    if not query.numel() or not key.numel():
        return MASKED
    most = abs(scale) * float(_wide(query).norm(dim=-1).max() * _wide(key).norm(dim=-1).max())
    return min(MASKED, -2.0 * most - NEGLIGIBLE) if math.isfinite(most) else MASKED


def rows(attention: Attention, sample: int, q0: int, q1: int, heads: slice = slice(None)) -> Tensor:
    """(a, q, k) weights of rows q0 … q1-1 of one sample: softmax(scale·Q Kᵀ + mask) over the allowed keys.

    A row without an allowed key is NaN; forbidden keys have weight 0. Raises Unsupported for a sample not stored.
    Reference: Vaswani et al. (2017), Attention is all you need, equation 1.
    """
    return Rows(attention, sample).block(q0, q1, heads).full()


def allowed(attention: Attention, sample: int, q0: int, q1: int, heads: slice = slice(None)) -> Tensor:
    """(a or 1, q, k) True where rows q0 … q1-1 of one sample may attend to a key."""
    return Rows(attention, sample).allowed(q0, q1, heads)


def _wide(tensor: Tensor) -> Tensor:
    return tensor if tensor.dtype in (torch.float32, torch.float64) else tensor.float()


def _of_sample(mask: Tensor | None, sample: int) -> Tensor | None:
    """(a or 1, q or 1, k or 1) the mask of one sample."""
    if mask is None:
        return None
    mask = mask[(None,) * (4 - mask.dim())]
    return mask[sample if mask.shape[0] > 1 else 0]


def _part(mask: Tensor, at: slice | Tensor, heads: slice) -> Tensor:
    """The heads and rows of a mask whose axes may be 1."""
    mask = mask if mask.shape[0] == 1 else mask[heads]
    return mask if mask.shape[1] == 1 else mask[:, at]


def _later(k0: int, k1: int, positions: Tensor) -> Tensor:
    """(q, k) True where key k0 + column lies after the query's position."""
    return torch.arange(k0, k1, device=positions.device) > positions[:, None]
