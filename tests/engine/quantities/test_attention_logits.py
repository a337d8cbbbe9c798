"""Scores before the softmax against the same model written out in float64."""

from __future__ import annotations

import math
from collections.abc import Iterator

import attended_models as models
import numpy as np
import pytest
import torch
from attended_models import HEADS, LAYERS, STEPS, WAYS, Reference, made, place, reference
from listed import Listed
from torch import Tensor, nn

import inspector

pytestmark = pytest.mark.usefixtures("one_thread")
NEAR = {"rtol": 1e-5, "atol": 1e-7}
AT = 0.7


@pytest.fixture(scope="module", params=WAYS)
def seen(request: pytest.FixtureRequest) -> Iterator[tuple[str, Listed, Reference]]:
    model = made(request.param)
    asked = ("attention/largest_logit", f"attention/clipped@at={AT}", "attention/pair@query=4@key=2")
    yield request.param, models.run(model, *asked), reference(model, models.batch().inputs[1])


def test_the_largest_score_of_each_query(seen: tuple[str, Listed, Reference]) -> None:
    _, sink, known = seen
    for layer in range(LAYERS):
        name, expected = f"{place(layer)}:attention/largest_logit", known.scores[layer].detach().amax(-1)
        np.testing.assert_allclose(sink.array(name), expected, **NEAR)


class Decaying(nn.Module):
    """h = a h + b in a loop, whose map of a sequence is shown."""

    def __init__(self) -> None:
        super().__init__()
        self.decay, self.into = nn.Linear(3, 4), nn.Linear(3, 4)

    def forward(self, x: Tensor) -> Tensor:
        a, b, h, rows = self.decay(x).sigmoid(), self.into(x), x.new_zeros(x.shape[0], 4), []
        for t in range(x.shape[1]):
            h = a[:, t] * h + b[:, t]
            rows.append(h)
        return torch.stack(rows, 1)


def test_the_map_of_a_recurrence_has_no_scores() -> None:
    only = ("attention/maps", "attention/largest_logit")
    with inspector.run(Decaying(), torch.randn(8, 3).numpy(), only=only) as capture:
        assert "model:attention" in capture.channels
        said = {one.channel: one.reason for one in capture.refusals}["model:attention/largest_logit"]
    assert "linear recurrence" in said
    assert "compute" not in said


def expected_change(scores: Tensor, after: Tensor) -> Tensor:
    """(a, q) ½ Σ |A − A'|."""
    later = torch.ones(STEPS, STEPS, dtype=torch.bool).triu(1)
    one, two = (part.masked_fill(later, -math.inf).softmax(-1) for part in (scores, after))
    return (one - two).abs().sum(-1) / 2


def expected_clipped(scores: Tensor, how: str) -> Tensor:
    scores = scores.detach()
    allowed = scores > -math.inf
    if how == "clamp":
        after = scores.clamp(-AT, AT)
    elif how == "tanh":
        after = AT * torch.tanh(scores / AT)
    else:
        top = scores.amax((1, 2), keepdim=True)
        after = torch.where((top > AT) & allowed, scores * (AT / top), scores)
    change = expected_change(scores, after)
    beyond = (allowed & (scores.abs() > AT)).sum((1, 2)) / allowed.sum((1, 2))
    return torch.stack([scores.amax((1, 2)), beyond, change.mean(1), change.amax(1)])


def test_what_clipping_would_change(seen: tuple[str, Listed, Reference]) -> None:
    _, sink, known = seen
    for layer in range(LAYERS):
        found = sink.array(f"{place(layer)}:attention/clipped").T
        np.testing.assert_allclose(found, expected_clipped(known.scores[layer], "clamp"), **NEAR)
        assert found[1].max() > 0 and found[2].max() > 0, "nothing was clipped"


@pytest.mark.parametrize("how", ["tanh", "scale"])
def test_other_ways_of_clipping(how: str) -> None:
    model = made("fused")
    sink = models.run(model, f"attention/clipped@at={AT}@how={how}")
    known = reference(model, models.batch().inputs[1])
    for layer in range(LAYERS):
        found = sink.array(f"{place(layer)}:attention/clipped").T
        np.testing.assert_allclose(found, expected_clipped(known.scores[layer], how), **NEAR)


@pytest.mark.parametrize("how", ["clamp", "scale"])
def test_a_limit_that_one_head_does_not_reach_changes_nothing_there(how: str) -> None:
    """It lies between the largest scores of two heads (of either sign for a clamp), so that one of both is clipped."""
    model = made("fused")
    known = reference(model, models.batch().inputs[1]).scores[0].detach()
    sizes = known if how == "scale" else known.masked_fill(known == -math.inf, 0.0).abs()
    low, high = sizes.amax((1, 2)).argsort().tolist()
    at = round(float(sizes.amax((1, 2)).mean()), 3)
    found = models.run(model, f"attention/clipped@at={at}@how={how}").array(f"{place(0)}:attention/clipped")
    np.testing.assert_allclose(found[low, 2:], 0.0, atol=1e-12)
    assert (found[high, 2:] > 1e-6).all()


def test_a_pair_by_dimension(seen: tuple[str, Listed, Reference]) -> None:
    _, sink, known = seen
    for layer in range(LAYERS):
        name = f"{place(layer)}:attention/pair"
        q, k = known.queries[layer].detach(), known.keys[layer].detach()
        expected = q[:, 4] * k[:, 2] / math.sqrt(q.shape[-1])
        np.testing.assert_allclose(sink.array(name), expected, **NEAR)
        np.testing.assert_allclose(expected.sum(1), known.scores[layer].detach()[:, 4, 2], rtol=1e-9)
        np.testing.assert_array_equal(sink.array(f"{name}_key"), [2] * HEADS)


def test_the_strongest_key_of_each_head() -> None:
    model = made("fused")
    known = reference(model, models.batch().inputs[1])
    sink = models.run(model, "attention/pair")
    for layer in range(LAYERS):
        np.testing.assert_array_equal(
            sink.array(f"{place(layer)}:attention/pair_key"), known.maps[layer].detach()[:, -1].argmax(-1)
        )
    said = models.run(model, "attention/pair@key=9").refusals().values()
    assert any("no pair" in one for one in said)


class Written(nn.Module):
    """Attention of one head with a softmax of its own, over scores that are given."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.bmm(x.softmax(-1), x)


@pytest.mark.parametrize(("top", "other", "known"), [(30.0, -4.0, True), (30.0, -200.0, True), (60.0, -97.0, False)])
def test_scores_whose_weights_are_0_are_not_guessed(top: float, other: float, known: bool) -> None:
    """Beside 30 a lost weight is of a score that a limit of 50 clamps for certain; beside 60 it is not known."""
    x = torch.full((4, 4), other).fill_diagonal_(top)
    with inspector.run(Written(), x.numpy(), only=("attention/clipped",)) as capture:
        (name,) = (one for one in capture.channels if one.endswith("attention/clipped"))
        found = capture.array(name)[0]
        method = capture.channels[name].method
    a = x.double()
    change = (a.softmax(-1) - a.clamp(-50, 50).softmax(-1)).abs().sum(-1) / 2
    expected = [top, float((a.abs() > 50).double().mean()), float(change.mean()), float(change.max())]
    np.testing.assert_allclose(found, expected if known else [top, *[math.nan] * 3], atol=1e-6)
    assert ("how low their scores are is not known" in method) is not known
