"""Causal transformers that compute their attention in one way each, and the same model written out in float64.

The reference shares the weights of the models and no code of the package: it keeps every value of the run, with its
graph, so that any derivative can be taken by autograd.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from listed import Listed
from torch import Tensor, nn

from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform

WIDTH, HEADS, VOCABULARY, STEPS, LAYERS = 8, 2, 7, 6, 2
WAYS = ("module", "fused", "grouped", "written")


class Own(nn.Module):
    """Attention with its own projections; `way` says what computes it."""

    def __init__(self, way: str) -> None:
        super().__init__()
        groups = 1 if way == "grouped" else HEADS
        self.way, self.groups, self.heads = way, groups, HEADS
        self.q = nn.Linear(WIDTH, WIDTH)
        self.k = nn.Linear(WIDTH, groups * WIDTH // HEADS)
        self.v = nn.Linear(WIDTH, groups * WIDTH // HEADS)
        self.o = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        b, t, _ = x.shape
        q = self.q(x).view(b, t, HEADS, -1).transpose(1, 2)
        k, v = (part(x).view(b, t, self.groups, -1).transpose(1, 2) for part in (self.k, self.v))
        if self.way == "written":
            scores = q @ k.mT / math.sqrt(q.shape[-1])
            later = torch.ones(t, t, dtype=torch.bool).triu(1)
            z = scores.masked_fill(later, -math.inf).softmax(-1) @ v
        else:
            z = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=self.groups != HEADS)
        out: Tensor = self.o(z.transpose(1, 2).reshape(b, t, -1))
        return out


class Block(nn.Module):
    """x + attention(norm(x)), then + layers(norm(…))."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True) if way == "module" else Own(way)
        self.layers = nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        y = self.first(x)
        if isinstance(self.attention, nn.MultiheadAttention):
            mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1], dtype=x.dtype)
            x = x + self.attention(y, y, y, attn_mask=mask, need_weights=False)[0]
        else:
            x = x + self.attention(y)
        out: Tensor = x + self.layers(self.second(x))
        return out


class Transformer(nn.Module):
    """ids (b, t) → logits (b, t, v)."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.embedding, self.positions = nn.Embedding(VOCABULARY, WIDTH), nn.Parameter(torch.randn(64, WIDTH))
        self.blocks = nn.ModuleList(Block(way) for _ in range(LAYERS))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embedding(ids) + self.positions[: ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        out: Tensor = self.head(self.norm(x))
        return out


def made(way: str, seed: int = 0) -> Transformer:
    """Random weights, larger than at initialisation, so that heads differ; float64."""
    torch.manual_seed(seed)
    model = Transformer(way).double().eval()
    with torch.no_grad():
        for value in model.parameters():
            value.copy_(torch.randn_like(value) * (0.6 if value.dim() > 1 else 0.2))
    for norm in (one for one in model.modules() if isinstance(one, nn.LayerNorm)):
        nn.init.uniform_(norm.weight, 0.5, 1.5)
    return model


def loss(logits: Tensor, batch: Batch) -> Tensor:
    """−ln p of the next token; the last step carries none."""
    each = F.cross_entropy(logits[:, :-1].transpose(1, 2), batch.inputs[:, 1:], reduction="none")
    return F.pad(each, (0, 1), value=torch.nan)


def batch() -> Batch:
    """Two sequences, of which the second is shown."""
    ids = torch.randint(0, VOCABULARY, (2, STEPS), generator=torch.Generator().manual_seed(3))
    return Batch(ids, torch.tensor([STEPS, STEPS]), look_at=1)


def run(model: nn.Module, *requests: str, given: Batch | None = None) -> Listed:
    """What some quantities write of a model on the batch."""
    sink = Listed()
    subject = Subject(model=model, kind="tokens", vocabulary="abcdefg", loss=loss, next_token=True)
    perform(subject, given or batch(), sink, RunOptions(only=requests))
    return sink


@dataclass
class Reference:
    """The run on the shown sequence, written out. Lists have one entry a layer.

    maps: (a, t, t); values: (a, t, d); sums: (a, t, d) z; projections: (a, d, e) W_O; attended: (t, e) what the
    attention adds; stream: (t, e) the residual stream before the first layer and behind each.
    """

    maps: list[Tensor] = field(default_factory=list)
    scores: list[Tensor] = field(default_factory=list)
    queries: list[Tensor] = field(default_factory=list)
    keys: list[Tensor] = field(default_factory=list)
    values: list[Tensor] = field(default_factory=list)
    sums: list[Tensor] = field(default_factory=list)
    projections: list[Tensor] = field(default_factory=list)
    attended: list[Tensor] = field(default_factory=list)
    stream: list[Tensor] = field(default_factory=list)
    logits: Tensor = field(default_factory=lambda: torch.zeros(0))
    losses: Tensor = field(default_factory=lambda: torch.zeros(0))


Change = Callable[[int, Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]
"""(layer, maps, values, z) → (maps, z) with which the run goes on."""


def reference(model: Transformer, ids: Tensor, change: Change | None = None) -> Reference:
    """Everything of a run on ids (t,), in float64, by matrix products and a softmax."""
    out = Reference()
    x = (model.embedding.weight[ids] + model.positions[: len(ids)]).detach().clone().requires_grad_()
    out.stream.append(x)
    for layer, block in enumerate(model.blocks):
        assert isinstance(block, Block)
        x = _block(out, layer, block, x, change)
        out.stream.append(x)
    out.logits = _norm(model.norm, x) @ model.head.weight.T + model.head.bias
    log_p = out.logits[:-1] - out.logits[:-1].exp().sum(-1, keepdim=True).log()
    out.losses = -log_p[torch.arange(len(ids) - 1), ids[1:]]
    return out


def _block(out: Reference, layer: int, block: Block, x: Tensor, change: Change | None) -> Tensor:
    y = _norm(block.first, x)
    q, k, v = (_heads(one) for one in _projected(block, y))
    k, v = (one if len(one) == HEADS else one.repeat(HEADS, 1, 1) for one in (k, v))
    later = torch.ones(len(x), len(x), dtype=torch.bool).triu(1)
    scores = (q @ k.mT / math.sqrt(q.shape[-1])).masked_fill(later, -math.inf)
    powers = (scores - scores.amax(-1, keepdim=True)).exp()
    maps = powers / powers.sum(-1, keepdim=True)
    sums = maps @ v
    if change is not None:
        maps, sums = change(layer, maps, v, sums)
    last = block.attention.out_proj if isinstance(block.attention, nn.MultiheadAttention) else block.attention.o
    projection = last.weight.T.unflatten(0, (HEADS, -1))
    attended = sum(sums[a] @ projection[a] for a in range(HEADS)) + last.bias
    for name, value in (("maps", maps), ("scores", scores), ("values", v), ("sums", sums), ("queries", q), ("keys", k),
                        ("projections", projection), ("attended", attended)):  # fmt: skip
        getattr(out, name).append(value)
    x = x + attended
    inner, outer = block.layers[0], block.layers[2]
    assert isinstance(inner, nn.Linear) and isinstance(outer, nn.Linear)
    z = _norm(block.second, x) @ inner.weight.T + inner.bias
    z = 0.5 * z * (1 + torch.erf(z / math.sqrt(2)))
    return x + z @ outer.weight.T + outer.bias


def _projected(block: Block, y: Tensor) -> list[Tensor]:
    own = block.attention
    if isinstance(own, nn.MultiheadAttention):
        return [y @ w.T + b for w, b in zip(own.in_proj_weight.chunk(3), own.in_proj_bias.chunk(3), strict=True)]
    assert isinstance(own, Own)
    return [y @ one.weight.T + one.bias for one in (own.q, own.k, own.v)]


def _heads(tensor: Tensor) -> Tensor:
    return tensor.unflatten(-1, (-1, WIDTH // HEADS)).transpose(0, 1)


def _norm(norm: nn.Module, x: Tensor) -> Tensor:
    assert isinstance(norm, nn.LayerNorm)
    mean = x.mean(-1, keepdim=True)
    spread = ((x - mean) ** 2).mean(-1, keepdim=True)
    return (x - mean) / (spread + norm.eps).sqrt() * norm.weight + norm.bias


def place(layer: int) -> str:
    """Of the attention of a layer."""
    return f"blocks.{layer}.attention"
