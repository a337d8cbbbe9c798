"""After its own tokens and after right ones: against a plain loop over a model whose mistakes are known."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import inspector
from inspector.diagnosis import Settings, diagnose
from inspector.engine.decoding.exposure import by_sequence, wrong_symbols

RIGHT = (0, 1, 2, 3, 0, 1)


def asks(table: dict[tuple[int, ...], int]) -> Any:
    """Counts on from the last token (from 3 at the beginning), but where `table` says otherwise."""

    def ask(beginnings: Sequence[tuple[int, ...]]) -> Tensor:
        said = [table.get(one, ((one or (3,))[-1] + 1) % 4) for one in beginnings]
        return nn.functional.one_hot(torch.tensor(said), 5).double().log()

    return ask


def test_one_wrong_token_makes_those_wrong_that_are_counted_on_from_it() -> None:
    found = wrong_symbols(asks({(0, 1): 3}), RIGHT, None)
    assert found.tolist() == [[0, 0, 1, 0, 0, 0], [0, 0, 1, 1, 1, 1]]
    # wrong before: steps 3 to 5, of which the model's own are all wrong and the forced ones right
    assert by_sequence(found[:, None])[:, 0] == pytest.approx([1 / 6, 4 / 6, 1, 0])


def test_nothing_comes_after_an_end_that_was_said() -> None:
    found = wrong_symbols(asks({(0, 1): 4}), RIGHT, 4)
    np.testing.assert_array_equal(found, [[0, 0, 1, 0, 0, 0], [0, 0, 1, np.nan, np.nan, np.nan]])
    assert np.isnan(by_sequence(found[:, None])[2:, 0]).all()


def test_where_nothing_is_wrong_both_are_the_same() -> None:
    found = wrong_symbols(asks({}), RIGHT, None)
    assert not found.any() and np.isnan(by_sequence(found[:, None])[2:]).all()


class Counts(nn.Module):
    """Counts on from the token before, or reads the source where `reads`; wrong at step 2 where the source has 3."""

    def __init__(self, *, reads: bool) -> None:
        super().__init__()
        self.reads, self.scale = reads, nn.Parameter(torch.tensor(5.0))

    def forward(self, source: Tensor, said: Tensor) -> Tensor:
        before = nn.functional.pad(said, (1, 0))[:, :-1]
        found = source if self.reads else torch.cat((source[:, :1], (before[:, 1:] + 1) % 6), 1)
        slip = (torch.arange(said.shape[1]) == 2) & (source[:, :1] % 2 == 1)
        return self.scale * nn.functional.one_hot(torch.where(slip, (found + 2) % 6, found), 6).float()


def subject_of(*, reads: bool, rows: int = 20) -> Any:
    sources = (torch.arange(8) + torch.arange(rows)[:, None]) % 6
    data = [(one, one) for one in sources]

    def next_logits(model: Any, batch: Any, beginnings: Tensor) -> Tensor:
        said = nn.functional.pad(beginnings, (0, 1))
        return model(batch.inputs[:, : said.shape[1]].expand(len(said), -1), said)  # type: ignore[no-any-return]

    return SimpleNamespace(
        model=Counts(reads=reads), vocabulary="abcdef", next_logits=next_logits, data=data, examples={"one": data[1]},
        forward=lambda model, batch: model(batch.inputs, batch.targets), answer=lambda _output, batch: batch.targets,
        loss=lambda scores, b: nn.functional.cross_entropy(scores.transpose(1, 2), b.targets, reduction="none"),
    )  # fmt: skip


@pytest.mark.parametrize(("reads", "rows", "fires"), [(False, 20, True), (True, 20, False), (False, 12, False)])
def test_a_decoder_that_counts_on_from_its_own_mistake_is_named(
    reads: bool, rows: int, fires: bool, tmp_path: Path
) -> None:
    subject = subject_of(reads=reads, rows=rows)
    with inspector.decode(subject, longest=8, only=["output/probabilities"], out=tmp_path / "d.inspect") as capture:
        table = np.ma.filled(capture.array("decoding:drift/sequences"), np.nan)
        # every other sequence slips at step 2 of 8; five steps come after it
        slips = np.arange(rows) % 2 == 1
        np.testing.assert_allclose(table[0], slips / 8)
        np.testing.assert_allclose(table[1], slips * (1 / 8 if reads else 6 / 8))
        np.testing.assert_allclose(table[2], np.where(slips, 0.0 if reads else 1.0, np.nan))
        np.testing.assert_allclose(table[3], np.where(slips, 0.0, np.nan))
        free = np.asarray(capture.array("decoding:drift/free_wrong"))
        wanted = np.zeros(8)
        wanted[2 : 3 if reads else 8] = slips.mean()
        np.testing.assert_allclose(free, wanted)
        found = diagnose(capture, capture.frames)
        told = [one for one in found.findings if one.id == "IN209"]
        assert bool(told) is fires and not found.broken
        assert any(one.startswith("exposure-bias (6 of 8") for one in found.short) is (rows == 12)
        if fires:
            assert "100 % of those that follow are wrong" in told[0].message and "10 sequences" in told[0].sure
            few = diagnose(capture, capture.frames, Settings(limits={"exposure-bias.forced": 0.01}))
            assert "IN209" not in {one.id for one in few.findings}


def test_data_that_cannot_be_read_are_refused_and_the_answer_is_there(tmp_path: Path) -> None:
    subject = subject_of(reads=False)
    subject.data = lambda: 1 / 0
    with inspector.decode(subject, longest=8, only=["output/probabilities"], out=tmp_path / "d.inspect") as capture:
        assert "ZeroDivisionError" in {one.channel: one.reason for one in capture.refusals}["decoding:drift/sequences"]
        assert capture.status == "done"
