"""Positions of models that read pictures, vectors and times, and of class tokens, which no token reaches."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from listed import Listed
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from inspector.engine.model.batch import Batch, InputKind, NamedInput
from inspector.engine.model.subject import Subject
from inspector.engine.pipeline import RunOptions, perform

pytestmark = pytest.mark.usefixtures("one_thread")
WIDTH, SIDE = 12, 4


def positions(model: nn.Module, kind: InputKind, **inputs: NamedInput) -> Listed:
    sink = Listed()
    subject = Subject(model=model.eval(), kind=kind)
    perform(subject, Batch.of(inputs, next(iter(inputs))), sink, RunOptions(only=("positions",)))
    return sink


class Attends(nn.Module):
    """Two heads over what `stream` makes of the input."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.q, self.k, self.v = (nn.Linear(WIDTH, WIDTH) for _ in range(3))

    def attend(self, x: Tensor) -> Tensor:
        q, k, v = (one(x).unflatten(-1, (2, -1)).transpose(1, 2) for one in (self.q, self.k, self.v))
        return scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)


class Vit(Attends):
    """A picture of 4 × 4 patches, with so many tokens in front, and positions in one of several ways."""

    def __init__(self, how: str = "rows", front: int = 1) -> None:
        super().__init__()
        self.how, self.patch = how, nn.Conv2d(1, WIDTH, 4, 4)
        self.front = nn.Parameter(torch.randn(1, front, WIDTH))
        self.p = nn.Parameter(torch.randn(front + SIDE * SIDE, WIDTH))
        self.map = nn.Parameter(torch.randn(1, WIDTH, SIDE, SIDE))
        self.row, self.column = nn.Parameter(torch.randn(SIDE, WIDTH)), nn.Parameter(torch.randn(SIDE, WIDTH))

    def forward(self, picture: Tensor) -> Tensor:
        x = self.patch(picture)
        if self.how == "map":
            x = x + self.map
        if self.how == "row and column":
            x = (x.permute(0, 2, 3, 1) + self.row[:, None] + self.column).permute(0, 3, 1, 2)
        x = x.flatten(2).transpose(1, 2)
        if self.how == "patches alone":
            x = x + self.p[-SIDE * SIDE :]
        x = torch.cat([self.front.expand(len(x), -1, -1), x], 1)
        return self.attend(x + self.p if self.how == "rows" else x)


def picture() -> NamedInput:
    pixels = torch.randn(2, 1, 16, 16, generator=torch.Generator().manual_seed(1))
    return NamedInput(tensor=pixels, kind="image", lengths=torch.ones(2, dtype=torch.long))


@pytest.mark.parametrize("front", [0, 1, 3])
def test_positions_of_a_vision_transformer_are_its_table(front: int) -> None:
    model = Vit(front=front)
    sink = positions(model, "image", picture=picture())
    np.testing.assert_array_equal(sink.array("model:positions/encoding"), model.p.detach().numpy())


def test_positions_that_are_added_before_registers_are_put_in_front() -> None:
    model = Vit("patches alone", 4)
    sink = positions(model, "image", picture=picture())
    np.testing.assert_array_equal(sink.array("model:positions/encoding"), model.p.detach().numpy())
    assert "step 0 has row 4" in sink.channel("model:positions/encoding").method


def test_positions_that_are_added_to_the_map_of_patches_go_row_by_row() -> None:
    model = Vit("map")
    sink = positions(model, "image", picture=picture())
    added = model.map.detach()
    want = [[float(added[0, d, n // SIDE, n % SIDE]) for d in range(WIDTH)] for n in range(SIDE * SIDE)]
    np.testing.assert_allclose(sink.array("model:positions/encoding"), want, rtol=1e-6)


def test_positions_of_rows_and_of_columns_are_two_encodings() -> None:
    model = Vit("row and column")
    sink = positions(model, "image", picture=picture())
    for name, part in (("encoding", lambda n: model.row[n // SIDE]), ("encoding_1", lambda n: model.column[n % SIDE])):
        want = torch.stack([part(n) for n in range(SIDE * SIDE)]).detach()
        np.testing.assert_allclose(sink.array(f"model:positions/{name}"), want, rtol=1e-6)


@pytest.mark.parametrize("front", [1, 3])
def test_a_class_token_is_no_distance(front: int) -> None:
    """Without positions all patches are alike, and only the tokens in front are not."""
    sink = positions(Vit("none", front), "image", picture=picture())
    np.testing.assert_allclose(sink.array("model:positions/scores"), 0.0, atol=1e-6)
    assert f"{front} of {front + SIDE * SIDE} positions" in sink.channel("model:positions/scores").method
    assert "Nothing was seen" in sink.refusals()["model:positions/encoding"]


def test_scores_by_distance_of_patches_are_those_of_the_positions() -> None:
    model = Vit()
    sink = positions(model, "image", picture=picture())
    pixels = picture().tensor
    assert pixels is not None
    mean, spread = float(pixels[0].double().mean()), float(pixels[0].double().std(correction=0))
    with torch.no_grad():
        patches = model.patch(torch.full((1, 1, 16, 16), mean + spread)).flatten(2).transpose(1, 2)
        x = (torch.cat([model.front, patches], 1) + model.p).double()[0]
        q, k = (x @ one.weight.double().T + one.bias.double() for one in (model.q, model.k))
    found: dict[int, list[float]] = {}
    for i in range(1, 17):
        for j in range(1, 17):
            above = float(q[i, :6] @ k[j, :6] - q[i, :6] @ k[i, :6]) / math.sqrt(6)
            found.setdefault(i - j, []).append(above)
    want = [np.mean(found[distance]) for distance in range(-15, 16)]
    np.testing.assert_allclose(sink.array("model:positions/scores")[0], want, atol=2e-5)


class Timed(Attends):
    """Vectors, each with the time at which it was."""

    def __init__(self) -> None:
        super().__init__()
        self.read, self.rates = nn.Linear(3, WIDTH), nn.Parameter(torch.randn(WIDTH))

    def forward(self, vectors: Tensor, times: Tensor) -> Tensor:
        return self.attend(self.read(vectors) + torch.sin(times.view(*vectors.shape[:2], 1) * self.rates))


@pytest.mark.parametrize("wide", [False, True])
def test_times_that_are_given_stay_and_are_named(wide: bool) -> None:
    generator = torch.Generator().manual_seed(2)
    steps = torch.full((2,), 9)
    vectors = torch.randn(2, 9, 3, generator=generator)
    times = torch.rand(2, 9, generator=generator).cumsum(1)
    model = Timed()
    given = NamedInput(tensor=times[..., None] if wide else times, kind="vectors", lengths=steps, axis="times")
    sink = positions(
        model, "vectors", vectors=NamedInput(tensor=vectors, kind="vectors", lengths=steps, axis="step"), times=given
    )
    want = torch.sin(times[0, :, None] * model.rates).detach()
    np.testing.assert_allclose(sink.array("model:positions/encoding"), want, rtol=1e-6)
    assert "'times' as given" in sink.channel("model:positions/encoding").method


def test_a_class_token_among_rotated_queries_hides_no_rotation() -> None:
    class Rotated(Attends):
        def __init__(self) -> None:
            super().__init__()
            self.tokens, self.front = nn.Embedding(9, WIDTH), nn.Parameter(torch.randn(1, 1, WIDTH))

        def turned(self, x: Tensor) -> Tensor:
            angles = torch.arange(x.shape[1] - 1)[:, None] * torch.tensor([1.0, 0.3, 0.1, 0.03, 0.01, 0.003])
            one, two = x[:, 1:, :6], x[:, 1:, 6:]
            cos, sin = angles.cos(), angles.sin()
            return torch.cat([x[:, :1], torch.cat([one * cos - two * sin, one * sin + two * cos], -1)], 1)

        def forward(self, ids: Tensor) -> Tensor:
            x = torch.cat([self.front.expand(len(ids), -1, -1), self.tokens(ids)], 1)
            q, k, v = self.turned(self.q(x)), self.turned(self.k(x)), self.v(x)
            return scaled_dot_product_attention(q[:, None], k[:, None], v[:, None])[:, 0, 1:]

    ids = torch.randint(0, 9, (1, 11), generator=torch.Generator().manual_seed(3))
    steps = NamedInput(tensor=ids, kind="tokens", lengths=torch.tensor([11]), axis="step")
    sink = positions(Rotated(), "tokens", ids=steps)
    np.testing.assert_allclose(sink.array("model:positions/frequency"), [[1.0, 0.3, 0.1, 0.03, 0.01, 0.003]], atol=2e-5)


@pytest.mark.parametrize("kernel", ["sdpa", "eager"])
def test_the_slopes_of_falcon_are_those_of_its_own_weights(kernel: str) -> None:
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.FalconConfig(
        vocab_size=20, hidden_size=16, num_hidden_layers=1, num_attention_heads=4, alibi=True, multi_query=True,
        new_decoder_architecture=False, attn_implementation=kernel,
    )  # fmt: skip
    model = transformers.FalconForCausalLM(config).eval()
    ids = torch.randint(0, 20, (1, 9), generator=torch.Generator().manual_seed(3))
    steps = NamedInput(tensor=ids, kind="tokens", lengths=torch.tensor([9]), axis="step")
    sink = positions(model, "tokens", input_ids=steps)
    found = sink.array("transformer.h.0.self_attention:positions/scores")
    if kernel == "sdpa":  # which tells no weights; 2^(−2k) a step, over √4
        want = -torch.outer(torch.tensor([0.125, 0.03125, 0.0078125, 0.001953125]), torch.arange(9.0))
    else:
        weights = model(torch.full((1, 9), 7), output_attentions=True).attentions[0][0].detach().double().log()
        want = weights[:, -1].flip(-1) - weights[:, -1, -1:]
    np.testing.assert_allclose(found, want, atol=1e-5)
