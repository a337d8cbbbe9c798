"""flex_attention: its scores are any function of query·key and positions; its maps are computed whole, as it does."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from inspector.engine.attention.calls import from_weights
from inspector.engine.attention.selected_sample import SelectedSample
from inspector.engine.cells.check import Check
from inspector.engine.errors import Unsupported
from inspector.engine.trace.heads import Heads, PassedOn, edge_of
from inspector.engine.trace.trace import Attention

_NAMES = (
    "query", "key", "value", "score_mod", "block_mask", "scale", "kernel_options", "score_mod_other_buffers",
    "mask_mod_other_buffers",
)  # fmt: skip
TOLERANCE = 64.0
MODULE = "torch._higher_order_ops.flex_attention"


def operation() -> Any:
    """What flex_attention calls, where it was imported; importing it takes a second."""
    return getattr(sys.modules.get(MODULE), "flex_attention", None)


def from_flex(
    selected: SelectedSample,
    place: str,
    module: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    out: Any,
    source: str | None = None,
) -> Attention:
    """The attention of one call, (b, a, q, d) queries and (b, groups, k, d) keys, and what it returned.

    Raises Unsupported where the batch is merged with other axes.
    """
    given = dict(zip(_NAMES, args, strict=False)) | kwargs
    query, key, value = (given[name].detach() for name in ("query", "key", "value"))
    if query.shape[0] not in (1, selected.batch):
        raise Unsupported(
            f"flex_attention was given {query.shape[0]} entries for a batch of {selected.batch} sequences"
        )
    at = selected.sample if query.shape[0] > 1 else 0
    q, k, v = (_wide(one[at if len(one) > 1 else 0]) for one in (query, key, value))
    k, v = (one.repeat_interleave(len(q) // len(one), dim=0) for one in (k, v))
    scores = q @ k.mT * given["scale"]
    sample = torch.tensor(at, device=q.device)
    more, masks = (given.get(f"{name}_other_buffers", ()) for name in ("score_mod", "mask_mod"))  # where it was traced
    score_mod, mask_mod = given["score_mod"], given["block_mask"][-1]
    scores = _everywhere(lambda *given: score_mod(*given, *more), scores, sample).to(q.dtype)
    allowed = _everywhere(lambda _score, *where: mask_mod(*where, *masks), scores, sample).bool()
    masked = ~allowed | (scores == -torch.inf)
    weights = torch.softmax(scores.masked_fill(masked, -torch.inf), -1)[None]
    seen = from_weights(
        selected, place, module, weights, "scores and masks of flex_attention computed again",
        masked=masked[None] if bool(masked.any()) else None, source=source,
    )  # fmt: skip
    seen.highest = scores.masked_fill(masked, -torch.inf).amax(-1)[None]
    if selected.passing_on:
        call = PassedOn(v, weights.shape[2], edge_of(out[0]), lambda gradient: gradient[at])
        seen.heads = Heads([call])
    seen.check = _check(weights[0].nan_to_num(), v, out[0].detach()[at], scores, masked)
    return seen


def _everywhere(function: Callable[..., Any], scores: Tensor, sample: Tensor) -> Tensor:
    """A function of (score, b, h, q, k) at every head, query and key."""
    heads, queries, keys = (torch.arange(size, device=scores.device) for size in scores.shape)
    for dims in ((0, None, None, None, 0), (0, None, None, 0, None), (0, None, 0, None, None)):
        function = torch.vmap(function, in_dims=dims)
    result = function(scores, sample, heads, queries, keys)
    assert isinstance(result, Tensor)
    return result


def _check(weights: Tensor, value: Tensor, out: Tensor, scores: Tensor, masked: Tensor) -> Check:
    """All rows of weights · values against what the call returned."""
    ours = torch.bmm(weights, value)
    largest = float(scores.masked_fill(masked, 0.0).nan_to_num().abs().max()) if scores.numel() else 0.0
    eps = max(torch.finfo(out.dtype).eps, torch.finfo(ours.dtype).eps)
    size = max(float(value.nan_to_num().abs().max()), 1e-6)
    return Check(float((ours - out.to(ours.dtype)).abs().max()), eps * (TOLERANCE + 4.0 * largest) * size)


def _wide(tensor: Tensor) -> Tensor:
    return tensor if tensor.dtype == torch.float64 else tensor.float()
