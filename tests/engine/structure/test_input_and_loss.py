"""What the loss is given, whether the input counts, and whether steps before count, of runs with planted faults."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from listed import Listed
from torch import Tensor, nn
from torch.nn import functional as F

import inspector
from inspector.analysis.before_training.trial import trials
from inspector.engine.model.subject import Batch, Subject, adopt
from inspector.engine.pipeline import RunOptions, perform
from inspector.records import Log, Refusal

ASKED = ("structure/causal", "structure/loss_input", "trial/input")


class Tags(nn.Module):
    """ids (b, t) → (b, t, 8) by a cell; `fault`: what is wrong."""

    def __init__(self, fault: str = "") -> None:
        super().__init__()
        torch.manual_seed(0)
        self.fault, self.embedding, self.cell, self.head = (
            fault,
            nn.Embedding(8, 8),
            nn.GRUCell(8, 12),
            nn.Linear(12, 8),
        )

    def forward(self, ids: Tensor) -> Tensor:
        x, h, states = self.embedding(ids), torch.zeros(len(ids), 12), []
        for t in range(ids.shape[1]):
            h = torch.zeros_like(h) if self.fault == "anew" else h
            h = self.cell(x[:, t] * float(self.fault != "zero"), h)
            states.append(h)
        y: Tensor = self.head(torch.stack(states, 1))
        return y.softmax(-1) if self.fault == "softmax" else y


def subject_of(model: nn.Module, rows: int = 12) -> Any:
    ids = torch.randint(0, 8, (rows, 7), generator=torch.Generator().manual_seed(1))
    targets = (ids + 1) % 8
    return SimpleNamespace(
        model=model, kind="tokens", vocabulary="abcdefgh", data=list(zip(ids, targets, strict=True)),
        loss=lambda y, batch: F.cross_entropy(y.transpose(1, 2), batch.targets, reduction="none"),
        examples={"one": (ids[0], targets[0])},
    )  # fmt: skip


def found(path: Path, subject: Any) -> dict[str, str]:
    inspector.run(subject, only=ASKED, out=path).close()
    told = inspector.diagnose(path)
    assert not told.broken
    return {one.id: one.severity for one in told.findings}


@pytest.mark.parametrize(
    ("fault", "ids"),
    [
        ("", {}), ("softmax", {"IN131": "warning"}), ("anew", {"IN134": "warning"}),
        ("zero", {"IN211": "warning", "IN103": "error"}),
    ],
)  # fmt: skip
def test_planted_faults_are_named_and_a_model_without_is_left_alone(tmp_path: Path, fault: str, ids: Any) -> None:
    assert found(tmp_path / "a.inspect", subject_of(Tags(fault))) == ids


def test_losses_are_those_of_plain_calls(tmp_path: Path) -> None:
    subject = subject_of(Tags())
    with inspector.run(subject, only=("trial/input",), out=tmp_path / "a.inspect") as capture:
        table = np.asarray(capture.array("model:trial/input"))
    data = subject.data
    for n, (ids, targets) in enumerate(data):
        other = data[(n + 1) % len(data)][0]
        with torch.no_grad():
            one, two = (subject.model(given[None])[0] for given in (ids, other))
        expected = [float(F.cross_entropy(y, targets)) for y in (one, two)]
        np.testing.assert_allclose(table[:2, n], expected, rtol=1e-5)
        assert table[2, n] == pytest.approx(float((one - two).abs().max() / one.abs().max()), rel=1e-4)


def test_what_has_learned_depends_on_its_input_and_few_sequences_do_not_tell(tmp_path: Path) -> None:
    model = Tags()
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    for _ in range(60):
        ids = torch.randint(0, 8, (32, 7))
        optimizer.zero_grad()
        F.cross_entropy(model(ids).transpose(1, 2), (ids + 1) % 8).backward()
        optimizer.step()
    for rows, word in ((12, "holds"), (3, "not tested")):
        inspector.run(subject_of(model, rows), only=("trial/input",), out=tmp_path / f"{rows}.inspect").close()
        with inspector.open_capture(tmp_path / f"{rows}.inspect") as capture:
            assert [one.word for one in trials(capture, 0, "input")] == [word]  # type: ignore[arg-type]


def test_one_sequence_and_a_read_out_of_zeros_accuse_nothing(tmp_path: Path) -> None:
    model = Tags()
    nn.init.zeros_(model.head.weight)
    assert not {"IN211", "IN131", "IN134"} & found(tmp_path / "a.inspect", subject_of(model)).keys()
    assert "IN211" not in found(tmp_path / "b.inspect", subject_of(Tags("zero"), 1))


def test_the_loss_is_named_in_the_checks_before_a_training() -> None:
    told = {one.test: one.word for one in inspector.preflight(subject_of(Tags("softmax")), quick=True)}
    assert told["loss_input"] == "fault"


def test_a_message_that_a_refusal_cuts_is_whole_in_the_log() -> None:
    calls: list[int] = []
    words = " ".join(f"word{number}" for number in range(300))

    def loss(y: Tensor, batch: Any) -> Tensor:
        calls.append(1)
        if len(calls) > 1:
            raise ValueError(words)
        return F.cross_entropy(y.transpose(1, 2), batch.targets, reduction="none")

    subject, sink = subject_of(Tags()), Listed()
    read = adopt(Subject(model=subject.model, kind="tokens", vocabulary="abcdefgh", loss=loss))
    ids, targets = subject.examples["one"]
    batch = Batch(inputs=ids[None], targets=targets[None], lengths=torch.tensor([len(ids)]))
    perform(read, batch, sink, RunOptions(only=("structure/loss_input",)))
    said = [one.reason for one in sink if isinstance(one, Refusal) and one.channel.endswith("loss_input")]
    logged = [one.text for one in sink if isinstance(one, Log) and words in one.text]
    assert len(said) == 1 and "…" in said[0] and "word150" not in said[0]
    assert len(logged) == 1 and logged[0].startswith("structure/loss_input, the whole message: ")
