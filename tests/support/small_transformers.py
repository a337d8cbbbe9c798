"""Small transformers of one's own, in the styles in which people write them; each attention tells what it multiplied."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

WIDTH, HEADS, EACH, CLASSES, LAYERS = 16, 4, 4, 11, 3


@dataclass(frozen=True, slots=True)
class Style:
    """How it is written. order: where the norms are (pre, post, or one for parallel attention and MLP)."""

    qkv: str = "rows"
    keys: int = HEADS
    order: str = "pre"
    rms: bool = False
    fused: bool = False
    rotary: bool = False
    slopes: bool = False
    shared: bool = False
    sigmoid: bool = False
    finite_mask: bool = False
    both_ways: bool = False


class RootMeanSquare(nn.Module):
    """Zhang & Sennrich 2019."""

    def __init__(self) -> None:
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(WIDTH)), 1e-6

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.eps) * self.weight


def rotated(x: Tensor) -> Tensor:
    """Su et al. 2021, pairs of neighbours."""
    steps, width = x.shape[-2:]
    angle = torch.arange(steps, dtype=x.dtype)[:, None] / 100 ** (torch.arange(0, width, 2, dtype=x.dtype) / width)
    first, second, cos, sin = x[..., 0::2], x[..., 1::2], angle.cos(), angle.sin()
    return torch.stack([first * cos - second * sin, first * sin + second * cos], -1).flatten(-2)


@dataclass(slots=True)
class Seen:
    """What attentions used, in the order in which they ran: weights (1, h, t, t), values (1, h, t, d)."""

    weights: list[Tensor] = field(default_factory=list)
    values: list[Tensor] = field(default_factory=list)
    without: int | None = None
    """The step whose values count as 0."""


class Attention(nn.Module):
    """Written out, or by the fused function; written out in any case where `seen` is set."""

    def __init__(self, style: Style) -> None:
        super().__init__()
        self.style, bias = style, not style.rms
        self.seen: Seen | None = None
        if style.qkv == "apart":
            self.q, self.k, self.v = (nn.Linear(WIDTH, n * EACH, bias) for n in (HEADS, style.keys, style.keys))
        else:
            self.all = nn.Linear(WIDTH, 3 * WIDTH, bias)
        self.o = nn.Linear(WIDTH, WIDTH, bias)

    def projected(self, x: Tensor) -> list[Tensor]:
        """Queries, keys and values, (b, h, t, d) each."""
        size = x.shape[:2]
        if self.style.qkv == "apart":
            found = [one(x).view(*size, -1, EACH).transpose(1, 2) for one in (self.q, self.k, self.v)]
            return [one.repeat_interleave(HEADS // one.shape[1], 1) for one in found]
        if self.style.qkv == "chunks":
            return [one.view(*size, HEADS, EACH).transpose(1, 2) for one in self.all(x).chunk(3, -1)]
        if self.style.qkv == "by head":
            return list(self.all(x).view(*size, HEADS, 3, EACH).permute(3, 0, 2, 1, 4))
        return list(self.all(x).view(*size, 3, HEADS, EACH).permute(2, 0, 3, 1, 4))

    def weights(self, q: Tensor, k: Tensor) -> Tensor:
        """(b, h, t, t)."""
        style, steps = self.style, q.shape[-2]
        scores = q @ k.transpose(-1, -2) / math.sqrt(EACH)
        later = torch.ones(steps, steps, dtype=torch.bool).triu(1) & (not style.both_ways)
        if style.slopes:  # Press et al. 2022
            apart = (torch.arange(steps)[:, None] - torch.arange(steps)).abs()
            scores = scores - torch.tensor([0.5, 0.25, 0.125, 0.0625], dtype=q.dtype)[:, None, None] * apart
        if style.sigmoid:
            return torch.sigmoid(scores - 2).masked_fill(later, 0)
        return (scores + later * -1e9 if style.finite_mask else scores.masked_fill(later, -math.inf)).softmax(-1)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.projected(x)
        if self.style.rotary:
            q, k = rotated(q), rotated(k)
        if self.style.fused and self.seen is None:
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=not self.style.both_ways)
        else:
            mixed = self.told(self.weights(q, k), v)
        return self.o(mixed.transpose(1, 2).reshape(x.shape))

    def told(self, a: Tensor, v: Tensor) -> Tensor:
        """The weighted sum of the values, and what it was made of."""
        if self.seen is not None and self.seen.without is not None:
            v = v.index_fill(2, torch.tensor([self.seen.without]), 0.0)
        elif self.seen is not None:
            a.retain_grad()
            self.seen.weights.append(a)
            self.seen.values.append(v.detach())
        return a @ v


class Block(nn.Module):
    """Attention and MLP around a residual stream."""

    def __init__(self, style: Style) -> None:
        super().__init__()
        self.order, norm = style.order, (RootMeanSquare if style.rms else lambda: nn.LayerNorm(WIDTH))
        self.n1, self.n2, self.attention = norm(), norm(), Attention(style)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 64), nn.GELU(), nn.Linear(64, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        if self.order == "parallel":
            h = self.n1(x)
            return x + self.attention(h) + self.mlp(h)
        if self.order == "post":
            x = self.n1(x + self.attention(x))
            return self.n2(x + self.mlp(x))
        x = x + self.attention(self.n1(x))
        return x + self.mlp(self.n2(x))


class Transformer(nn.Module):
    """Ids (b, t) to scores (b, t, CLASSES)."""

    def __init__(self, style: Style) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.style = style
        self.embed, self.places = nn.Embedding(CLASSES, WIDTH), nn.Embedding(64, WIDTH)
        blocks: list[Any] = [Block(style)] * LAYERS if style.shared else [Block(style) for _ in range(LAYERS)]
        self.blocks = nn.ModuleList(blocks)
        self.norm: nn.Module = RootMeanSquare() if style.rms else nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, CLASSES, bias=False)
        for parameter in self.parameters():
            nn.init.normal_(parameter, 1.0 if parameter.dim() == 1 else 0.0, 0.3 if parameter.dim() == 1 else 0.5)

    def into(self, ids: Tensor) -> Tensor:
        """The stream before the first block."""
        x = self.embed(ids)
        return x if self.style.rotary else x + self.places(torch.arange(ids.shape[1]))

    def forward(self, ids: Tensor) -> Tensor:
        x = self.into(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))
