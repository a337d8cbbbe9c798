"""A model that computes its own loss: what its output holds is used, and said to be so."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from several_inputs import LanguageModel, made, numbers, run
from torch import Tensor, nn

from inspector.records import Log


def test_the_loss_in_an_output_is_used_and_its_gradients_are_autograds() -> None:
    ids = [1, 5, 2, 7, 0, 3]
    inputs = {"input_ids": {"size": 8}, "labels": {"size": 8, "axis": "input_ids", "padding": -100}}
    trace, sink = run(SimpleNamespace(model=made(LanguageModel), inputs=inputs), {"input_ids": ids, "labels": ids})
    model = made(LanguageModel)
    states, state = [], None
    for i in ids:
        out, state = model.rnn(model.embedding(torch.tensor([[i]])), state)
        states.append(out)
    loss = nn.functional.cross_entropy(
        model.head(torch.cat(states, 1))[:, :-1].transpose(1, 2), torch.tensor([ids[1:]])
    )
    assert sink.scalars()["output:loss/mean"] == pytest.approx(loss.item(), rel=1e-9)
    expected = dict(zip(("embedding.weight", "head.bias"), torch.autograd.grad(
        loss, [model.embedding.weight, model.head.bias], retain_graph=True), strict=True))  # fmt: skip
    for name, gradient in expected.items():
        torch.testing.assert_close(trace.parameter_gradients.every[name], gradient, rtol=1e-9, atol=1e-12)
    assert sink.array("rnn.l0:gradient/state_norm").shape == (6,)
    assert "one number" in sink.refusals()["output:loss"] and "output:loss" not in sink.names()
    assert [log.text for log in sink.of(Log) if "the model's own" in log.text]
    assert sink.array("output:entropy").shape == (6,)  # from `logits`, without a vocabulary
    assert sink.channel("input.labels:token").step_domain == "step"


def test_a_loss_of_every_step_in_an_output_is_kept_by_step() -> None:
    class Stepwise(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rnn = nn.RNN(3, 4, batch_first=True)

        def forward(self, x: Tensor) -> dict[str, Tensor]:
            out = self.rnn(x)[0]
            return {"state": out, "loss": out.square().sum(-1)}

    trace, sink = run(made(Stepwise), {"x": numbers(5, 3)})
    np.testing.assert_allclose(sink.array("output:loss"), trace.output["state"].square().sum(-1)[0].detach(), rtol=1e-6)
    assert "the model's own output" in sink.channel("output:loss").formula
    assert sink.array("rnn.l0:gradient/state_norm").shape == (5,)


def test_a_loss_that_nobody_told_of_is_mentioned() -> None:
    class Hidden(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rnn = nn.RNN(3, 4, batch_first=True)

        def forward(self, x: Tensor) -> dict[str, Tensor]:
            out = self.rnn(x)[0]
            return {"".join(("lo", "ss")): out.sum()}

    _, sink = run(made(Hidden), {"x": numbers(5, 3)})
    assert ["ran without gradients" in log.text for log in sink.of(Log)] == [True]
    assert "rnn.l0:gradient/state_norm" not in sink.names() and "output:loss/mean" in sink.scalars()


def test_the_subjects_own_loss_comes_first() -> None:
    own = SimpleNamespace(
        model=made(LanguageModel), inputs={"input_ids": {"size": 8}, "labels": {"size": 8, "axis": "input_ids"}},
        loss=lambda output, batch: output.logits.square().sum(-1),
    )  # fmt: skip
    trace, sink = run(own, {"input_ids": [1, 2, 3], "labels": [1, 2, 3]})
    expected = trace.output.logits.square().sum(-1)[0].detach()
    np.testing.assert_allclose(sink.array("output:loss"), expected, rtol=1e-6)
    assert not [log for log in sink.of(Log) if "the model's own" in log.text]
