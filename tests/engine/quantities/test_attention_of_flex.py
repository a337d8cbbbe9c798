"""flex_attention on a CPU: distances, rollout and relevance of two layers against the same written out in float64."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from listed import Listed
from torch import Tensor, nn
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

import inspector
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform

pytestmark = [
    pytest.mark.usefixtures("one_thread"),
    pytest.mark.filterwarnings("ignore:.*flex_attention called without"),
]
WIDTH, STEPS, SAMPLE = 4, 6, 1


def causal(score: Tensor, _batch: Tensor, _head: Tensor, q: Tensor, k: Tensor) -> Tensor:
    return torch.where(q >= k, score, -math.inf)


class Layer(nn.Module):
    """Keys and values are x itself."""

    def __init__(self) -> None:
        super().__init__()
        self.query = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        out = flex_attention(self.query(x)[:, None], x[:, None], x[:, None], score_mod=causal)
        return x + out[:, 0]

    def written(self, x: Tensor) -> tuple[Tensor, Tensor]:
        scores = self.query(x) @ x.mT / math.sqrt(WIDTH)
        map_ = scores.masked_fill(torch.ones(STEPS, STEPS, dtype=torch.bool).triu(1), -math.inf).softmax(-1)
        return x + map_ @ x, map_


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one, self.two, self.head = Layer(), Layer(), nn.Linear(WIDTH, 3)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.head(self.two(self.one(x)))
        return out


def test_layers_of_flex_attention_are_followed_on_a_cpu() -> None:
    torch.manual_seed(0)
    model, x, sink = Model().double().eval(), torch.randn(2, STEPS, WIDTH).double(), Listed()
    asked = ("attention/distance", "attention/rollout", "attention/relevance@of=score")
    subject = Subject(model=model, kind="vectors", width=WIDTH, labels="abc")
    perform(subject, Batch(x, torch.tensor([STEPS, STEPS]), look_at=SAMPLE), sink, RunOptions(only=asked))
    middle, first = model.one.written(x[SAMPLE])
    last, second = model.two.written(middle)
    eye, apart = torch.eye(STEPS).double(), (torch.arange(STEPS)[:, None] - torch.arange(STEPS)).abs().double()
    for place, map_ in (("one", first), ("two", second)):
        far = sink.array(f"{place}:attention/distance")
        np.testing.assert_allclose(far[0], (map_ * apart).sum(-1).detach(), rtol=1e-5, atol=1e-7)
    low = 0.5 * (first + eye)
    rolled = torch.stack([low, 0.5 * (second + eye) @ low]).detach()
    np.testing.assert_allclose(sink.array("layers:attention/rollout"), rolled, rtol=1e-5, atol=1e-7)
    scores = model.head(last)[-1]
    slopes = torch.autograd.grad(scores.max(), [first, second])
    bars = [(map_ * slope).clamp(min=0) for map_, slope in zip((first, second), slopes, strict=True)]
    low = eye + bars[0]
    expected = torch.stack([low, low + bars[1] @ low]).detach() - eye
    np.testing.assert_allclose(sink.array("layers:attention/relevance"), expected, rtol=1e-5, atol=1e-8)


class Buffers(nn.Module):
    """No parameters: what it holds are buffers of float64."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("w", torch.randn(WIDTH, WIDTH, dtype=torch.float64))

    def forward(self, x: Tensor) -> Tensor:
        return ((x @ self.w) @ x.mT).softmax(-1) @ x


def test_a_model_of_buffers_alone_is_given_numbers_of_their_type() -> None:

    torch.manual_seed(0)
    model, given = Buffers(), np.random.default_rng(0).normal(size=(2, 5, WIDTH))
    with inspector.run(model, given) as capture:
        found = capture.array("model:attention")
    x = torch.tensor(given[0])
    np.testing.assert_allclose(found, (x @ model.w @ x.mT).softmax(-1)[None], atol=1e-3)


class Constants(nn.Module):
    """No parameters; the mask reads a tensor that is made in the call."""

    def forward(self, x: Tensor) -> Tensor:
        part = torch.arange(STEPS) // 2
        turn = torch.linspace(-1, 1, WIDTH * WIDTH).reshape(WIDTH, WIDTH)
        mask = create_block_mask(lambda _b, _h, q, k: part[q] == part[k], None, None, STEPS, STEPS, device="cpu")
        return flex_attention((x @ turn)[:, None], (x @ turn.T)[:, None], x[:, None], block_mask=mask)[:, 0]


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
def test_whose_keys_are_where_a_mask_reads_a_tensor() -> None:
    """Torch hands such tensors over beside the function where autograd follows it."""
    torch.manual_seed(0)
    x = torch.randn(1, STEPS, WIDTH)
    sink = Listed()
    perform(Subject(Constants().eval()), Batch(x, torch.tensor([STEPS])), sink, RunOptions(only=["attention/maps"]))
    channel = sink.channel("model:attention")
    assert (channel.domain("query"), channel.domain("key")) == ("step", "step")
    turn, part = (
        torch.linspace(-1, 1, WIDTH * WIDTH, dtype=torch.float64).reshape(WIDTH, WIDTH),
        torch.arange(STEPS) // 2,
    )
    scores = (x[0].double() @ turn) @ (x[0].double() @ turn.T).T / math.sqrt(WIDTH)
    expected = scores.masked_fill(part[:, None] != part, -math.inf).softmax(-1)
    torch.testing.assert_close(
        torch.from_numpy(sink.array("model:attention"))[0].double(), expected, atol=1e-3, rtol=1e-3
    )
