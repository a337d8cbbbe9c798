"""The residual stream against the same model written out in float64."""

from __future__ import annotations

from collections.abc import Iterator

import attended_models as models
import numpy as np
import pytest
import torch
from attended_models import (
    HEADS,
    LAYERS,
    STEPS,
    VOCABULARY,
    WAYS,
    WIDTH,
    Reference,
    Transformer,
    made,
    place,
    reference,
)
from listed import Listed
from torch import Tensor, nn

from inspector.engine.model.subject import Batch
from inspector.engine.quantities.attention.residual import massive

pytestmark = pytest.mark.usefixtures("one_thread")
NEAR = {"rtol": 1e-6, "atol": 1e-9}
ASKED = ("residual", "residual/gradient", "residual/lens", "attention/direct_logit")


@pytest.fixture(scope="module", params=WAYS)
def seen(request: pytest.FixtureRequest) -> Iterator[tuple[Listed, Reference, Transformer]]:
    model = made(request.param)
    yield models.run(model, *ASKED), reference(model, models.batch().inputs[1]), model


def test_norms_by_layer_and_step(seen: tuple[Listed, Reference, Transformer]) -> None:
    sink, known, _ = seen
    expected = torch.stack([x.detach().norm(dim=1) for x in known.stream])
    np.testing.assert_allclose(sink.array("blocks:residual/norm"), expected, **NEAR)
    assert sink.channel("blocks:residual/norm").labels["layer"] == ("into blocks.0", "blocks.0", "blocks.1")


def test_gradients_by_layer_and_step(seen: tuple[Listed, Reference, Transformer]) -> None:
    sink, known, _ = seen
    slopes = torch.autograd.grad(known.losses.sum(), known.stream, retain_graph=True)
    np.testing.assert_allclose(
        sink.array("blocks:residual/gradient"), torch.stack([g.norm(dim=1) for g in slopes]), **NEAR
    )


def test_rank_and_massive_activations(seen: tuple[Listed, Reference, Transformer]) -> None:
    sink, known, _ = seen
    rank, massive = sink.array("blocks:residual/rank"), sink.array("blocks:residual/massive")
    for layer, x in enumerate(x.detach() for x in known.stream):
        away = torch.stack([row - x.mean(0) for row in x])
        assert rank[0, layer] == pytest.approx(float(away.norm() / x.norm()), rel=1e-9)
        cosines = [float(a @ b / a.norm() / b.norm()) for i, a in enumerate(x) for j, b in enumerate(x) if i != j]
        assert rank[1, layer] == pytest.approx(np.mean(cosines), rel=1e-9)
        largest, median, ratio, position, channel, count = massive[:, layer]
        assert largest == pytest.approx(float(x.abs().max()))
        assert float(x[int(position), int(channel)].abs()) == pytest.approx(largest)
        assert median == pytest.approx(np.median(x.abs())) and ratio == pytest.approx(largest / median) and count == 0


def test_scales_of_the_norms(seen: tuple[Listed, Reference, Transformer]) -> None:
    sink, _, model = seen
    channel, values = sink.channel("layers:residual/norm_scale"), sink.array("layers:residual/norm_scale")
    at = channel.labels["module"].index("blocks.1.second")
    gamma = model.blocks[1].second.weight.detach()  # type: ignore[union-attr]
    np.testing.assert_allclose(values[:, at], [gamma.abs().mean(), gamma.min(), gamma.max(), gamma.std(correction=0)])
    assert len(channel.labels["module"]) == 2 * LAYERS + 1


def normed(norm: nn.LayerNorm, x: Tensor) -> Tensor:
    centred = x - x.mean(-1, keepdim=True)
    return centred / (centred.square().mean(-1, keepdim=True) + norm.eps).sqrt() * norm.weight + norm.bias


def test_the_logit_lens(seen: tuple[Listed, Reference, Transformer]) -> None:
    sink, known, model = seen
    predicted = known.logits.detach().argmax(-1)
    final = known.logits.detach().softmax(-1)
    for layer, x in enumerate(x.detach() for x in known.stream):
        scores = (normed(model.norm, x) @ model.head.weight.T + model.head.bias).detach()
        p = scores.softmax(-1)
        divergence = (final * (final.log() - p.log())).sum(-1)
        np.testing.assert_allclose(sink.array("blocks:residual/lens_divergence")[layer], divergence, atol=1e-9)
        np.testing.assert_array_equal(sink.array("blocks:residual/lens_token")[layer], scores.argmax(-1))
        np.testing.assert_allclose(
            sink.array("blocks:residual/lens_probability")[layer], p[range(STEPS), predicted], rtol=1e-9
        )
        ranks = [1 + sum(float(s) > float(row[c]) for s in row) for row, c in zip(scores, predicted, strict=True)]
        np.testing.assert_array_equal(sink.array("blocks:residual/lens_rank")[layer], ranks)
    assert not sink.array("blocks:residual/lens_divergence")[-1].any()
    assert "norm → head" in sink.channel("blocks:residual/lens_token").method


def test_what_heads_add_to_the_score_directly(seen: tuple[Listed, Reference, Transformer]) -> None:
    """All parts of the stream, so normed, add up to the score; and each head's is its own."""
    sink, known, model = seen
    x = known.stream[-1].detach()
    centred = x - x.mean(-1, keepdim=True)
    sigma = (centred.square().mean(-1, keepdim=True) + model.norm.eps).sqrt()
    predicted = known.logits.detach().argmax(-1)

    def direct(part: Tensor) -> Tensor:
        moved = (part - part.mean(-1, keepdim=True)) / sigma * model.norm.weight
        return (moved @ model.head.weight.T).detach()[range(STEPS), predicted]

    rest = x.clone()
    total = torch.zeros(STEPS, dtype=torch.float64)
    for layer in range(LAYERS):
        found = sink.array(f"{place(layer)}:attention/direct_logit")
        for head in range(HEADS):
            part = (known.sums[layer][head] @ known.projections[layer][head]).detach()
            np.testing.assert_allclose(found[head], direct(part), rtol=1e-4, atol=1e-6)
            rest, total = rest - part, total + torch.from_numpy(found[head])
    bias = (model.head.weight @ model.norm.bias + model.head.bias).detach()[predicted]
    scores = known.logits.detach()[range(STEPS), predicted]
    np.testing.assert_allclose(total + direct(rest) + bias, scores, rtol=1e-4)


class PostNorm(nn.Module):
    """torch's own layers, which norm behind the sum, or before; a head that is no module."""

    def __init__(self, functional: bool, norm_first: bool = False) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 16, 0.0, batch_first=True, norm_first=norm_first)
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        norm = nn.LayerNorm(WIDTH) if norm_first else None
        self.encoder = nn.TransformerEncoder(layer, 2, norm, enable_nested_tensor=False)
        self.head, self.functional = nn.Linear(WIDTH, VOCABULARY, bias=False), functional

    def forward(self, ids: Tensor) -> Tensor:
        x = self.encoder(self.embedding(ids))
        out: Tensor = x @ self.head.weight.T if self.functional else self.head(x)
        return out


def test_a_stream_with_norms_behind_the_sums_has_a_direct_path() -> None:
    """Its numbers: test_direct_logits_of_layers."""
    torch.manual_seed(0)
    model = PostNorm(functional=False).eval()
    sink = models.run(model, *ASKED)
    assert "encoder.layers.0.self_attn:attention/direct_logit" in sink.names() and not sink.refusals()
    assert "encoder.layers:residual/lens_rank" in sink.names() and "encoder.layers:residual/norm" in sink.names()


def test_the_norm_inside_a_module_around_the_layers() -> None:
    torch.manual_seed(0)
    sink = models.run(PostNorm(functional=False, norm_first=True).eval(), *ASKED)
    assert "encoder.norm → head" in sink.channel("encoder.layers:residual/lens_token").method
    assert "encoder.layers.1.self_attn:attention/direct_logit" in sink.names() and not sink.refusals()


def test_a_head_that_is_no_module_is_refused() -> None:
    sink = models.run(PostNorm(functional=True).eval(), "residual/lens")
    assert "not the result of a linear layer" in sink.refusals()["layers:residual/lens"]


def test_a_collapsed_stream_and_a_massive_activation() -> None:
    model = made("fused")
    with torch.no_grad():
        model.positions.zero_()
        model.embedding.weight.copy_(torch.full_like(model.embedding.weight, 1e-3))
        model.embedding.weight[:, 3] = 500.0
    sink = models.run(model, "residual", given=Batch(torch.tensor([[0, 1, 2, 3]]), torch.tensor([4])))
    assert sink.array("blocks:residual/rank")[0, 0] == pytest.approx(0.0, abs=1e-12)
    largest, _, _, _, channel, count = sink.array("blocks:residual/massive")[:, 0]
    assert (largest, channel, count) == (500.0, 3, 4)


@pytest.mark.parametrize(
    ("usual", "large", "count"),
    [(1.0, 1500.0, 2), (1.0, 900.0, 0), (0.01, 99.0, 0), (0.01, 101.0, 2), (0.2, -150.0, 0), (0.2, -250.0, 2)],
)
def test_massive_is_above_100_and_above_1000_times_the_median(usual: float, large: float, count: int) -> None:
    """Both bounds of Sun et al. 2024, section 2, one of which alone is not enough."""
    x = torch.full((5, 6), usual, dtype=torch.float64)
    x[1, 4] = x[3, 4] = large
    largest, median, ratio, position, channel, found = massive(x)
    assert (largest, median, position, channel, found) == (abs(large), usual, 1, 4, count)
    assert ratio == pytest.approx(abs(large) / usual)
