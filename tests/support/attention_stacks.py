"""Stacks of attention in which one thing at a time is done otherwise, for tests of what is read off their graphs."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

WIDTH, HEADS, ENTRIES = 16, 2, 8


@dataclass(frozen=True, slots=True)
class Made:
    """`scale`: of q·k, NaN for that of torch's own function; `turns`: by rotary angles, written as `style`; `scores`:
    what is done with them before the mask; `adds`: (attention, layer behind) whether what was given is added."""

    scale: float = ENTRIES**-0.5
    turns: int = 0
    style: str = "halves"
    scores: str = ""
    adds: tuple[bool, bool] = (True, True)
    fused: bool = False
    normalised: bool = False
    angle: float = 1.0
    axis: int = -1


def turned(x: Tensor, style: str, angle: float = 1.0) -> Tensor:
    """(…, t, d) by t · 10000^(−2i/d) times `angle`, as three families of models write it."""
    d = x.shape[-1]
    angles = angle * torch.arange(x.shape[-2])[:, None] * 10000 ** (-torch.arange(0, d, 2) / d)
    if style == "halves":
        cosine, sine = (torch.cat((one, one), -1) for one in (angles.cos(), angles.sin()))
        a, b = x.chunk(2, -1)
        return x * cosine + torch.cat((-b, a), -1) * sine
    if style == "pairs":
        a, b = x[..., ::2], x[..., 1::2]
        both = (a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos())
        return torch.stack(both, -1).flatten(-2)
    pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * torch.polar(torch.ones_like(angles), angles)).flatten(-2)


class Layer(nn.Module):
    """(b, t, 16) → (b, t, 16)."""

    def __init__(self, made: Made) -> None:
        super().__init__()
        self.made, self.inward, self.outward = made, nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.behind = nn.Sequential(nn.Linear(WIDTH, 32), nn.GELU(), nn.Linear(32, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        mixed = self.outward(self._mixed(self.first(x)))
        x = x + mixed if self.made.adds[0] else mixed
        found: Tensor = self.behind(self.second(x))
        return x + found if self.made.adds[1] else found

    def _mixed(self, x: Tensor) -> Tensor:
        made, (b, t, _) = self.made, x.shape
        q, k, v = (one.view(b, t, HEADS, -1).transpose(1, 2) for one in self.inward(x).chunk(3, -1))
        for n in range(made.turns):
            q, k = (turned(one, made.style, made.angle**n) for one in (q, k))
        if made.normalised:
            q, k = F.normalize(q, dim=-1), F.normalize(k, dim=-1)
        if made.fused:
            scale = None if math.isnan(made.scale) else made.scale
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=scale)
        else:
            scores = q @ k.mT * made.scale
            scores = {
                "": lambda: scores,
                "relu": scores.relu,
                "tanh": scores.tanh,
                "clamp": lambda: scores.clamp(min=0),
            }[made.scores]()
            hidden = torch.ones(t, t, dtype=torch.bool).triu(1)
            y = F.dropout(scores.masked_fill(hidden, -torch.inf).softmax(made.axis), 0.1) @ v
        return y.transpose(1, 2).reshape(b, t, WIDTH)


def stack(made: Made = Made(), layers: int = 4) -> nn.Sequential:
    """(b, t, 3) → (b, t, 5)."""
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(3, WIDTH), *(Layer(made) for _ in range(layers)), nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 5)
    )
