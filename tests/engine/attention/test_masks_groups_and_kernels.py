"""Every mask and bias with every grouping of heads by every kernel, against the softmax in float64."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from written_attention import SAMPLE, B, T, chain, inputs, plain_softmax

pytestmark = pytest.mark.usefixtures("one_thread")
HEADS, EACH = 4, 4
DRAWS = torch.Generator().manual_seed(8)
AWAY = torch.arange(T)[:, None] - torch.arange(T)
EYE, CAUSAL = torch.eye(T, dtype=torch.bool), AWAY >= 0
SLOPES = 2.0 ** -torch.arange(1.0, HEADS + 1)[:, None, None]
PADDED = torch.ones(B, 1, 1, T, dtype=torch.bool)
PADDED[0, ..., 4:], PADDED[SAMPLE, ..., [0, T - 1]] = False, False


def forbidden(may: Tensor, by: float) -> Tensor:
    return torch.zeros(may.shape, dtype=torch.float64).masked_fill(~may, by)


MASKS: dict[str, tuple[Tensor | None, Tensor | None]] = {
    "none": (None, None),
    "causal": (CAUSAL[None, None], None),
    "window": ((CAUSAL & (AWAY <= 2))[None, None], None),
    "for each head": ((torch.rand(1, HEADS, T, T, generator=DRAWS) > 0.5) | EYE, None),
    "padding": (PADDED, None),
    "padding and causal": ((PADDED | EYE) & CAUSAL, None),
    "bias": (None, torch.randn(1, 1, T, T, generator=DRAWS, dtype=torch.float64)),
    "bias for each head": (None, torch.randn(1, HEADS, T, T, generator=DRAWS, dtype=torch.float64)),
    "slopes and causal": (CAUSAL[None, None], (-SLOPES * AWAY.abs()).double()[None]),
    "finite": (CAUSAL[None, None], forbidden(CAUSAL, -1e9)[None, None]),
}
"""Name → (may attend, added to the scores), which broadcast to (b, a, t, t)."""


def additive(may: Tensor | None, bias: Tensor | None) -> Tensor | None:
    """Both as one tensor that is added; a boolean mask alone stays one."""
    if may is None or bias is None:
        return may if bias is None else bias
    return bias if bool((bias <= -1e9).any()) else bias.masked_fill(~may, -math.inf)


def spread(keys: Tensor) -> Tensor:
    return keys.repeat_interleave(HEADS // keys.shape[1], 1)


def function(q: Tensor, k: Tensor, v: Tensor, may: Tensor | None, bias: Tensor | None) -> Tensor:
    return F.scaled_dot_product_attention(
        q, k, v, attn_mask=additive(may, bias), enable_gqa=k.shape[1] != HEADS, scale=0.6
    )


def masked(scores: Tensor, may: Tensor | None, bias: Tensor | None) -> Tensor:
    given = additive(may, bias)
    if given is None:
        return scores
    return scores.masked_fill(~given, -math.inf) if given.dtype == torch.bool else scores + given


def by_hand(q: Tensor, k: Tensor, v: Tensor, may: Tensor | None, bias: Tensor | None) -> Tensor:
    return masked(0.6 * (q @ spread(k).mT), may, bias).softmax(-1) @ spread(v)


def groups_as_an_axis(q: Tensor, k: Tensor, v: Tensor, may: Tensor | None, bias: Tensor | None) -> Tensor:
    """Queries (b, g, n, t, d) of n heads that share keys (b, g, t, d)."""
    queries = q.unflatten(1, (k.shape[1], -1))
    scores = 0.6 * torch.einsum("bgnqd,bgkd->bgnqk", queries, k)
    parts = [one if one is None else one.expand(len(q), HEADS, T, T).unflatten(1, (k.shape[1], -1))
             for one in (may, bias)]  # fmt: skip
    return torch.einsum("bgnqk,bgkd->bgnqd", masked(scores, *parts).softmax(-1), v).flatten(1, 2)


def written_out(q: Tensor, k: Tensor, v: Tensor, may: Tensor | None, bias: Tensor | None) -> Tensor:
    """exp over sum."""
    scores = masked(0.6 * (q @ spread(k).mT), may, bias)
    powers = torch.exp(scores - scores.amax(-1, keepdim=True))
    return (powers / powers.sum(-1, keepdim=True)) @ spread(v)


def flex(q: Tensor, k: Tensor, v: Tensor, may: Tensor | None, bias: Tensor | None) -> Tensor:
    size = (len(q), HEADS, T, T)
    allowed, more = None if may is None else may.expand(size), None if bias is None else bias.float().expand(size)
    blocks = None if allowed is None else create_block_mask(lambda b, h, q, k: allowed[b, h, q, k], *size, device="cpu")
    add: Callable[..., Tensor] | None = None if more is None else lambda s, b, h, q, k: s + more[b, h, q, k]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns that it is not compiled
        found = flex_attention(q, k, v, score_mod=add, block_mask=blocks, scale=0.6, enable_gqa=k.shape[1] != HEADS)
    assert isinstance(found, Tensor)
    return found


class Projected(nn.Module):
    """Queries (b, t, a d), keys and values of as many groups as asked, and a kernel."""

    def __init__(self, kernel: Callable[..., Tensor], groups: int, mask: str) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.sizes = (HEADS * EACH, groups * EACH, groups * EACH)
        self.inner, self.kernel, self.mask = nn.Linear(HEADS * EACH, sum(self.sizes)), kernel, MASKS[mask]

    def forward(self, x: Tensor) -> Tensor:
        parts = (one.unflatten(-1, (-1, EACH)).transpose(1, 2) for one in self.inner(x).split(self.sizes, -1))
        return self.kernel(*parts, *self.mask).transpose(1, 2).flatten(2)


CASES = [(kernel, groups) for kernel in (function, by_hand, groups_as_an_axis, written_out) for groups in (4, 2, 1)]


@pytest.mark.parametrize(("kernel", "groups"), [*CASES, (flex, 2)])
@pytest.mark.parametrize("mask", MASKS)
def test_the_map_is_the_softmax(kernel: Callable[..., Tensor], groups: int, mask: str) -> None:
    dtype = torch.float32 if kernel is flex else torch.float64
    x, model = inputs(d=HEADS * EACH, dtype=dtype), Projected(kernel, groups, mask).to(dtype).eval()
    weight, bias = (one.detach().double() for one in (model.inner.weight, model.inner.bias))
    wide = (x[SAMPLE].double() @ weight.T + bias).unflatten(-1, (-1, EACH)).transpose(0, 1)
    keys = torch.stack([wide[HEADS + head * groups // HEADS] for head in range(HEADS)])
    may, more = (one if one is None else one[min(SAMPLE, len(one) - 1)] for one in MASKS[mask])
    scores = 0.6 * wide[:HEADS] @ keys.mT + (0.0 if more is None else more)
    seen = chain(model, plain_softmax(scores, may), x, place="model", atol=2e-6 if kernel is flex else 1e-9)
    grid = torch.ones(1, T, T, dtype=torch.bool) if may is None else may.expand(-1, T, T)
    rows = [row.nonzero().flatten().tolist() for row in grid.any(0)]
    first, last = seen.sink.array("model:attention/allowed")
    assert (first.tolist(), last.tolist()) == ([row[0] for row in rows], [row[-1] for row in rows])
