"""One call of an attention function, turned into an Attention: what it was given, for the one selected sample.

Queries and keys are copied at the call (the user may write into them later); the weights of a few rows are computed at
once, multiplied with the values and compared with what the call returned.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from inspector.engine.attention.kept import kept_copy
from inspector.engine.attention.key_source import CROSS, SELF
from inspector.engine.attention.masks import Settled, limit, settle, unreached
from inspector.engine.attention.rows import FORBIDDEN, RowBlock, Rows
from inspector.engine.attention.selected_sample import SelectedSample
from inspector.engine.cells.check import Check
from inspector.engine.trace.attention import SOURCE_NOT_KNOWN, UNKNOWN_SOURCE
from inspector.engine.trace.trace import Attention

CROSS_NAMES = ("cross", "multihead_attn", "encoder_attn", "encdec", "enc_dec", "src_attn", "source_attn", "memory")
"""A module whose name contains one of these attends to another sequence, even when both are equally long."""

WITHOUT_DROPOUT = "shown without the dropout that the model applied to them"
CHECKED_ROWS = 4
KEYS_PER_ROUNDING = 32.0
"""A sum of many keys rounds the same way each time where tokens repeat: of 16,000 keys of 32 different tokens, torch's
kernel is 220 rounding errors from float64 and 350 from another order of the same sum. A key that was wrongly masked in
a row of n keys weighs 1/n on average, which is more than that in the first of the rows that are checked."""


def attend(
    selected: SelectedSample,
    place: str,
    module: str,
    query: Tensor,
    key: Tensor,
    *,
    scale: float | None = None,
    causal: bool = False,
    mask: Tensor | None = None,
    source: str | None = None,
    note: str = "",
    given_mask: Tensor | None = None,
) -> Attention:
    """An Attention from folded (1, a, q, d) queries and keys and a folded mask (True = may attend, or additive).

    Rows that are padding of the sample are cut off, and so are keys that none of the rest may attend to. Queries and
    keys of different number are two sequences, unless the mask is the triangle of the last queries of all keys.
    """
    q = query.shape[-2]
    scale = 1.0 / math.sqrt(max(1, query.shape[-1])) if scale is None else float(scale)
    below = 0.0 if mask is None else limit(mask, query, key, scale)
    settled = Settled() if mask is None else settle(selected, mask, below, given_mask)
    first = 0 if crosses(place) else settled.first_query
    causal = causal or settled.causal
    asked = source is not None or q != key.shape[-2] or q < 2 or crosses(place) or bool(first)
    source = source_of(place, source, q == key.shape[-2])
    steps = q in (selected.padded, selected.length) and not selected.over_answer(place)
    mask, own = settled.mask, source == SELF and key.shape[-2] == selected.padded
    if steps and selected.length < q:
        query, mask = query[..., : selected.length, :], _rows(mask, selected.length)
        if own and unreached(mask, causal, selected.length, below):
            key, mask = key[..., : selected.length, :], _columns(mask, selected.length)
    queries_from = "step" if steps else "position"
    return Attention(
        place=place, module=module, query=kept_copy(query), key=kept_copy(match_heads(query, key)), scale=scale,
        causal=causal, mask=mask, keys_from="position" if first else keys_named(source, queries_from),
        kept=selected.sample, queries_from=queries_from, note=noted(note, source, first), first_query=first,
        called_with=q, finite_mask=settled.finite, source_asked=asked,
    )  # fmt: skip


def _rows(mask: Tensor | None, length: int) -> Tensor | None:
    """A mask without the queries from `length` on."""
    return mask if mask is None or mask.shape[-2] == 1 else mask[..., :length, :]


def _columns(mask: Tensor | None, length: int) -> Tensor | None:
    """A mask without the keys from `length` on."""
    return None if mask is None else mask[..., :length]


def source_of(place: str, source: str | None, alike: bool) -> str:
    """SELF, CROSS, or "" where it is not known which; `source` as the data say it, None where these were not asked.

    `alike`: there are as many keys as queries. Where the data do not say, a module's name may.
    """
    if not alike and source != SELF:
        return CROSS
    return source or (CROSS if crosses(place) else SELF if source is None else "")


def keys_named(source: str, queries_from: str) -> str:
    """The label domain of the keys."""
    return {CROSS: "source step", SELF: queries_from}.get(source, UNKNOWN_SOURCE)


def noted(note: str, source: str, first: int = 0) -> str:
    """A note, with what is not known."""
    return "; ".join(filter(None, (note, "" if source or first else SOURCE_NOT_KNOWN)))


def crosses(place: str) -> bool:
    """Whether a module's name says that it attends to another sequence."""
    return any(word in place.lower() for word in CROSS_NAMES)


def from_weights(
    selected: SelectedSample,
    place: str,
    module: str,
    weights: Tensor,
    note: str = "",
    masked: Tensor | None = None,
    margins: Tensor | None = None,
    source: str | None = None,
) -> Attention:
    """An Attention from weights (1, a, q, k) that the model computed itself.

    masked: True where a mask forbids a key, of the shape of the weights; None where nothing is masked.
    margins: (1, a, q) by how much finite masks lie below the least allowed score, see `masking.margins`.
    source: SELF, CROSS or "", of which sequence the keys are by the data; None where these were not asked.
    """
    q, k = weights.shape[-2:]
    asked = source is not None or q != k or q < 2 or crosses(place)
    source = source_of(place, source, q == k)
    mask = torch.ones(1, 1, 1, 1, dtype=torch.bool, device=weights.device) if masked is None else ~masked
    steps = q in (selected.padded, selected.length) and not selected.over_answer(place)
    if steps and selected.length < q:
        weights, mask = weights[..., : selected.length, :], mask[..., : selected.length, :]
        margins = None if margins is None else margins[..., : selected.length]
        if source == SELF and not bool(weights[..., selected.length :].any()):
            weights, mask = weights[..., : selected.length], mask[..., : selected.length]
    queries_from = "step" if steps else "position"
    nothing = weights.new_zeros(1, weights.shape[1], 0, 0)
    return Attention(
        place, module, nothing, nothing, 1.0, weights=weights, kept=selected.sample, queries_from=queries_from,
        keys_from=keys_named(source, queries_from), mask=mask, margins=margins,
        note="; ".join(filter(None, (noted(note, source), "computed by the model itself"))), called_with=q,
        source_asked=asked,
    )  # fmt: skip


def of_nested(selected: SelectedSample, seen: Attention) -> Attention:
    """The Attention of a call with nested tensors, which have no padding: they were made from padded ones."""
    if seen.called_with == selected.length:
        seen.called_with, seen.without_padding = selected.padded, True
    return seen


Projection = Callable[[Tensor, Tensor], Tensor]
"""From the heads' outputs (q, a, d) of some rows, and their indices (q,), to what the call returns for them."""


def check(attention: Attention, value: Tensor, expected: Callable[[Tensor], Tensor], project: Projection) -> Check:
    """Compare a few rows of weights · value with what the call returned.

    value: (1, a or groups, k, d); expected(rows) gives what the call returned for those rows, and project(heads,
    rows) makes the same of the (q, a, d) heads computed here. Rows without an allowed key are left out: kernels
    disagree on them.
    """
    device = attention.query.device
    rows = torch.tensor(picked_rows(attention.query.shape[-2]), device=device)
    block = Rows(attention, attention.kept or 0).picked(rows)
    keep = (block.count > 0).all(dim=0)
    if not bool(keep.any()):
        return Check(0.0, 0.0)
    value = match_heads(attention.query, value)[0]
    heads = torch.bmm(block.weights, value.to(block.weights.dtype)).transpose(0, 1)
    ours = project(heads, rows)[keep]
    theirs = expected(rows)[keep].to(ours.dtype)
    error = (ours - theirs).abs()
    sizes = torch.bmm(block.weights, value.abs().to(block.weights.dtype)).transpose(0, 1)[keep]
    error = error[~ours.isnan()]  # NaN values under a zero weight appear here and need not appear in a blocked kernel
    largest = float(error.max()) if error.numel() else 0.0
    size = max(float(theirs.nan_to_num().abs().max()), float(sizes.nan_to_num().max()))
    eps = max(torch.finfo(value.dtype).eps, torch.finfo(ours.dtype).eps)
    sums = 16.0 + 4.0 * _largest_logit(block) + block.keys / KEYS_PER_ROUNDING
    return Check(largest, eps * sums * max(size, 1e-6))


def _largest_logit(block: RowBlock) -> float:
    assert block.scores is not None
    return float(torch.where(block.scores > FORBIDDEN / 2, block.scores, 0.0).nan_to_num().abs().max())


def picked_rows(queries: int) -> list[int]:
    """A few rows spread over the map, first and last included."""
    return sorted({round(n * (queries - 1) / (CHECKED_ROWS - 1)) for n in range(CHECKED_ROWS)})


def match_heads(query: Tensor, key: Tensor) -> Tensor:
    """Keys repeated for grouped heads: head a uses group a // (heads per group)."""
    groups, heads = key.shape[1], query.shape[1]
    return key if groups == heads else key.repeat_interleave(heads // groups, dim=1)
