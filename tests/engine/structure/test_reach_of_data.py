"""Which lags the data need, and how far the gradient reaches, against tasks whose answers are known."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import inspector
from inspector.analysis.before_training.trial import trials
from inspector.diagnosis import diagnose
from inspector.engine.analyses.trial.lagged_information import Pairs, information
from inspector.engine.model.subject import Batch, Subject

pytestmark = pytest.mark.usefixtures("one_thread")


def recalled(lag: int, rows: int = 400, steps: int = 24) -> Pairs:
    random = np.random.default_rng(1)
    inputs = random.integers(0, 4, (rows, steps))
    targets = np.full((rows, steps), -1)
    targets[:, -1] = inputs[:, -1 - lag]
    return Pairs.of(list(zip(inputs, targets, strict=True)), from_end=True)


@pytest.mark.parametrize("lag", [0, 1, 20])
def test_the_lag_that_a_task_recalls_is_found_and_no_other(lag: int) -> None:
    found = information(recalled(lag), 23)
    assert np.flatnonzero(found.certain).tolist() == [lag]
    assert found.found[lag] == pytest.approx(math.log(4), rel=0.1)
    assert found.share[lag] > 0.8


def test_information_is_that_of_the_frequencies() -> None:
    """One lag, written out: I(y; b | a) of a table of counts, less the mean of the null."""
    random = np.random.default_rng(3)
    x = random.integers(0, 2, (300, 2))
    y = np.where(random.random(300) < 0.8, x[:, 0] ^ x[:, 1], random.integers(0, 2, 300))
    pairs = Pairs.of([(a, np.array([-1, b])) for a, b in zip(x, y, strict=True)], from_end=True)
    counts = np.zeros((2, 2, 2))
    for (before, now), target in zip(x, y, strict=True):
        counts[before, now, target] += 1
    p = counts / counts.sum()
    terms = p * np.log(p * p.sum((0, 2), keepdims=True) / p.sum(0, keepdims=True) / p.sum(2, keepdims=True))
    assert information(pairs, 1).found[1] == pytest.approx(terms.sum(), abs=0.01)


def test_noise_depends_on_nothing_and_a_chain_on_its_newest_state() -> None:
    """A slow Markov chain has much mutual information at every lag, all of which its newest state has too."""
    random = np.random.default_rng(2)
    noise, chain = random.integers(0, 5, (60, 40)), np.zeros((60, 40), dtype=np.int64)
    for t in range(1, 40):
        chain[:, t] = np.where(random.random(60) < 0.1, random.integers(0, 5, 60), chain[:, t - 1])
    for table, lags in ((noise, []), (chain, [0])):
        pairs = Pairs.of([(one[:-1], one[1:]) for one in table], from_end=False)
        assert np.flatnonzero(information(pairs, 38).certain).tolist() == lags


def test_words_that_occur_once_tell_nothing() -> None:
    """125 words of which hardly one comes twice: every table is as sparse as any other."""
    x = np.random.default_rng(4).zipf(1.3, 126).clip(max=400)
    found = information(Pairs.of([(x[:-1], x[1:])], from_end=False), 60)
    assert not found.certain.any()


def test_one_long_sequence_is_moved_around_itself() -> None:
    x = np.random.default_rng(0).integers(0, 4, 600)
    y = np.roll(x, 7)
    y[:7] = -1
    found = information(Pairs.of([(x, y)], from_end=False), 40)
    assert np.flatnonzero(found.certain).tolist() == [7]


class Recalls(nn.Module):
    """Says at the end which symbol was the first: with open gates, or with a recurrence that shrinks."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(4, 6), nn.Linear(12, 4)
        self.rnn = (nn.LSTM if kind == "open" else nn.RNN)(6, 12, batch_first=True)
        with torch.no_grad():
            if kind == "open":
                self.rnn.bias_ih_l0[12:24] = 5.0
            else:
                self.rnn.weight_hh_l0.mul_(0.5)

    def forward(self, ids: Tensor) -> Tensor:
        scores: Tensor = self.head(self.rnn(self.embed(ids))[0])
        return scores


def of_last(output: Tensor, batch: Batch) -> Tensor:
    """(b, t) the cross-entropy of the last step, NaN elsewhere."""
    found = torch.full(batch.inputs.shape, torch.nan)
    assert isinstance(batch.targets, Tensor)
    last = nn.functional.cross_entropy(output[:, -1], batch.targets[:, -1], reduction="none")
    return torch.cat([found[:, :-1], last[:, None]], 1)


@pytest.mark.parametrize(
    ("kind", "rows", "word"), [("shrinks", 300, "fault"), ("open", 300, "holds"), ("period", 1, "fact")]
)
def test_a_lag_that_the_gradient_does_not_reach_is_a_fault(kind: str, rows: int, word: str) -> None:
    """Of one sequence, that repeats itself, a note: what repeats need not be needed."""
    torch.manual_seed(0)
    if kind == "period":
        ids = torch.randint(0, 4, (40,)).repeat(6)
        pairs = [(ids[:-1], ids[1:])]
        subject = Subject(model=Recalls(kind), loss=of_all, kind="tokens", examples={"a": pairs[0]})
    else:
        drawn = torch.randint(0, 4, (rows, 20))
        pairs = [(one, torch.where(torch.arange(20) == 19, one[0], -100)) for one in drawn]
        subject = Subject(model=Recalls(kind), loss=of_last, kind="tokens", data=pairs, examples={"a": pairs[0]})
    with inspector.run(subject, only=["trial/reach"]) as capture:
        (told,) = trials(capture, only="reach")
        found = diagnose(capture, capture.frames).findings
    assert told.word == word
    assert f"The data depend on inputs {39 if kind == 'period' else 19} steps back" in told.sentence
    assert [one.severity for one in found if one.id == "IN206"] == (["warning"] if word == "fault" else [])


def of_all(output: Tensor, batch: Batch) -> Tensor:
    """(b, t) the cross-entropy of each step."""
    assert isinstance(batch.targets, Tensor)
    return nn.functional.cross_entropy(output.transpose(1, 2), batch.targets, reduction="none")
