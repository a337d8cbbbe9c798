"""What attention did where it is called in other ways: a cache, windows on the batch axis, time first, flex_attention."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from listed import Listed
from torch import Tensor, nn

from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform

pytestmark = pytest.mark.usefixtures("one_thread")
NEAR = {"rtol": 1e-5, "atol": 1e-9}
HEADS, WIDTH = 2, 8


def run(model: nn.Module, x: Tensor, *asked: str, look_at: int = 0, labels: str | None = None) -> Listed:
    sink = Listed()
    subject = Subject(model=model, kind="vectors", width=WIDTH, labels=labels, loss=lambda out, _: out.square().sum(-1))
    perform(subject, Batch(x, torch.full((len(x),), x.shape[1]), look_at=look_at), sink, RunOptions(only=asked))
    return sink


class Attends(nn.Module):
    """One layer; `scores` and `maps` are kept by the way that writes them out."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.q, self.o, self.way = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH), way
        self.maps: Tensor | None = None
        self.scores: Tensor | None = None

    def split(self, x: Tensor) -> tuple[Tensor, ...]:
        """(b, a, t, d) queries, keys and values."""
        return tuple(self.q(x).reshape(*x.shape[:2], 3, HEADS, -1).permute(2, 0, 3, 1, 4))

    def merged(self, z: Tensor) -> Tensor:
        out: Tensor = self.o(z.transpose(1, 2).flatten(2))
        return out

    def forward(self, x: Tensor) -> Tensor:
        if self.way == "cache":
            return self.cached(x)
        rows = x.reshape(-1, 4, WIDTH) if self.way in ("windows", "windows written") else x
        q, k, v = self.split(rows)
        if self.way.endswith("written"):
            self.scores = q @ k.mT / math.sqrt(q.shape[-1])
            if self.way == "causal written":
                later = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
                self.scores = self.scores.masked_fill(later, -math.inf)
            self.maps = self.scores.softmax(-1)
            return self.merged(self.maps @ v).reshape(x.shape)
        return self.merged(F.scaled_dot_product_attention(q, k, v)).reshape(x.shape)

    def cached(self, x: Tensor) -> Tensor:
        keys, values, out = x.new_zeros(len(x), HEADS, 0, 4), x.new_zeros(len(x), HEADS, 0, 4), []
        for t in range(x.shape[1]):
            q, k, v = self.split(x[:, t : t + 1])
            keys, values = torch.cat((keys, k), 2), torch.cat((values, v), 2)
            out.append(self.merged(F.scaled_dot_product_attention(q, keys, values)))
        return torch.cat(out, 1)


def twins(way: str, written: str) -> tuple[Attends, Attends]:
    """The same weights in two ways of computing."""
    torch.manual_seed(0)
    one, other = Attends(way).double(), Attends(written).double()
    other.load_state_dict(one.state_dict())
    return one, other


def test_rows_of_a_cache() -> None:
    """Each row has the values of its own call; its scores are those of the calls."""
    model, other = twins("cache", "causal written")
    x = torch.randn(1, 5, WIDTH, dtype=torch.float64)
    asked = ("attention/gradient", "attention/weighted_norm", "attention/clipped@at=0.2", "attention/largest_logit")
    sink = run(model, x, *asked)
    loss = other(x).square().sum()
    assert other.maps is not None and other.scores is not None
    (slope,) = torch.autograd.grad(loss, other.maps)
    np.testing.assert_allclose(sink.array("model:attention/gradient"), slope[0] * torch.ones(5, 5).tril(), **NEAR)
    top = other.scores[0].detach().amax(-1)
    np.testing.assert_allclose(sink.array("model:attention/largest_logit"), top, **NEAR)
    plain = run(other, x, "attention/weighted_norm", "attention/clipped@at=0.2")
    for signal in ("weighted_norm", "clipped"):
        found, expected = (one.array(f"model:attention/{signal}") for one in (sink, plain))
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-8, err_msg=signal)


@pytest.mark.parametrize("way", ["windows", "windows written"])
def test_windows_of_the_selected_sequence(way: str) -> None:
    """Two windows of four steps on the batch axis: heads of the first window come first."""
    model, other = twins(way, "windows written")
    x = torch.randn(3, 8, WIDTH, dtype=torch.float64)
    sink = run(model, x, "attention/gradient", "attention/weighted_norm", look_at=1)
    loss = other(x).square().sum()
    assert other.maps is not None
    (slope,) = torch.autograd.grad(loss, other.maps)
    np.testing.assert_allclose(sink.array("model:attention/gradient"), slope[2:4].flatten(0, 1), **NEAR)
    value = other.split(x.reshape(-1, 4, WIDTH))[2][2:4].detach()
    moved = torch.stack([value[:, a] @ other.o.weight.T[4 * a : 4 * a + 4] for a in range(HEADS)], 1).norm(dim=-1)
    expected = other.maps[2:4].detach() * moved[:, :, None]
    np.testing.assert_allclose(sink.array("model:attention/weighted_norm"), expected.flatten(0, 1).detach(), **NEAR)


class TimeFirst(nn.Module):
    """torch's layers with time first, between two transpositions."""

    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 16, 0.0, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, nn.LayerNorm(WIDTH), enable_nested_tensor=False)
        self.head = nn.Linear(WIDTH, 5)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.head(self.encoder(x.transpose(0, 1)).transpose(0, 1))
        return out


@pytest.mark.parametrize("sequences", [3, 6])
def test_time_first(sequences: int) -> None:
    """As many sequences as steps are told apart by what torch's layers say of themselves."""
    torch.manual_seed(0)
    model, x = TimeFirst().double().eval(), torch.randn(sequences, 6, WIDTH, dtype=torch.float64)
    sink = run(model, x, "residual", "residual/lens", "attention/direct_logit", look_at=2, labels="abcde")
    known = [x[2]]
    for layer in model.encoder.layers:
        known.append(layer(known[-1][:, None])[:, 0])
    expected = torch.stack([one.detach().norm(dim=1) for one in known])
    np.testing.assert_allclose(sink.array("encoder.layers:residual/norm"), expected, rtol=1e-9)
    scores = model(x)[2].argmax(-1)
    np.testing.assert_array_equal(sink.array("encoder.layers:residual/lens_token")[-1], scores)
    assert "encoder.layers.1.self_attn:attention/direct_logit" in sink.names()
