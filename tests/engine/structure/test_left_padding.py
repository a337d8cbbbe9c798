"""Padding in front of a sequence: by a mask and by ids, against the model called by hand with and without it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import inspector
from inspector.analysis.before_training.verdicts import Verdict

IDS, PAD = [3, 1, 4, 1, 5], 0


class Positions(nn.Module):
    """Causal attention over symbols with absolute positions, given or counted; true in the mask at real steps."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.at = nn.Embedding(7, 6), nn.Embedding(16, 6)

    def forward(self, ids: Tensor, mask: Tensor, positions: Tensor | None = None) -> Tensor:
        x = self.embed(ids) + self.at(torch.arange(ids.shape[1]) if positions is None else positions)
        real = mask[:, None] & torch.ones(ids.shape[1], ids.shape[1]).tril().bool()
        scores = (x @ x.transpose(1, 2)).masked_fill(~(real | torch.eye(ids.shape[1]).bool()), -torch.inf)
        return torch.softmax(scores, -1) @ x


class Last(nn.Module):
    """The last state of an LSTM over symbols; `packs` leaves out what is padding."""

    def __init__(self, padding: int | None = PAD) -> None:
        super().__init__()
        self.embed, self.rnn = nn.Embedding(7, 4, padding_idx=padding), nn.LSTM(4, 5, batch_first=True)

    def forward(self, ids: Tensor) -> Tensor:
        return self.rnn(self.embed(ids))[1][0][0]  # type: ignore[no-any-return]


def told(subject: Any, given: Any, **more: Any) -> Verdict | None:
    found = [one for one in inspector.preflight(subject, given, quick=True, **more) if one.test == "left_padding"]
    return found[0] if found else None


def with_mask(*, marks: str = "real", own: bool = False) -> Any:
    inputs: dict[str, Any] = {
        "ids": {"kind": "tokens", "size": 7}, "mask": {"kind": "mask", "axis": "ids", "marks": marks},
    }  # fmt: skip
    if own:
        inputs["positions"] = {"kind": "other", "shape": (8,)}
    flip = marks == "padding"

    def forward(model: Any, batch: Any) -> Tensor:
        return model(batch["ids"], batch["mask"].bool() ^ flip, batch["positions"].long() if own else None)  # type: ignore[no-any-return]

    torch.manual_seed(0)
    return SimpleNamespace(model=Positions().eval(), inputs=inputs, forward=forward)


def given(front: int, behind: int = 0, marks: str = "real") -> dict[str, Tensor]:
    ids = torch.tensor([PAD] * front + IDS + [PAD] * behind)
    mask = torch.tensor([False] * front + [True] * len(IDS) + [False] * behind)
    return {"ids": ids, "mask": mask ^ (marks == "padding")}


@pytest.mark.parametrize("marks", ["real", "padding"])
def test_absolute_positions_that_count_padding_are_a_fault(marks: str, tmp_path: Path) -> None:
    subject, sequence, out = with_mask(marks=marks), given(3, marks=marks), tmp_path / "p.inspect"
    verdict = told(subject, sequence, out=out)
    model, ids, real = subject.model, torch.tensor([[PAD] * 3 + IDS]), torch.tensor([[False] * 3 + [True] * 5])
    whole, bare = model(ids, real).detach()[:, 3:], model(ids[:, 3:], real[:, 3:]).detach()
    moved = ((whole - bare).abs().amax(-1) / whole.abs().max())[0].double().numpy()
    assert verdict is not None and verdict.word == "fault" and verdict.number == pytest.approx(moved.max(), rel=1e-5)
    assert "3 steps of padding on the left (a mask says so)" in verdict.sentence
    assert verdict.steps == (3 + int(moved.argmax()),)
    with inspector.open_capture(out) as capture:
        values = np.ma.filled(capture.array("model:structure/left_padding"), np.nan)
    np.testing.assert_allclose(values, [[np.nan] * 3 + moved.tolist()], rtol=1e-5)
    assert [one.severity for one in inspector.diagnose(out).findings if one.id == "IN125"] == ["warning"]


def test_padding_behind_or_none_is_not_told_of() -> None:
    assert told(with_mask(), given(0)) is None
    assert told(with_mask(), given(0, 3)) is None


@pytest.mark.parametrize(("padding", "front", "word"), [(PAD, 2, "fault"), (PAD, 0, ""), (None, 2, ""), (6, 2, "")])
def test_a_recurrence_that_reads_declared_padding_first(padding: int | None, front: int, word: str) -> None:
    torch.manual_seed(0)
    model = Last(padding)
    verdict = told(SimpleNamespace(model=model, kind="tokens"), torch.tensor([PAD] * front + IDS))
    if not word:
        assert verdict is None
        return
    whole, bare = (model(torch.tensor([[PAD] * n + IDS])).detach() for n in (front, 0))
    assert verdict is not None and verdict.word == word and "2 steps" in verdict.sentence and verdict.steps == ()
    assert verdict.number == pytest.approx(float((whole - bare).abs().max() / whole.abs().max()), rel=1e-5)


def test_an_id_with_which_sequences_begin_is_no_padding() -> None:
    model = Last()
    model.config = SimpleNamespace(pad_token_id=PAD, bos_token_id=PAD)
    assert told(SimpleNamespace(model=model, kind="tokens"), torch.tensor([PAD, *IDS])) is None
    model.config.bos_token_id = 6
    assert told(SimpleNamespace(model=model, kind="tokens"), torch.tensor([PAD, *IDS])) is not None


def test_positions_that_are_given_and_count_real_steps_hold() -> None:
    sequence = {**given(3), "positions": torch.tensor([0.0, 0, 0, 0, 1, 2, 3, 4])}
    verdict = told(with_mask(own=True), sequence)
    assert verdict is not None and verdict.word == "holds" and "3 steps of padding on the left" in verdict.sentence
