"""NaN that means "no loss here" is no number; NaN that the model made is, in the loss and in every gradient."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from kept import Kept
from torch import Tensor, nn

from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform

D = torch.float64
KEYS = ("output/loss", "clipping", "health", "depth/parameters")


class Net(nn.Module):
    """A GRU whose output is wrapped as the model's author likes."""

    def __init__(self, wrap: Callable[[Tensor], Any] = lambda out: out) -> None:
        super().__init__()
        self.rnn, self.head, self.wrap = nn.GRU(2, 4, batch_first=True), nn.Linear(4, 3), wrap

    def forward(self, x: Tensor) -> Any:
        return self.wrap(self.head(self.rnn(x)[0]))


@dataclass
class Answer:
    logits: Tensor


def judged(scores: Tensor, batch: Batch) -> Tensor:
    """Only steps 2 and later carry a loss, of real steps."""
    there = (torch.arange(scores.shape[1]) >= 2) & (torch.arange(scores.shape[1]) < batch.lengths[:, None])
    return torch.where(there, scores.square().sum(-1), torch.nan)


STYLES: dict[str, tuple[Callable[[Tensor], Any], Callable[[Any, Batch], Tensor]]] = {
    "tensor": (lambda out: out, judged),
    "tuple": (lambda out: (out, None), lambda out, batch: judged(out[0], batch)),
    "dictionary": (lambda out: {"logits": out}, lambda out, batch: judged(out["logits"], batch)),
    "dataclass": (Answer, lambda out, batch: judged(out.logits, batch)),
}


def run(
    style: str = "tensor", bad: int | None = None, loss: Any = None, targets: Any = None
) -> tuple[Net, Batch, Kept]:
    torch.manual_seed(0)
    wrap, own = STYLES[style]
    net = Net(wrap).to(D).eval()
    x = torch.randn(2, 7, 2, dtype=D)
    if bad is not None:
        x[1, bad] = torch.nan
    batch, kept = Batch(x, torch.tensor([7, 6]), targets=targets), Kept()
    perform(Subject(model=net, kind="vectors", width=2, loss=loss or own), batch, kept, RunOptions(only=KEYS))
    return net, batch, kept


@pytest.mark.parametrize("style", STYLES)
def test_steps_without_a_loss_are_left_out(style: str) -> None:
    net, batch, kept = run(style)
    loss = STYLES[style][1](net(batch.inputs), batch)
    there = ~loss.isnan()
    assert kept.scalar("output:loss/mean") == pytest.approx(loss[there].mean().item(), rel=1e-6)
    assert kept.scalar("output:loss/terms") == int(there.sum()) == 9 and kept.scalar("output:loss/nan") == 0
    counts = kept.array("output:health/loss")
    assert counts[:6].sum() == 9 and counts[5] == 0
    assert math.isfinite(kept.scalar("parameters:clipping/gradient_norm"))
    assert "parameters:health/gradient/head.bias" not in kept.names()


@pytest.mark.parametrize("style", STYLES)
def test_a_nan_of_the_model_makes_the_mean_and_the_gradients_nan_as_in_training(style: str) -> None:
    net, batch, kept = run(style, bad=4)
    loss = STYLES[style][1](net(batch.inputs), batch)
    terms = loss[:, 2:][torch.tensor([[True] * 5, [True] * 4 + [False]])]
    assert bool(terms.mean().isnan()) and math.isnan(kept.scalar("output:loss/mean"))
    assert kept.scalar("output:loss/terms") == 9 and kept.scalar("output:loss/nan") == 2
    assert kept.array("output:health/loss")[5:].tolist() == [2, 4]
    terms.sum().backward()
    expected = [name for name, one in net.named_parameters() if not bool(one.grad.isfinite().all())]  # type: ignore[union-attr]
    assert len(expected) == 6, "all that training would get"
    table = kept.array("parameters:clipping/norms")
    assert np.isnan(table[0]).all() and math.isnan(kept.scalar("parameters:clipping/gradient_norm"))
    every = sum(one.numel() for one in net.parameters())
    broken = sum(int(one.grad.isnan().sum()) for one in net.parameters())  # type: ignore[union-attr]
    assert kept.array("parameters:health/gradient").tolist()[5:] == [broken, -1]
    assert kept.array("parameters:health/gradient")[:6].sum() == every
    for name in expected:
        assert kept.array(f"parameters:health/gradient/{name}")[5] > 0
    assert np.isnan(kept.array("layers:parameter/gradient")).all()


def test_a_loss_function_that_makes_nan_of_finite_outputs_counts_as_the_model() -> None:
    def entropy(scores: Tensor, batch: Batch) -> Tensor:
        p = scores.softmax(-1) * (torch.arange(7) != 5)[:, None]
        return -(p * p.log()).sum(-1)  # 0 log 0 at step 5, whatever the scores

    _, _, kept = run(loss=entropy)
    assert kept.scalar("output:loss/nan") == 0, "NaN whatever the model answers says nothing of the model"

    def ratio(scores: Tensor, batch: Batch) -> Tensor:
        cut = scores[..., 0].clamp(min=0)
        return cut / cut  # 0 / 0 where the first score is negative

    net, batch, kept = run(loss=ratio)
    negative = net(batch.inputs)[..., 0] <= 0
    assert kept.scalar("output:loss/nan") == int(negative.sum()) > 0


def test_without_a_loss_function_to_call_the_scores_and_the_targets_tell() -> None:
    from inspector.engine.pipeline.loss_steps import loss_steps
    from inspector.engine.trace.trace import Trace

    nan = torch.nan
    loss = torch.tensor([[nan, nan, 1.0, nan]])
    trace = Trace(Subject(model=nn.Identity(), kind="tokens"), Batch(torch.zeros(1, 4).long(), torch.tensor([4])))
    trace.logits = torch.tensor([[[1.0], [1.0], [1.0], [nan]]])
    assert loss_steps(trace, None, loss).tolist() == [[False, False, True, True]], "a score is NaN at the last step"
    trace.logits = torch.ones(1, 4, 1)
    trace.batch.targets = torch.tensor([[-100, 3, 2, -100]])
    assert loss_steps(trace, None, loss).tolist() == [[False, True, True, False]], "a target is there at step 1"
    trace.batch.targets = torch.tensor([[nan, 3.0, 2.0, 1.0]])
    assert loss_steps(trace, None, loss).tolist() == [[False, True, True, True]]
    trace.batch.targets = torch.tensor([[1, 3, 2, 1]])
    assert loss_steps(trace, None, loss).tolist() == [[False, False, True, False]], "no target says so"


@pytest.mark.parametrize(("classes", "limit"), [(3, 1.1), (27, 3.4), (100, 3.4)])
def test_a_logarithm_of_a_negative_number_is_the_models(classes: int, limit: float) -> None:
    """log(limit − cross entropy) is NaN for some or all random scores, and where the model is wrong."""
    torch.manual_seed(0)
    tokens = torch.randint(classes, (2, 40))
    scores = torch.randn(2, 40, classes, dtype=D)
    right = torch.arange(40) % 2 == 0
    scores[:, right] = scores[:, right].scatter_add(2, tokens[:, right, None], torch.full((2, 20, 1), 9.0, dtype=D))

    class Fixed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scores = nn.Parameter(scores)

        def forward(self, ids: Tensor) -> Tensor:
            return self.scores * 1

    def loss(given: Tensor, batch: Batch) -> Tensor:
        one = torch.nn.functional.cross_entropy(given.transpose(1, 2), batch.inputs, reduction="none")
        own: Tensor = torch.where(torch.arange(40) < 3, torch.nan, torch.log(limit - one))
        return own

    kept = Kept()
    model = Fixed()
    vocabulary = tuple(map(str, range(classes)))
    subject = Subject(model=model, kind="tokens", vocabulary=vocabulary, loss=loss)
    perform(subject, Batch(tokens, torch.tensor([40, 40])), kept, RunOptions(only=("output/loss",)))
    batch = Batch(tokens, torch.tensor([40, 40]))
    genuine = int(loss(scores, batch)[:, 3:].isnan().sum())
    assert genuine > 10 and kept.scalar("output:loss/nan") == genuine
    assert kept.scalar("output:loss/terms") == 2 * 37
    formula = kept.channel("output:loss").formula
    assert "every time" in formula and "would be taken for none" in formula
