"""Second halves that a model draws itself beside real ones: a chain whose entropies are known, and the rule on them."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import inspector
from inspector.capture import open_capture
from inspector.diagnosis import Settings, diagnose
from inspector.engine.decoding.own_continuation import by_sequence, entropy, halves, repeated

STEPS, ROWS, SLIP = 32, 40, 0.08


class Chain(nn.Module):
    """Counts on from 0 to 5, but slips to 6 with probability `slip`; after 6 comes any of 6 and 7 for ever, or (`back`)
    a number."""

    def __init__(self, slip: float, *, back: bool = False, nan: bool = False) -> None:
        super().__init__()
        table = torch.zeros(8, 8)
        for n in range(6):
            table[n, (n + 1) % 6], table[n, 6] = 1 - slip, slip
        table[6:, 6:] = 0.5
        if back:
            table[6:] = torch.tensor([1.0, 0, 0, 0, 0, 0, 0, 0])
        self.scores = nn.Parameter(table.log() if not nan else table * torch.nan)

    def forward(self, ids: Tensor) -> Tensor:
        return self.scores[ids]


def subject_of(model: nn.Module, rows: int = ROWS, steps: int = STEPS, **more: Any) -> Any:
    data = [(n + torch.arange(steps)) % 6 for n in range(rows)]
    return SimpleNamespace(
        model=model, vocabulary="abcdefgh", next_token=True, data=data, examples={"one": data[0]}, **more
    )


def decoded(subject: Any, path: Path, how: Any = "greedy") -> Any:
    return inspector.decode(subject, longest=STEPS, how=how, only=["output/probabilities"], out=path)


@pytest.mark.parametrize("how", ["greedy", "sample"])
def test_a_model_that_is_lost_after_a_slip_is_named_and_the_numbers_are_those_of_the_chain(
    tmp_path: Path, how: str
) -> None:
    with decoded(subject_of(Chain(SLIP)), tmp_path / "a.inspect", how) as capture:
        sure = -(1 - SLIP) * math.log(1 - SLIP) - SLIP * math.log(SLIP)
        np.testing.assert_allclose(capture.array("decoding:drift/data_entropy"), sure, rtol=1e-6)
        on = (1 - SLIP) ** np.arange(STEPS // 2)  # still counting when the next token is drawn
        expected = on * sure + (1 - on) * math.log(2)
        own = np.asarray(capture.array("decoding:drift/own_entropy"))
        deviation = np.sqrt(on * (1 - on) / ROWS) * (math.log(2) - sure)
        assert own[0] == pytest.approx(sure, rel=1e-6) and (np.abs(own - expected) <= 4 * deviation + 1e-6).all()
        table = np.asarray(capture.array("decoding:drift/continued"))
        np.testing.assert_allclose(table[2].mean(), own[: STEPS // 8].mean())
        np.testing.assert_allclose(table[3].mean(), own[STEPS // 4 :].mean())
        found = diagnose(capture, capture.frames)
        told = [one for one in found.findings if one.id == "IN209"]
        assert [one.severity for one in told] == ["warning"] and not found.broken
        assert "the less it knows" in told[0].message and f"{sure:.3g} in that of the data" in told[0].message
        for limit in ({"exposure-bias.lost": 1.5}, {"exposure-bias.nats": 0.5}):
            assert "IN209" not in {one.id for one in diagnose(capture, capture.frames, Settings(limits=limit)).findings}


@pytest.mark.parametrize("model", [Chain(SLIP, back=True), Chain(1e-4)])
def test_a_model_that_finds_back_is_left_alone(tmp_path: Path, model: nn.Module) -> None:
    with decoded(subject_of(model), tmp_path / "a.inspect") as capture:
        assert "decoding:drift/continued" in capture.channels
        assert "IN209" not in {one.id for one in diagnose(capture, capture.frames).findings}


def test_of_few_sequences_nothing_is_said_but_that_they_are_few(tmp_path: Path) -> None:
    with decoded(subject_of(Chain(SLIP), rows=6), tmp_path / "a.inspect") as capture:
        found = diagnose(capture, capture.frames)
        assert "IN209" not in {one.id for one in found.findings}
        assert any(one.startswith("exposure-bias (6 of 8") for one in found.short)


class Looping(nn.Module):
    """Any of 40 tokens after real ones, which have no two equal in a row; after two equal ones that one for ever."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(()))

    def forward(self, ids: Tensor) -> Tensor:
        scores = torch.zeros(*ids.shape, 40) * self.weight
        same = nn.functional.pad(ids[:, 1:] == ids[:, :-1], (1, 0))
        return scores + 40.0 * same[..., None] * nn.functional.one_hot(ids, 40)


def test_a_model_that_is_caught_in_a_loop_is_named(tmp_path: Path) -> None:
    make = np.random.default_rng(0)
    steps = make.integers(1, 40, (ROWS, 120)).cumsum(1) % 40
    subject = subject_of(Looping())
    subject.data, subject.vocabulary = list(torch.from_numpy(steps)), [f"t{n}" for n in range(40)]
    subject.examples = {"one": subject.data[0]}
    with inspector.decode(subject, longest=60, only=["output/probabilities"], out=tmp_path / "a.inspect") as capture:
        told = [one.message for one in diagnose(capture, capture.frames).findings if one.id == "IN209"]
        assert len(told) == 1 and "the more it repeats itself" in told[0]
        table = np.asarray(capture.array("decoding:drift/continued"))
        assert table[5].mean() < 0.01 and table[7].mean() > 0.25


def test_repetitions_are_those_of_a_plain_search() -> None:
    rows = torch.randint(0, 2, (7, 40), generator=torch.Generator().manual_seed(0))
    expected = np.zeros((7, 40))
    for n, row in enumerate(rows.tolist()):
        for end in range(4, 41):
            expected[n, end - 1] = any(row[at : at + 4] == row[end - 4 : end] for at in range(end - 4))
    assert 0 < expected.mean() < 1
    np.testing.assert_array_equal(repeated(rows), expected)


def test_entropy_of_impossible_tokens_and_of_a_plain_sum() -> None:
    scores = torch.tensor([[0.0, -torch.inf, -torch.inf], [0.0, math.log(3), -torch.inf]])
    np.testing.assert_allclose(entropy(scores), [0, -0.25 * math.log(0.25) - 0.75 * math.log(0.75)], atol=1e-12)


def test_halves_leave_out_what_is_short() -> None:
    rows = halves(iter([torch.arange(n) for n in (40, 33, 5, 31, 90)]), 100)
    assert rows is not None and rows.shape == (4, 30)  # a quarter at the lower end: 31
    assert halves(iter([torch.arange(12)] * 9), 100) is None and halves(iter([torch.arange(40)]), 100) is None


def test_statistics_by_sequence() -> None:
    values = np.arange(2 * 3 * 8, dtype=float).reshape(2, 3, 8)
    found = by_sequence(values, 10 * values)
    np.testing.assert_allclose(found[0], values[0, :, :2].mean(1))
    np.testing.assert_allclose(found[3], 10 * values[0, :, 4:].mean(1))
    np.testing.assert_allclose(found[5], values[1, :, 4:].mean(1))


def test_scores_that_are_no_numbers_are_refused_and_the_search_is_there(tmp_path: Path) -> None:
    class Later(Chain):
        def forward(self, ids: Tensor) -> Tensor:
            return super().forward(ids) * (torch.nan if len(ids) > 1 else 1.0)

    with decoded(subject_of(Later(SLIP)), tmp_path / "a.inspect") as capture:
        refused = {one.channel: one.reason for one in capture.refusals}
        assert "NaN or infinity" in refused["decoding:drift/continued"] and capture.status == "done"


def test_one_text_alone_has_no_many(tmp_path: Path) -> None:
    subject = subject_of(Chain(SLIP))
    subject.data = None
    decoded(subject, tmp_path / "a.inspect").close()
    with open_capture(tmp_path / "a.inspect") as capture:
        assert "decoding:drift/continued" not in capture.channels and capture.status == "done"
