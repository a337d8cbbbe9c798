"""Ways in which models take positions onto their stream: each is found with its numbers, and nothing else is."""

from __future__ import annotations

import math

import attended_models as models
import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import dropout, scaled_dot_product_attention

from inspector.engine.model.subject import Batch

pytestmark = pytest.mark.usefixtures("one_thread")
STEPS, WIDTH, V = 9, 12, 11


class One(nn.Module):
    """Causal attention of one head over what `stream` makes of the tokens; `p`: 20 positions."""

    rows, steps = 20, STEPS

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.tokens, self.p = nn.Embedding(V, WIDTH), nn.Parameter(torch.randn(self.rows, WIDTH))
        self.q, self.k, self.v = (nn.Linear(WIDTH, WIDTH) for _ in range(3))

    def stream(self, x: Tensor, p: Tensor) -> Tensor:
        raise NotImplementedError

    def forward(self, ids: Tensor) -> Tensor:
        x = self.stream(self.tokens(ids), self.p[: ids.shape[1]])
        q, k, v = (one(x)[:, None] for one in (self.q, self.k, self.v))
        return scaled_dot_product_attention(q, k, v, is_causal=True)[:, 0, -ids.shape[1] :]


class Multiplied(One):
    def stream(self, x: Tensor, p: Tensor) -> Tensor:
        return x * p


class Divided(One):
    def stream(self, x: Tensor, p: Tensor) -> Tensor:
        return x / p


class Subtracted(One):
    def stream(self, x: Tensor, p: Tensor) -> Tensor:
        return x - p


class Alpha(One):
    def stream(self, x: Tensor, p: Tensor) -> Tensor:
        return torch.add(x, p, alpha=0.5)


class Scaled(One):
    def stream(self, x: Tensor, p: Tensor) -> Tensor:
        return x + 0.25 * p


class Product(One):
    def stream(self, x: Tensor, p: Tensor) -> Tensor:
        return torch.addcmul(x, p, torch.tensor(2.0), value=1.5)


class Weighted(One):
    def stream(self, x: Tensor, p: Tensor) -> Tensor:
        return torch.lerp(x, p.expand_as(x), 0.25)


class StepByStep(One):
    def stream(self, x: Tensor, p: Tensor) -> Tensor:
        return torch.stack([x[:, t] + p[t] for t in range(x.shape[1])], 1)


class GainStepByStep(One):
    def stream(self, x: Tensor, p: Tensor) -> Tensor:
        return torch.stack([x[:, t : t + 1] * p[t] for t in range(x.shape[1])], 1).flatten(2).view_as(x)


class AsWide(One):
    """As many components as steps."""

    steps = WIDTH

    def stream(self, x: Tensor, p: Tensor) -> Tensor:
        return x + p


class StepsLast(One):
    def stream(self, x: Tensor, p: Tensor) -> Tensor:
        return (x.transpose(1, 2) + p.T).transpose(1, 2)


class InFront(One):
    """A class token in front, so that there is one position more than the input has steps."""

    def stream(self, x: Tensor, p: Tensor) -> Tensor:
        x = torch.cat([torch.ones(len(x), 1, WIDTH), x], 1)
        return x + self.p[: x.shape[1]]


class Stacked(One):
    def stream(self, x: Tensor, p: Tensor) -> Tensor:
        return torch.stack([x, p.expand_as(x)]).sum(0)


class StackedLast(One):
    def stream(self, x: Tensor, p: Tensor) -> Tensor:
        return torch.sum(torch.stack((x, p.expand_as(x)), dim=-1), dim=-1)


class MeanOfAStack(One):
    def stream(self, x: Tensor, p: Tensor) -> Tensor:
        return torch.stack([x, p.expand_as(x), torch.zeros_like(x), x]).mean(dim=0)


FOUND = [
    (Multiplied, 1.0, "parameter 'p', multiplied"),
    (Subtracted, -1.0, "-1 × parameter 'p', added"),
    (Alpha, 0.5, "0.5 × parameter 'p', added"),
    (Scaled, 0.25, "0.25 × parameter 'p', added"),
    (Product, 3.0, "3 × parameter 'p', added"),
    (Weighted, 0.25, "0.25 × parameter 'p', added"),
    (StepByStep, 1.0, "parameter 'p', added"),
    (GainStepByStep, 1.0, "parameter 'p', multiplied"),
    (AsWide, 1.0, "parameter 'p', added"),
    (StepsLast, 1.0, "parameter 'p', added"),
    (InFront, 1.0, "parameter 'p', added"),
    (Stacked, 1.0, "parameter 'p', added"),
    (StackedLast, 1.0, "parameter 'p', added"),
    (MeanOfAStack, 0.25, "0.25 × parameter 'p', added"),
]


def found(model: nn.Module, steps: int = STEPS, short: int = 0) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """(arrays by signal, with the methods of encodings under `method`; refusals by signal)."""
    ids = torch.randint(0, V, (2, steps), generator=torch.Generator().manual_seed(3))
    sink = models.run(model, "positions", given=Batch(ids, torch.tensor([steps - short, steps])))
    arrays: dict[str, np.ndarray] = {name.partition(":")[2]: sink.array(name) for name in sink.names()}
    said = {f"method {name.partition(':')[2]}": np.array(sink.channel(name).method) for name in sink.names()}
    return arrays | said, {name.partition(":")[2]: why for name, why in sink.refusals().items()}


@pytest.mark.parametrize(("kind", "factor", "said"), FOUND)
def test_positions_are_found_however_they_reach_the_stream(kind: type[One], factor: float, said: str) -> None:
    model = kind().eval()
    arrays, _ = found(model, kind.steps)
    want = factor * model.p.detach().double().numpy()
    np.testing.assert_allclose(arrays["positions/encoding"], want, rtol=1e-5)
    assert str(arrays["method positions/encoding"]).startswith(said)
    assert "positions/encoding_1" not in arrays


def test_what_divides_is_one_over_its_numbers() -> None:
    model = Divided().eval()
    arrays, _ = found(model)
    want = 1.0 / model.p.detach().double().numpy()[:STEPS]
    np.testing.assert_allclose(arrays["positions/encoding"], want, rtol=1e-5)


class PaddingMask(One):
    def stream(self, x: Tensor, p: Tensor) -> Tensor:
        there = torch.arange(x.shape[1]) < STEPS - 2
        return x * there[:, None].float()


class Depth(One):
    """As many layers as steps, each with a vector of its own."""

    def stream(self, x: Tensor, p: Tensor) -> Tensor:
        for layer in range(STEPS):
            x = torch.tanh(x + p[layer])
        return x


class Prefix(One):
    """As many vectors in front of the sequence as it has steps."""

    def stream(self, x: Tensor, p: Tensor) -> Tensor:
        return torch.cat([p.expand(len(x), -1, -1), x], 1)


class Turned(One):
    """Queries and keys of one head turned, by products with cosines and sines."""

    def stream(self, x: Tensor, p: Tensor) -> Tensor:
        half = WIDTH // 2
        angles = torch.outer(torch.arange(x.shape[1]).float(), 10.0 ** -torch.arange(half))
        cos, sin = angles.cos().repeat(1, 2), angles.sin().repeat(1, 2)
        return x * cos + torch.cat([-x[..., half:], x[..., :half]], -1) * sin


class StackedOver(One):
    """A stack that is summed over its steps, and one that is not summed."""

    def stream(self, x: Tensor, p: Tensor) -> Tensor:
        stacked = torch.stack([x, p.expand_as(x)])
        return x + stacked.sum(2).sum(0)[:, None] + torch.stack([x, p.expand_as(x)])[0]


@pytest.mark.parametrize(("kind", "short"), [(StackedOver, 0), (PaddingMask, 2), (Depth, 0), (Prefix, 0), (Turned, 0)])
def test_what_is_no_encoding_of_positions_is_not_taken_for_one(kind: type[One], short: int) -> None:
    arrays, refused = found(kind().eval(), short=short)
    assert "positions/encoding" not in arrays
    assert "positions/encoding" in refused


class OfScores(One):
    """A bias of scores, in a table as wide as there are steps and as long."""

    rows = WIDTH
    steps = WIDTH

    def forward(self, ids: Tensor) -> Tensor:
        x = self.tokens(ids)
        scores = self.q(x) @ self.k(x).mT / math.sqrt(WIDTH) + self.p
        return scores.softmax(-1) @ self.v(x)


def test_a_bias_of_scores_is_no_encoding() -> None:
    assert "positions/encoding" in found(OfScores().eval(), WIDTH)[1]


class Dropped(One):
    """Dropout over the positions, and over the sum."""

    def stream(self, x: Tensor, p: Tensor) -> Tensor:
        return dropout(x + dropout(p, 0.5, self.training), 0.5, self.training)


def test_dropout_is_off_so_that_scores_differ_by_positions_alone() -> None:
    on, _ = found(Dropped().train())
    off, _ = found(Dropped().eval())
    for signal in ("encoding", "scores", "scores_spread"):
        np.testing.assert_array_equal(on[f"positions/{signal}"], off[f"positions/{signal}"])
    model = Dropped().train()
    found(model)
    assert all(one.training for one in model.modules())


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
def test_the_formula_of_a_table_is_seen_in_half_precision(kind: torch.dtype) -> None:
    model = Scaled().eval()
    angles = torch.arange(20)[:, None] * 10000.0 ** (-torch.arange(0, WIDTH, 2) / WIDTH)
    model.p.data = torch.stack([angles.sin(), angles.cos()], -1).flatten(1)
    arrays, _ = found(model.to(kind))
    assert "0.25 × sinusoidal, sine and cosine in turns" in str(arrays["method positions/encoding"])


class Rotated(One):
    """Queries and keys turned by `rates` a step, in pairs of two halves, and made longer by `growth` a step; positions
    added before or not; weights computed by the model itself or not."""

    rates, growth, added, written = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003), 1.0, False, False

    def turned(self, x: Tensor, growth: float) -> Tensor:
        half, steps = WIDTH // 2, torch.arange(x.shape[-2])
        angles = steps[:, None] * torch.tensor(self.rates)
        one, two = x[..., :half], x[..., half:]
        cos, sin = angles.cos(), angles.sin()
        joined = torch.cat([one * cos - two * sin, one * sin + two * cos], -1)
        return joined * growth ** steps[:, None]

    def forward(self, ids: Tensor) -> Tensor:
        x = self.tokens(ids)
        x = x + self.p[: ids.shape[1]] if self.added else x
        q, k, v = (one(x)[:, None] for one in (self.q, self.k, self.v))
        q, k = self.turned(q, self.growth), self.turned(k, 1 / self.growth)
        if not self.written:
            return scaled_dot_product_attention(q, k, v, is_causal=True)[:, 0]
        later = torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool).triu(1)
        return ((q @ k.mT / WIDTH**0.5).masked_fill(later, -torch.inf).softmax(-1) @ v)[:, 0]


class Written(Rotated):
    written = True


class Slow(Rotated):
    """As positions that are interpolated by 20."""

    rates = (0.05, 0.015, 0.005, 0.0015, 0.0005, 0.00015)


class Growing(Rotated):
    growth = 1.05


class Besides(Rotated):
    added = True


class WrittenBesides(Rotated):
    added = written = True


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (Rotated, "two halves"),
        (Written, "two halves"),
        (Slow, "two halves"),
        (Growing, "change by a factor a step"),
        (Besides, "difference of two tokens"),
        (WrittenBesides, "difference of two tokens"),
    ],
)
def test_rotary_frequencies_are_found_in_all_these(kind: type[Rotated], said: str) -> None:
    arrays, _ = found(kind().eval())
    np.testing.assert_allclose(arrays["positions/frequency"], [kind.rates], atol=2e-5)
    assert said in str(arrays["method positions/frequency"])


def test_positions_that_are_added_to_a_stream_of_written_attention_turn_nothing() -> None:
    class Added(WrittenBesides):
        rates = (0.0,) * 6

    refused = found(Added().eval())[1]["positions/frequency"]
    assert "not turned by a fixed angle" in refused


def test_scores_that_are_no_product_have_no_rotary_frequencies() -> None:
    class Additive(One):
        def forward(self, ids: Tensor) -> Tensor:
            x = self.tokens(ids) + self.p[: ids.shape[1]]
            weights = torch.tanh(self.q(x)[:, :, None] + self.k(x)[:, None]).sum(-1).softmax(-1)
            return weights @ self.v(x)

    refused = found(Additive().eval())[1]["positions/frequency"]
    assert "computes its weights itself" in refused and "no product" in refused
