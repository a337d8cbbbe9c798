"""W_O that an einsum applies to the heads at once, and largest scores of flex_attention, against loops in float64."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import inspector

T, D, HEADS, EACH = 5, 6, 2, 3
SPELLED = {"heads last": "bqhd,hde->bqe", "heads first": "bhqd,hde->bqe", "weight turned": "bqhd,edh->bqe"}


class Projected(nn.Module):
    def __init__(self, spelled: str) -> None:
        super().__init__()
        self.spelled = spelled
        self.q, self.k, self.v = (nn.Linear(D, D) for _ in range(3))
        shape = (D, EACH, HEADS) if ",edh" in spelled else (HEADS, EACH, D)
        self.o = nn.Parameter(torch.randn(shape))
        self.double()

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (one(x).unflatten(-1, (HEADS, EACH)).transpose(1, 2) for one in (self.q, self.k, self.v))
        sums = torch.softmax(q @ k.mT, -1) @ v
        given = sums if self.spelled.startswith("bh") else sums.transpose(1, 2)
        return torch.einsum(self.spelled, given, self.o)


@pytest.mark.parametrize("way", SPELLED)
def test_the_projection_is_found(way: str) -> None:
    torch.manual_seed(0)
    model, x = Projected(SPELLED[way]).eval(), torch.randn(T, D, dtype=torch.float64)
    only = ("attention/maps", "attention/weighted_norm")
    with inspector.run(SimpleNamespace(model=model, kind="vectors"), x, only=only) as capture:
        found = capture.array("model:attention/weighted_norm")
        assert "no projection" not in (capture.channel("model:attention/weighted_norm").method or "")
    out = model.o.detach() if ",hde" in SPELLED[way] else model.o.detach().permute(2, 1, 0)
    q, k, v = (one(x).detach().unflatten(-1, (HEADS, EACH)) for one in (model.q, model.k, model.v))
    for head in range(HEADS):
        for query in range(T):
            powers = [float(torch.exp(q[query, head] @ k[key, head])) for key in range(T)]
            for key in range(T):
                moved = powers[key] / sum(powers) * (v[key, head] @ out[head])
                np.testing.assert_allclose(found[head, query, key], float(moved.norm()), rtol=2e-3, atol=1e-6)


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
def test_largest_scores_of_flex_attention() -> None:
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    class Flexible(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            causal = create_block_mask(lambda _b, _h, q, k: q >= k, None, None, T, T, device="cpu")
            bias = torch.arange(T, dtype=torch.float64)  # a type of its own
            one = x[:, None]
            out = flex_attention(one, one, one, lambda s, _b, _h, q, k: s + bias[k] - bias[q], block_mask=causal)
            assert isinstance(out, Tensor)
            return out[:, 0]

    torch.manual_seed(0)
    x = torch.randn(T, D)
    only = ("attention/maps", "attention/largest_logit")
    with inspector.run(SimpleNamespace(model=Flexible().eval(), kind="vectors"), x, only=only) as capture:
        found = capture.array("model:attention/largest_logit")
    scores = [[float(x[q] @ x[k]) / D**0.5 + k - q for k in range(q + 1)] for q in range(T)]
    np.testing.assert_allclose(found[0], [max(row) for row in scores], rtol=1e-5)


class OwnLayer(nn.Module):
    """A layer whose own code attends and projects, without a module for W_O."""

    def __init__(self, spelled: str) -> None:
        super().__init__()
        self.attend, self.norm, self.last = Projected(spelled), nn.LayerNorm(D), nn.Linear(D, D)
        self.double()

    def after(self, x: Tensor, without: int | None = None) -> Tensor:
        own, h = self.attend, self.norm(x)
        q, k, v = (one(h).unflatten(-1, (HEADS, EACH)).transpose(1, 2) for one in (own.q, own.k, own.v))
        if without is not None:
            v = v.clone()
            v[:, :, without] = 0.0
        sums = torch.softmax(q @ k.mT, -1) @ v
        if own.spelled == "a product":
            x = x + sums.transpose(1, 2).flatten(2) @ own.o.flatten(0, 1)
        else:
            x = x + torch.einsum(own.spelled, sums if own.spelled.startswith("bh") else sums.transpose(1, 2), own.o)
        return x + self.last(torch.tanh(x))

    def forward(self, x: Tensor) -> Tensor:
        return self.after(x)


class OwnLayers(nn.Module):
    def __init__(self, spelled: str) -> None:
        super().__init__()
        self.layers = nn.ModuleList(OwnLayer(spelled) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


@pytest.mark.parametrize("way", [*SPELLED.values(), "a product"])
def test_values_are_zeroed_where_the_layer_projects_itself(way: str) -> None:
    """Against the layer computed again with the value set to 0."""
    torch.manual_seed(0)
    model, x = OwnLayers(way).eval(), torch.randn(T, D, dtype=torch.float64)
    only = ("attention/value_zeroing",)
    with inspector.run(SimpleNamespace(model=model, kind="vectors"), x, only=only) as capture:
        found = [capture.array(f"layers.{number}:attention/value_zeroing") for number in range(2)]
    given = x[None]
    for layer, map_ in zip(model.layers, found, strict=True):
        plain = layer(given)
        moved = [1 - torch.cosine_similarity(plain, layer.after(given, key), dim=-1)[0] for key in range(T)]
        expected = torch.stack(moved, 1)
        np.testing.assert_allclose(map_, (expected / expected.sum(1, keepdim=True)).detach(), rtol=1e-5, atol=1e-7)
        given = plain
