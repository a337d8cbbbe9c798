"""One call of an attention function, turned into an Attention: what was given, of the one sample looked at.

Queries and keys are copied at the call (the user may write into them later); the weights of a few rows are
computed there and then, multiplied with the values and compared with what the call returned.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from inspector.engine.attention.rows import FORBIDDEN, MASKED, RowBlock, Rows
from inspector.engine.cells.base import Check
from inspector.engine.errors import Unsupported
from inspector.engine.trace.trace import Attention

CROSS_NAMES = ("cross", "multihead_attn", "encoder_attn", "encdec", "enc_dec", "src_attn", "source_attn", "memory")
"""A module whose name holds one of these looks at another sequence, even when both are equally long."""

WITHOUT_DROPOUT = "shown without the dropout that the model applied to them"
CHECKED_ROWS = 4


@dataclass(slots=True)
class Looked:
    """What the calls of one run have in common: batch size, sample looked at, its real and its padded length."""

    batch: int
    sample: int
    length: int
    padded: int
    over_answer: Callable[[str], bool] = lambda _place: False
    """Whether a place runs over the steps of an answer that has its own: its rows are not the input's."""
    masks: dict[int, tuple[Tensor, int, tuple[int, ...], bool, Tensor | None]] = field(default_factory=dict)
    """Masks already settled, by id: a model passes the same mask to every layer."""

    def fold(self, tensor: Tensor) -> Tensor:
        """(1, a, x, y) the sample's part of (b, …, x, y) or (b·a, x, y); b·n first entries count as n·a heads.

        Raises Unsupported where the first axis is no multiple of the batch.
        """
        if tensor.is_nested:
            part = tensor.unbind()[self.sample]
            return part[(None,) * (4 - part.dim())]
        if tensor.dim() == 2:
            tensor = tensor[None]
        size = tensor.shape[0]
        if size == 1:
            part = tensor
        elif size % self.batch == 0:
            n = size // self.batch
            part = tensor[self.sample * n : (self.sample + 1) * n]
        else:
            raise Unsupported(f"its first axis has {size} entries, which is no multiple of the batch of {self.batch}")
        return part.reshape(1, -1, *part.shape[-2:])

    def column(self, size: int) -> int:
        """Which entry of a batch axis of this size is the sample's (the first, where it has several)."""
        if size == 1:
            return 0
        if size % self.batch:
            raise Unsupported(f"its batch axis has {size} entries, which is no multiple of the batch of {self.batch}")
        return self.sample * (size // self.batch)

    def fold_mask(self, mask: Tensor, shape: tuple[int, ...]) -> Tensor:
        """(1, a or 1, q or 1, k) the sample's part of a mask that broadcasts to `shape` (b, …, q, k)."""
        mask = mask[(None,) * (len(shape) - mask.dim())]
        leading = mask.shape[:-2]
        if all(n == 1 for n in leading):
            return mask.reshape(1, 1, *mask.shape[-2:])
        return self.fold(mask.expand(*shape[:-2], *mask.shape[-2:]))


def attend(
    looked: Looked,
    place: str,
    module: str,
    query: Tensor,
    key: Tensor,
    *,
    scale: float | None = None,
    causal: bool = False,
    mask: Tensor | None = None,
    cross: bool | None = None,
    note: str = "",
    source: Tensor | None = None,
) -> Attention:
    """An Attention from folded (1, a, q, d) queries and keys and a folded mask (True = may look, or additive).

    Rows that are padding of the sample are cut off, and so are keys that none of the rest may look at.
    """
    q = query.shape[-2]
    triangular, mask = (False, None) if mask is None else _settle(looked, mask, source)
    causal = causal or triangular
    if cross is None:
        cross = q != key.shape[-2] or any(word in place.lower() for word in CROSS_NAMES)
    steps = q in (looked.padded, looked.length) and not looked.over_answer(place)
    if steps and looked.length < q:
        query, key, mask = _without_padding(looked, query, key, mask, causal=causal, cross=cross)
    queries_from = "step" if steps else "position"
    return Attention(
        place=place, module=module, query=_copy(query), key=_copy(_match_heads(query, key)),
        scale=1.0 / math.sqrt(max(1, query.shape[-1])) if scale is None else float(scale),
        causal=causal, mask=mask, keys_from="source step" if cross else queries_from, kept=looked.sample,
        queries_from=queries_from, note=note, called_with=q,
    )  # fmt: skip


def _without_padding(
    looked: Looked, query: Tensor, key: Tensor, mask: Tensor | None, *, causal: bool, cross: bool
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Queries, keys and mask without the rows that are padding, and without keys that no other row may look at."""
    real = looked.length
    query = query[..., :real, :]
    mask = mask if mask is None or mask.shape[-2] == 1 else mask[..., :real, :]
    if not cross and key.shape[-2] == looked.padded and _unreached(mask, causal, real):
        key = key[..., :real, :]
        mask = None if mask is None else mask[..., :real]
    return query, key, mask


def from_weights(looked: Looked, place: str, module: str, weights: Tensor) -> Attention:
    """An Attention from weights (1, a, q, k) that the model computed itself; keys of weight 0 count as forbidden."""
    q, k = weights.shape[-2:]
    cross = q != k or any(word in place.lower() for word in CROSS_NAMES)
    steps = q in (looked.padded, looked.length) and not looked.over_answer(place)
    if steps and looked.length < q:
        weights = weights[..., : looked.length, :]
        if not cross and not bool(weights[..., looked.length :].any()):
            weights = weights[..., : looked.length]
    queries_from = "step" if steps else "position"
    nothing = weights.new_zeros(1, weights.shape[1], 0, 0)
    return Attention(
        place, module, nothing, nothing, 1.0, weights=weights, kept=looked.sample, queries_from=queries_from,
        keys_from="source step" if cross else queries_from,
        note="computed by the model itself; keys of weight 0 count as masked", called_with=q,
    )  # fmt: skip


def of_nested(looked: Looked, seen: Attention) -> Attention:
    """The Attention of a call with nested tensors, which hold no padding: they were made of padded ones."""
    if seen.called_with == looked.length:
        seen.called_with = looked.padded
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
    value = _match_heads(attention.query, value)[0]
    heads = torch.bmm(block.weights, value.to(block.weights.dtype)).transpose(0, 1)
    ours = project(heads, rows)[keep]
    theirs = expected(rows)[keep].to(ours.dtype)
    error = (ours - theirs).abs()
    error = error[~ours.isnan()]  # NaN values under a zero weight reach us and need not reach a blocked kernel
    largest = float(error.max()) if error.numel() else 0.0
    size = max(float(theirs.nan_to_num().abs().max()), float(heads[keep].nan_to_num().abs().max()))
    eps = max(torch.finfo(value.dtype).eps, torch.finfo(ours.dtype).eps)
    return Check(largest, eps * (16.0 + 4.0 * _largest_logit(block)) * max(size, 1e-6))


def _largest_logit(block: RowBlock) -> float:
    assert block.scores is not None
    return float(torch.where(block.scores > FORBIDDEN / 2, block.scores, 0.0).nan_to_num().abs().max())


def picked_rows(queries: int) -> list[int]:
    """A few rows spread over the map, first and last included."""
    return sorted({round(n * (queries - 1) / (CHECKED_ROWS - 1)) for n in range(CHECKED_ROWS)})


def merge_single_rows(calls: list[Attention]) -> list[Attention]:
    """Attentions of one row each, made by one module in a loop, as one map whose rows are the calls.

    A decoder that looks at its source once a step, or a cache of keys that grows by one. Others are left alone.
    """
    shapes = [Rows(call, call.kept or 0) for call in calls]
    if len(calls) < 2 or any(rows.queries != 1 or rows.heads != shapes[0].heads for rows in shapes):
        return calls
    lengths = [rows.keys for rows in shapes]
    growing = all(b == a + 1 for a, b in itertools.pairwise(lengths))
    if not growing and len(set(lengths)) > 1:
        return calls
    longest = max(lengths)
    weights = torch.cat([_padded(rows.block(0, 1).full(), longest) for rows in shapes], dim=1)
    mask = torch.cat([_padded(rows.allowed(0, 1), longest) for rows in shapes], dim=1)
    first = calls[0]
    note = "; ".join(filter(None, (first.note, f"one row of each of {len(calls)} calls")))
    failed = [call.check for call in calls if call.check is not None and not call.check.passed]
    square = growing and lengths[0] == 1
    domain = "step" if square else "position"
    return [
        replace(first, weights=weights[None], mask=mask[None], note=note, queries_from=domain,
                keys_from=domain if square else first.keys_from,
                check=failed[0] if failed else first.check, called_with=len(calls))
    ]  # fmt: skip


def _padded(tensor: Tensor, keys: int) -> Tensor:
    return torch.nn.functional.pad(tensor, (0, keys - tensor.shape[-1]))


def _copy(tensor: Tensor) -> Tensor:
    return tensor.detach().clone(memory_format=torch.contiguous_format)


def _match_heads(query: Tensor, key: Tensor) -> Tensor:
    """Keys repeated for grouped heads: head a uses group a // (heads per group)."""
    groups, heads = key.shape[1], query.shape[1]
    return key if groups == heads else key.repeat_interleave(heads // groups, dim=1)


def _unreached(mask: Tensor | None, causal: bool, length: int) -> bool:
    """True when no row may look at a key from `length` on."""
    if causal:
        return True
    if mask is None or mask.shape[-1] == 1:
        return False
    beyond = mask[..., length:]
    return not bool((beyond if beyond.dtype == torch.bool else beyond > MASKED).any())


def _settle(looked: Looked, mask: Tensor, source: Tensor | None) -> tuple[bool, Tensor | None]:
    """(is it the causal triangle, the mask as kept): boolean where it only forbids, None where it allows all."""
    if source is None:
        return _settled(mask.detach())
    found = looked.masks.get(id(source))
    version = _version(source)
    if found is not None and found[0] is source and found[1:3] == (version, tuple(mask.shape)):
        return found[3], found[4]
    causal, kept = _settled(mask.detach())
    if version >= 0:
        while len(looked.masks) >= 4:
            looked.masks.pop(next(iter(looked.masks)))
        looked.masks[id(source)] = (source, version, tuple(mask.shape), causal, kept)
    return causal, kept


def _settled(mask: Tensor) -> tuple[bool, Tensor | None]:
    if mask.dtype != torch.bool:
        forbidden = mask <= MASKED
        if not bool(((mask == 0) | forbidden).all()):
            return False, mask.clone()
        mask = ~forbidden
    if bool(mask.all()):
        return False, None
    q, k = mask.shape[-2:]
    triangle = torch.ones(q, k, dtype=torch.bool, device=mask.device).tril()
    if q > 1 and bool((mask == triangle).all()):
        return True, None
    return False, mask.clone()


def _version(tensor: Tensor) -> int:
    """How often a tensor was written to; -1 where torch does not count (inference mode)."""
    return -1 if tensor.is_inference() else tensor._version
