"""What heads add to a score directly, in layers that scale, norm or gate it on the way.

The known values are autograd's in float64: the same model with every scale, gate and other part held (detached), whose
scores are linear in what the attention gives.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import inspector
from inspector.engine.model.subject import Subject

V, D, HEADS, EACH, IDS = 9, 8, 2, 4, [1, 2, 3, 4, 1, 2, 5]
WAYS = (
    "parallel", "layer scale", "scale module", "number", "one gate", "gate", "highway", "sandwich",
    "sandwich of rms", "post-norm", "scaled stream", "minus",
)  # fmt: skip


class Rms(nn.Module):
    """Zhang & Sennrich 2019; its scale can be held."""

    holding = False

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(D) + 0.5)

    def forward(self, x: Tensor) -> Tensor:
        scale = torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6)
        return self.weight * (x * (scale.detach() if self.holding else scale))


class Norm(nn.LayerNorm):
    """torch's layer norm; its scale can be held."""

    holding = False

    def forward(self, input: Tensor) -> Tensor:
        if not self.holding:
            return super().forward(input)
        scale = (input.var(-1, unbiased=False, keepdim=True) + self.eps).sqrt().detach()
        return (input - input.mean(-1, keepdim=True)) / scale * self.weight + self.bias


class Scale(nn.Module):
    """LayerScale (Touvron et al. 2021)."""

    def __init__(self) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.randn(D))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.gamma


class Attention(nn.Module):
    """Causal attention; its result can be one that others' gradients do not go through."""

    holding = False

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(D, 3 * D), nn.Linear(D, D)
        self.heads: Tensor | None = None
        self.moved: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        b, t, _ = x.shape
        q, k, v = (one.view(b, t, HEADS, EACH).transpose(1, 2) for one in self.qkv(x).chunk(3, -1))
        later = torch.ones(t, t, dtype=torch.bool).triu(1)
        z = (q @ k.mT / 2).masked_fill(later, -torch.inf).softmax(-1) @ v
        result: Tensor = self.out(z.transpose(1, 2).reshape(b, t, D))
        if not self.holding:
            return result
        self.heads = torch.einsum("btad,ead->bate", z.transpose(1, 2), self.out.weight.view(D, HEADS, EACH)).detach()
        self.moved = torch.zeros_like(result, requires_grad=True)
        return result.detach() + self.moved


class Layer(nn.Module):
    """One layer in one of the ways."""

    holding = False

    def __init__(self, way: str) -> None:
        super().__init__()
        norm = Rms if way == "sandwich of rms" else lambda: Norm(D)
        self.way, self.attention = way, Attention()
        self.n1, self.n2, self.n3, self.n4 = norm(), norm(), norm(), norm()
        self.mlp = nn.Sequential(nn.Linear(D, 12), nn.GELU(), nn.Linear(12, D))
        self.gate, self.by, self.scale = nn.Linear(D, D), Scale(), nn.Parameter(torch.tensor(0.7))

    def held(self, x: Tensor) -> Tensor:
        return x.detach() if self.holding else x

    def feed(self, x: Tensor) -> Tensor:
        return self.held(self.mlp(x))

    def forward(self, x: Tensor) -> Tensor:
        way, n1 = self.way, self.n1(x)
        if way == "post-norm":
            x = self.n1(x + self.attention(x))
            return self.n2(x + self.feed(x))
        a = self.attention(n1)
        if way == "parallel":
            return self.feed(n1) + a + x
        if way == "no stream":
            return self.feed(x + a)
        if way == "squared":
            return x + a * a
        if way.startswith("sandwich"):
            x = x + self.n2(a)
            return x + self.n4(self.feed(self.n3(x)))
        gate = self.held(torch.sigmoid(self.gate(n1)))
        if way == "highway":
            return x * (1 - gate) + gate * a + self.feed(n1)
        x = {
            "layer scale": lambda: x + self.by.gamma * a,
            "scale module": lambda: x + self.by(a),
            "number": lambda: torch.add(x, a / 3, alpha=0.5),
            "one gate": lambda: x + torch.tanh(self.scale) * a,
            "gate": lambda: x + gate * a,
            "scaled stream": lambda: 0.8 * x + a,
            "minus": lambda: x - (-a),
        }[way]()
        return x + self.by(self.feed(self.n2(x)))


class Speaking(nn.Module):
    """Two layers between an embedding and a head."""

    def __init__(self, way: str) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.embedding, self.positions = nn.Embedding(V, D), nn.Parameter(torch.randn(len(IDS), D))
        self.layers = nn.ModuleList(Layer(way) for _ in range(2))
        self.norm, self.head = Norm(D), nn.Linear(D, V)
        for one in self.modules():  # with scales of 1 alone a direction that is centred once stays so
            if isinstance(one, Norm):
                nn.init.uniform_(one.weight, 0.5, 1.5)
                nn.init.normal_(one.bias)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embedding(ids) + self.positions
        for layer in self.layers:
            x = layer(x)
        scores: Tensor = self.head(self.norm(x))
        return scores


def shown(model: nn.Module) -> Any:
    subject = Subject(model=model.eval(), next_token=True, vocabulary=list("abcdefghi"))
    return inspector.run(subject, IDS, only=("attention/direct_logit",))


@pytest.mark.parametrize("way", WAYS)
def test_what_heads_add_is_what_the_held_model_is_linear_in(way: str) -> None:
    model = Speaking(way)
    twin: Any = copy.deepcopy(model).double()
    for part in twin.modules():
        if hasattr(part, "holding"):
            part.holding = True
    scores = twin(torch.tensor([IDS]))[0]
    scores.max(-1).values.sum().backward()
    with shown(model) as capture:
        for number, layer in enumerate(twin.layers):
            made = layer.attention
            known = (made.heads * made.moved.grad[:, None]).sum(-1)[0].numpy()
            found = capture.array(f"layers.{number}.attention:attention/direct_logit")
            assert found.shape == (HEADS, len(IDS)) and abs(known).max() > 1e-3
            np.testing.assert_allclose(found, known, rtol=0, atol=2e-5 * max(1.0, abs(known).max()))


@pytest.mark.parametrize(
    ("way", "why"), [("no stream", "does not return what it is given"), ("squared", "multiplied with something")]
)
def test_what_is_not_linear_is_refused(way: str, why: str) -> None:
    with shown(Speaking(way)) as capture:
        refused = {one.channel: one.reason for one in capture.refusals}
        assert not any("direct_logit" in name for name in capture.channels)
        assert any(why in reason for name, reason in refused.items() if name.startswith("layers.0")), refused
