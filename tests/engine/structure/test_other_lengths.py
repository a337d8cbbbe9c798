"""Time and memory of a step of training by length, against models whose memory is counted by hand."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import inspector
from inspector.analysis.before_training.other_lengths import exponents, further, lengths_verdict, square
from inspector.analysis.before_training.trial import trials
from inspector.analysis.sizes import bytes_text
from inspector.capture import Capture
from inspector.engine.analyses.trial.other_lengths import of_length
from inspector.engine.errors import Unsupported
from inspector.engine.model.subject import Batch, Subject

pytestmark = pytest.mark.usefixtures("one_thread")
WIDTH = 24


def squares(output: Tensor, _batch: Batch) -> Tensor:
    return output.pow(2).mean(-1)


class Layer(nn.Module):
    """tanh(x W): its result is kept for the backward pass of tanh and of the square, once."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3, WIDTH) / 2)

    def forward(self, x: Tensor) -> Tensor:
        return torch.tanh(x @ self.weight)


class WrittenAttention(Layer):
    """Keeps its weights, (t, t)."""

    def forward(self, x: Tensor) -> Tensor:
        h = super().forward(x)
        return torch.softmax(h @ h.transpose(1, 2), -1) @ h


class Positions(Layer):
    """Has sixteen positions, and no more."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.zeros(16, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) + self.table[torch.arange(x.shape[1])]


def measured(model: nn.Module, steps: int) -> Capture:
    subject = Subject(model=model, kind="vectors", width=3, loss=squares)
    given = np.random.default_rng(0).normal(size=(steps, 3)).astype(np.float32)
    return inspector.run(subject, given, only=["trial/other_lengths"])


def table(capture: Capture) -> np.ndarray:
    return np.asarray(capture.array("model:trial/other_lengths"))


def test_memory_is_what_the_backward_pass_needs_and_time_is_in_its_range() -> None:
    model = Layer()
    before = model.weight.detach().clone()
    with measured(model, 40) as capture:
        steps, seconds, least, most, kept = table(capture)
        scalars = {one.name: one.value for one in capture.scalars}
    assert steps.tolist() == [10, 20, 40, 80]
    assert set((kept - 4 * WIDTH * steps) / steps) <= {0, 1}, "a byte a step where it is marked which carry a loss"
    assert ((least > 0) & (least <= seconds) & (seconds <= most)).all()
    assert scalars["trial/other_lengths/fixed"] == 4 * 4 * 3 * WIDTH and scalars["trial/other_lengths/steps"] == 40
    assert torch.equal(model.weight, before) and model.weight.grad is None


def test_attention_that_keeps_its_weights_grows_with_the_square() -> None:
    with measured(WrittenAttention(), 256) as capture:
        steps, *_, kept = table(capture)
        (verdict,) = trials(capture, only="other lengths")
    low, high = exponents(steps, kept)
    assert 1.7 < low <= high < 2.05
    assert (kept >= 4 * steps**2).all()
    assert verdict.word == "fact" and "With 2,560 steps, if it goes on as from 64 to 512" in verdict.sentence


def test_lengths_that_the_model_cannot_take_are_left_out() -> None:
    with measured(Positions(), 12) as capture:
        assert table(capture)[0].tolist() == [3, 6, 12]


def test_few_steps_are_compared_with_more() -> None:
    with measured(Layer(), 1) as capture:
        assert table(capture)[0].tolist() == [1, 2, 4, 8]


def test_targets_that_do_not_lie_along_the_steps_are_a_reason() -> None:
    batch = Batch(torch.arange(9)[None], torch.tensor([9]), targets=torch.arange(9)[None])
    assert (
        of_length(batch, 20).targets.tolist() == of_length(batch, 20).inputs.tolist() == [[*range(9), *range(9), 0, 1]]
    )
    assert of_length(batch, 4).inputs.tolist() == [[0, 1, 2, 3]] and of_length(batch, 4).lengths.tolist() == [4]
    batch.targets = {"answer": 1}
    with pytest.raises(Unsupported, match="do not lie along the steps"):
        of_length(batch, 4)


def test_growth_goes_on_by_either_slope() -> None:
    steps = np.array([1.0, 2.0, 4.0])
    assert exponents(steps, steps**2) == pytest.approx((2, 2))
    assert exponents(steps, np.array([1.0, 1.0, 4.0])) == pytest.approx((1, 2))
    assert further(steps, np.array([[1.0, 1.0, 2.0]]), 40) == pytest.approx((2 * 10**0.5, 2 + 36 * (1 / 2 + 38 / 6)))
    assert further(steps, np.array([[1.0, 2.0, 4.0], [1.0, 3.0, 5.0]]), 40) == pytest.approx((40, 50))
    assert all(math.isnan(one) for one in exponents(steps, np.zeros(3)))


def test_memory_further_on_is_that_of_squares_and_lines_together() -> None:
    """At first the line hides the square: the slope says T^1.2 of 50 + 9T + T²/8, which has T² at 640 steps for most."""
    steps = np.array([16.0, 32.0, 64.0, 128.0])

    def grown(t: np.ndarray) -> np.ndarray:
        return 50 + 9 * t + t**2 / 8

    assert square(steps, grown(steps), 640) == pytest.approx(grown(np.array(640.0)))
    assert square(steps[:2], grown(steps)[:2], 64) == pytest.approx(466 + 32 * 15), "a line through two"
    assert square(steps, np.sqrt(steps), 640) == pytest.approx(128**0.5 + 512 * (128**0.5 - 8) / 64), "c is not below 0"
    assert square(steps, np.full(4, 7.0), 640) == 7


def sentence(steps: np.ndarray, seconds: np.ndarray) -> str:
    numbers = np.stack([steps, *[seconds] * 3, steps])
    read = SimpleNamespace(
        array=lambda _: numbers,
        channel=lambda _: "",
        scalar={"other_lengths/steps": 16.0, "other_lengths/fixed": 0.0}.get,
    )
    (verdict,) = lengths_verdict(read)  # type: ignore[arg-type]
    return verdict.sentence


@pytest.mark.parametrize(("power", "said"), [(0.3, True), (1.0, False), (2.0, False)])
def test_time_that_hardly_grows_is_said_to_be_that_of_calling(power: float, said: bool) -> None:
    steps = np.array([4.0, 8.0, 16.0, 32.0])
    assert ("calling operations" in sentence(steps, 0.01 * steps**power)) == said


def test_time_that_shrinks_is_not_estimated() -> None:
    steps = np.array([4.0, 8.0, 16.0, 32.0])
    said = sentence(steps, np.array([1.0, 2.0, 4.0, 3.9]))
    assert "not estimated" in said and "T^-" not in said and "time grows" not in said
    assert f"With 160 steps, if it goes on as from 4 to 32: {bytes_text(160.0)} (memory grows as T^1.0" in said


def test_the_sentence_tells_the_memory_that_ten_times_the_steps_take() -> None:
    with measured(WrittenAttention(), 16) as capture, measured(WrittenAttention(), 160) as longer:
        (verdict,) = trials(capture, only="other lengths")
        steps, *_, kept = table(longer)
    (own,) = kept[steps == 160]
    assert f" {bytes_text(own)} (" in verdict.sentence
