"""Outputs, inputs and health against plain loops."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from listed import Listed
from torch import Tensor, nn

from inspector.engine.model.subject import Batch, Subject
from inspector.engine.quantities.values import outputs
from inspector.engine.quantities.values.health import COUNTS, count, merge
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.trace import Attention, Trace
from inspector.records import Channel, Refusal

pytestmark = pytest.mark.usefixtures("one_thread")


def traced(inputs: Tensor, lengths: list[int], look_at: int = 0, **subject: Any) -> Trace:
    return Trace(Subject(nn.Identity(), **subject), Batch(inputs, torch.tensor(lengths), look_at=look_at))


def written(trace: Trace, *keys: str) -> Listed:
    sink = Listed()
    for key in keys:
        QUANTITIES[key].run(trace, Emitter(sink))
    return sink


@pytest.mark.parametrize("block", [1, 7, 1 << 22])
def test_surprise_top_and_entropy_by_loops(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outputs, "BLOCK_ENTRIES", block)
    ids = torch.randint(0, 11, (2, 9))
    trace = traced(ids, [9, 7], look_at=1, next_token=True, vocabulary=list("abcdefghijk"))
    trace.logits = torch.randn(2, 9, 11, dtype=torch.float64)
    sink = written(trace, "output/probabilities")
    p = torch.softmax(trace.logits[1, :7], -1)
    surprise = [math.nan] + [-math.log(float(p[t, int(ids[1, t + 1])])) for t in range(6)]
    np.testing.assert_allclose(sink.array("output:surprise"), surprise, rtol=1e-5)
    entropy = [-sum(float(x) * math.log(float(x)) for x in row) for row in p]
    np.testing.assert_allclose(sink.array("output:entropy"), entropy, rtol=1e-5)
    for t in range(7):
        order = sorted(range(11), key=lambda v, t=t: -float(p[t, v]))[:8]  # type: ignore[misc]
        assert sink.array("output:token")[t].tolist() == order
        np.testing.assert_allclose(sink.array("output:probability")[t], p[t, order], rtol=1e-5)
    assert sink.channel("output:token").value_domain == "vocabulary"


def test_an_acceptor_has_its_one_row_at_the_last_step() -> None:
    trace = traced(torch.randn(1, 5, 3), [5], labels=["no", "yes"])
    trace.logits = torch.tensor([[[0.0, 2.0]]])
    sink = written(trace, "output/probabilities")
    assert sink.array("output:token").tolist() == [[-1, -1]] * 4 + [[1, 0]]
    assert np.isnan(sink.array("output:probability")[:4]).all()
    assert sink.channel("output:token").value_domain == "class"
    assert not any(isinstance(record, Channel) and record.name == "output:surprise" for record in sink)


def test_nan_scores_and_minus_infinity_and_ids_outside() -> None:
    trace = traced(torch.tensor([[0, 1, 9]]), [3], next_token=True)
    trace.logits = torch.tensor([[[0.0, -math.inf, 1.0], [math.nan, 0.0, 0.0], [0.0, 0.0, 0.0]]])
    sink = written(trace, "output/probabilities")
    surprise = sink.array("output:surprise")
    assert np.isnan(surprise[0]) and surprise[1] == math.inf and np.isnan(surprise[2])
    entropy = sink.array("output:entropy")
    assert entropy[0] == pytest.approx(0.5822, abs=1e-4) and np.isnan(entropy[1])


def test_one_step_has_no_surprise_but_its_answers() -> None:
    trace = traced(torch.tensor([[2]]), [1], next_token=True)
    trace.logits = torch.randn(1, 1, 4)
    sink = written(trace, "output/probabilities")
    assert np.isnan(sink.array("output:surprise")).all() and sink.array("output:token").shape == (1, 4)


@pytest.mark.parametrize("steps", [2, 6])
def test_answers_with_steps_of_their_own_are_refused_not_cut(steps: int) -> None:
    trace = traced(torch.tensor([[0, 1, 2, 3]]), [4])
    trace.logits = torch.randn(1, steps, 5)
    (refusal,) = written(trace, "output/probabilities")
    assert isinstance(refusal, Refusal) and f"have {steps} steps and the input 4" in refusal.reason


def test_loss_its_mean_over_all_samples_and_perplexity() -> None:
    trace = traced(torch.zeros(2, 4, dtype=torch.long), [4, 2], look_at=1, next_token=True)
    trace.loss = torch.tensor([[1.0, 2.0, 3.0, math.nan], [5.0, math.nan, math.nan, math.nan]])
    sink = written(trace, "output/loss")
    np.testing.assert_array_equal(sink.array("output:loss"), np.array([5.0, np.nan], np.float32))
    counts = {"output:loss/terms": 4, "output:loss/nan": 0}
    assert sink.scalars() == {"output:loss/mean": 2.75, "output:perplexity": pytest.approx(math.exp(2.75)), **counts}


def test_nothing_without_loss_and_scores() -> None:
    assert written(traced(torch.zeros(1, 3, 2), [3]), "output/loss", "output/probabilities") == []


def test_inputs_are_tokens_or_vectors_of_the_real_steps() -> None:
    sink = written(traced(torch.tensor([[1, 2, 3], [4, 5, 0]]), [3, 2], look_at=1), "input")
    assert sink.array("input:token").tolist() == [4, 5] and sink.channel("input:token").value_domain == "vocabulary"
    values = torch.randn(2, 3, 4)
    sink = written(traced(values, [3, 2], look_at=1), "input")
    np.testing.assert_array_equal(sink.array("input:value"), values[1, :2].numpy())
    sink = written(traced(torch.randn(1, 3), [3]), "input")
    assert sink.array("input:value").shape == (3, 1)


VALUES = st.sampled_from([-math.inf, -2.0, -0.0, 0.0, 1.5, math.inf, math.nan])


@settings(deadline=None, max_examples=50)
@given(st.lists(st.lists(VALUES, min_size=2, max_size=2), min_size=1, max_size=6), st.integers(0, 5))
def test_health_counts_by_loops(table: list[list[float]], split: int) -> None:
    values = torch.tensor(table)
    steps = torch.arange(10, 10 + len(table))
    expected = [0] * 7
    expected[6] = -1
    for n, row in enumerate(table):
        for x in row:
            where = (
                5
                if math.isnan(x)
                else 0
                if x == -math.inf
                else 4
                if x == math.inf
                else 1
                if x < 0
                else 3
                if x > 0
                else 2
            )
            expected[where] += 1
            if not math.isfinite(x) and expected[6] < 0:
                expected[6] = 10 + n
    assert count(values, steps).tolist() == expected
    parts = [count(values[:split], steps[:split]), count(values[split:], steps[split:])]
    assert merge(*parts).tolist() == expected


def test_health_of_inputs_scores_and_attention_over_real_steps_only() -> None:
    inputs = torch.ones(2, 4, 3)
    inputs[0, 2, 1] = math.nan
    inputs[1, 2:] = math.inf  # padding
    trace = traced(inputs, [4, 2])
    trace.logits = torch.zeros(2, 4, 5)
    key = torch.zeros(1, 2, 4, 3)
    key[0, 1, 3] = -math.inf
    trace.attentions.append(Attention("layer", "Self", torch.ones(1, 2, 4, 3), key, 1.0, kept=0))
    sink = written(trace, "health")
    assert sink.channel("input:health/value").labels == {"count": COUNTS}
    assert sink.array("input:health/value").tolist() == [0, 0, 0, 17, 0, 1, 2]
    assert sink.array("output:health/scores").tolist() == [0, 0, 30, 0, 0, 0, -1]
    assert sink.array("layer:health/attention/query").tolist() == [0, 0, 0, 24, 0, 0, -1]
    assert sink.array("layer:health/attention/key").tolist() == [3, 0, 21, 0, 0, 0, 3]
    assert sink.array("layer:health/attention/key").dtype == np.int64


def test_health_of_recurrent_states_gates_and_gradients() -> None:
    from inspector.engine.model.subject import adopt
    from inspector.engine.pipeline import RunOptions, perform

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rnn = nn.GRU(3, 4, batch_first=True, bidirectional=True)

        def forward(self, x: Tensor) -> Tensor:
            out: Tensor = self.rnn(x)[0]
            return out

    x = torch.randn(2, 6, 3)
    x[0, 4] = math.nan
    subject = adopt(Model().eval())
    subject.loss = lambda output, _batch: output.square().mean(-1)
    sink = Listed()
    perform(subject, Batch(x, torch.tensor([6, 5])), sink, RunOptions(only=("health",)))
    forward, backward = sink.array("rnn.l0:health/h"), sink.array("rnn.l0.reverse:health/h")
    assert forward.sum() - forward[-1] == (6 + 5) * 4 and forward[-1] == 4 and forward[5] == 2 * 4
    assert backward[-1] == 0 and backward[5] == 5 * 4  # the backward direction is bad from step 4 down to 0
    assert sink.array("rnn.l0:health/gate/update").sum() - sink.array("rnn.l0:health/gate/update")[-1] == 6 * 4
