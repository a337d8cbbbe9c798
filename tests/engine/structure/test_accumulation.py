"""Accumulated gradients against those of the batch, by loops whose gradients are known."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import inspector
from inspector.analysis.before_training.structure import verdicts
from inspector.analysis.before_training.verdicts import Verdict
from inspector.diagnosis import diagnose
from inspector.engine.model.subject import Batch, Subject

Backward = Callable[[nn.Module, Batch, int], None]
LENGTHS = (5, 3, 2, 5)
DATA = [torch.randn(length, 2, generator=torch.Generator().manual_seed(length + n)) for n, length in enumerate(LENGTHS)]


class Line(nn.Module):
    """y = w · x, with batch normalisation or dropout before it where wanted."""

    def __init__(self, *between: nn.Module) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.between, self.line = nn.Sequential(*between), nn.Linear(2, 1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.line(self.between(x.flatten(0, 1)).view(x.shape))[..., 0]  # type: ignore[no-any-return]


def squares(model: nn.Module, inputs: Tensor, lengths: Tensor) -> Tensor:
    """(targets,) of (y − 1)²."""
    return ((model(inputs) - 1) ** 2)[torch.arange(inputs.shape[1]) < lengths[:, None]]


def looped(divided: Callable[[Tensor, Batch, int], Tensor]) -> Backward:
    """A loop that divides the squares of a pass in some way before their backward."""

    def backward(model: nn.Module, batch: Batch, passes: int) -> None:
        for inputs, lengths in zip(batch.inputs.chunk(passes), batch.lengths.chunk(passes), strict=True):
            divided(squares(model, inputs, lengths), batch, passes).backward()  # type: ignore[no-untyped-call]

    return backward


RIGHT = looped(lambda values, batch, _: values.sum() / batch.lengths.sum())
SUMMED = looped(lambda values, batch, passes: passes * values.sum() / batch.lengths.sum())
OF_MEANS = looped(lambda values, _, passes: values.mean() / passes)


def judged(backward: Backward | None, *between: nn.Module, data: list[Tensor] = DATA, training: bool = False) -> tuple[
    list[Verdict], np.ndarray, list[str], list[str]]:  # fmt: skip
    """(what is said, the table, reasons, ids of findings)."""
    model = Line(*between).train(training)
    model.line.weight.grad = torch.full((1, 2), 7.0)
    before = model.line.weight.detach().clone()
    subject = Subject(model=model, kind="vectors", backward=backward)
    with inspector.run(subject, data, only=["structure/accumulation"]) as capture:
        name = "model:structure/accumulation"
        table = np.asarray(capture.array(name)) if name in capture.channels else np.zeros(0)
        found = [one.id for one in diagnose(capture, capture.frames).findings]
        reasons = [one.reason for one in capture.refusals if one.channel == name]
        said = verdicts(capture, only="accumulation")
    assert torch.equal(model.line.weight.detach(), before) and bool((model.line.weight.grad == 7).all())
    return said, table, reasons, found


def gradient(values: Tensor, weight: Tensor) -> np.ndarray:
    return np.asarray(torch.autograd.grad(values, weight, retain_graph=True)[0]).ravel().astype(float)


def test_a_loop_that_divides_by_all_targets_is_right() -> None:
    (said,), table, _, found = judged(RIGHT)
    assert said.word == "holds" and said.sentence.startswith(
        "Accumulated in 2 passes or 4 passes, the gradient of these 4"
    )
    assert (table[0] < 1e-6).all() and table[1] == pytest.approx(1.0) and not found


def test_means_of_passes_are_as_far_off_as_by_hand() -> None:
    (said,), table, _, found = judged(OF_MEANS)
    model, weights = Line(), []
    parts = [((model(one[None]) - 1) ** 2).flatten() for one in DATA]
    whole = gradient(torch.cat(parts).mean(), model.line.weight)
    for groups in ([parts[:2], parts[2:]], [[one] for one in parts]):
        each = [gradient(torch.cat(group).mean(), model.line.weight) for group in groups]
        weights.append(np.linalg.norm(np.mean(each, 0) - whole) / np.linalg.norm(whole))
    assert table[0] == pytest.approx(weights, rel=1e-4) and found == ["IN123"]
    assert said.word == "fault" and "would weigh the targets of short ones more" in said.sentence


def test_a_gradient_that_is_only_too_large_is_said_to_be() -> None:
    (said,), table, _, _ = judged(SUMMED)
    assert "it is 4 times as large" in said.sentence and table[1] == pytest.approx([2, 4], rel=1e-5)
    assert (table[2] < 1e-5).all()


def test_a_normalisation_over_the_batch_is_found_in_training_mode_alone() -> None:
    even = [one[:2] for one in DATA]
    assert judged(RIGHT, nn.BatchNorm1d(2), data=even)[3] == []
    (said,), _, _, found = judged(RIGHT, nn.BatchNorm1d(2), data=even, training=True)
    assert found == ["IN123"] and "It is batch normalisation" in said.sentence
    (said,), _, _, found = judged(OF_MEANS, nn.BatchNorm1d(2), training=True)  # with and without it
    assert found == ["IN123"] and "short ones more" in said.sentence
    (said,), _, _, _ = judged(OF_MEANS, nn.Tanh(), data=[*even, even[0]])
    assert "or the model normalises over its batch" in said.sentence


def test_a_loop_in_autocast_is_compared_without_its_rounding() -> None:
    def mixed(model: nn.Module, batch: Batch, passes: int, *, right: bool) -> None:
        for inputs, lengths in zip(batch.inputs.chunk(passes), batch.lengths.chunk(passes), strict=True):
            with torch.autocast("cpu", torch.bfloat16):
                values = squares(model, inputs, lengths)
                assert values.dtype == torch.float32 and torch.is_autocast_enabled("cpu")
            mean = values.sum() / batch.lengths.sum() if right else values.mean() / passes
            mean.backward()  # type: ignore[no-untyped-call]

    assert judged(partial(mixed, right=True), nn.Linear(2, 2))[3] == []
    assert judged(partial(mixed, right=False), nn.Linear(2, 2))[3] == ["IN123"]


def test_dropout_does_not_disturb_and_what_cannot_be_tested_is_said() -> None:
    assert judged(RIGHT, nn.Dropout(0.5), training=True)[3] == []
    assert judged(None)[:3] == ([], pytest.approx(np.zeros(0)), [])

    def noisy(model: nn.Module, batch: Batch, passes: int) -> None:
        (squares(model, batch.inputs, batch.lengths) * torch.rand(())).sum().backward()  # type: ignore[no-untyped-call]

    def still(model: nn.Module, batch: Batch, passes: int) -> None:
        """No backward at all."""

    def failing(model: nn.Module, batch: Batch, passes: int) -> None:
        raise RuntimeError("no")

    for backward, reason in ((noisy, "With other random numbers"), (still, "The gradient of one pass is 0"),
                             (failing, "The subject's backward, with 1 passes,")):  # fmt: skip
        said, _, reasons, found = judged(backward)
        assert [one.word for one in said] == ["not tested"] and reasons[0].startswith(reason) and not found
    assert "one sequence" in judged(RIGHT, data=DATA[:1])[2][0]


def test_gradients_that_are_nan_in_several_passes() -> None:
    def broken(model: nn.Module, batch: Batch, passes: int) -> None:
        (squares(model, batch.inputs, batch.lengths).sum() * (torch.nan if passes > 2 else 1.0)).backward()  # type: ignore[no-untyped-call]

    (said,), _, _, found = judged(broken)
    assert said.sentence == "In 4 passes the gradient is NaN or infinite, in one it is not." and found == ["IN123"]


def test_a_loop_that_steps_changes_nothing() -> None:
    def stepping(model: nn.Module, batch: Batch, passes: int) -> None:
        RIGHT(model, batch, passes)
        with torch.no_grad():
            for one in model.parameters():
                one -= 0.1 * one.grad

    assert judged(stepping)[3] == []
