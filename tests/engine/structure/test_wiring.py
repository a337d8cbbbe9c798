"""Tied weights that are two, and targets that are shifted wrongly: exact, at both sides."""

from __future__ import annotations

import copy
import types

import pytest
import torch
from structures import Recurrent, V
from torch import Tensor, nn

import inspector
from inspector.analysis.before_training.structure import verdicts
from inspector.analysis.before_training.verdicts import Verdict
from inspector.diagnosis import diagnose
from inspector.engine.model.subject import Batch, Subject

pytestmark = pytest.mark.usefixtures("one_thread")
IDS = torch.tensor([1, 2, 3, 5, 8, 2, 1, 9, 4, 4, 7, 3])


class Tied(nn.Module):
    """An embedding, two equal layers between, and a head: one parameter with the embedding, a copy, or its own."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(V, 8), nn.Linear(8, V, bias=False)
        self.one = nn.Linear(8, 8)
        self.two = copy.deepcopy(self.one)
        if how == "shared":
            self.head.weight = self.embed.weight
        elif how == "copied":
            self.head.weight = nn.Parameter(self.embed.weight.detach().clone())
        elif how == "zeros":
            nn.init.zeros_(self.embed.weight)
            nn.init.zeros_(self.head.weight)
        elif how == "declared":
            self.config = types.SimpleNamespace(tie_word_embeddings=True)

    def get_input_embeddings(self) -> nn.Module:
        return self.embed

    def get_output_embeddings(self) -> nn.Module:
        return self.head

    def forward(self, ids: Tensor) -> Tensor:
        scores: Tensor = self.head(self.two(self.one(self.embed(ids))))
        return scores


def told(subject: Subject | nn.Module, test: str, sequence: object = None) -> tuple[list[Verdict], list[str]]:
    with inspector.run(subject, sequence, only=[f"structure/{test}"]) as capture:
        found = diagnose(capture, capture.frames).findings
        return verdicts(capture, only=test), [f"{one.id} {one.severity}" for one in found]


@pytest.mark.parametrize(
    ("how", "words"),
    [("shared", ["holds"]), ("copied", ["fault"]), ("declared", ["fault"]), ("own", []), ("zeros", [])],
)
def test_weights_that_are_equal_and_two(how: str, words: list[str]) -> None:
    torch.manual_seed(0)
    found, rules = told(Tied(how), "tied", IDS)
    assert [one.word for one in found] == words
    assert rules == ["IN121 warning"] * words.count("fault")
    if words:
        assert found[0].sentence.startswith("embed.weight and head.weight are")


def by_step(output: tuple[Tensor, Tensor], batch: Batch) -> Tensor:
    """(b, t): each score is asked for the target of its step."""
    wanted = batch.targets
    assert isinstance(wanted, Tensor)
    found = nn.functional.cross_entropy(output[0].transpose(1, 2), wanted, reduction="none", ignore_index=-100)
    return found.masked_fill(wanted < 0, torch.nan)


def shifting(output: tuple[Tensor, Tensor], batch: Batch) -> Tensor:
    """(): as a model that shifts its labels itself."""
    assert isinstance(batch.targets, Tensor)
    return nn.functional.cross_entropy(output[0][:, :-1].flatten(0, 1), batch.targets[:, 1:].flatten())


def shifted(by: int) -> Tensor:
    found = torch.full_like(IDS, -100)
    found[: len(IDS) - by] = IDS[by:]
    return found


@pytest.mark.parametrize(
    ("loss", "by", "word", "number"),
    [
        (by_step, 1, "holds", 1.0),
        (by_step, 0, "fault", 0.0),
        (by_step, 2, "fault", 2.0),
        (shifting, 0, "holds", 1.0),
        (shifting, 1, "fault", 2.0),
    ],
)
def test_the_shift_is_that_of_data_and_loss_together(loss: object, by: int, word: str, number: float) -> None:
    torch.manual_seed(0)
    subject = Subject(
        model=Recurrent(), kind="tokens", vocabulary=list("abcdefghijk"), loss=loss, examples={"a": (IDS, shifted(by))}
    )  # type: ignore[arg-type]
    found, rules = told(subject, "labels")
    assert [(one.word, one.number) for one in found] == [(word, number)]
    assert [one for one in rules if "IN122" in one] == (["IN122 warning"] if word == "fault" else [])


@pytest.mark.parametrize("case", ["other", "constant", "classes"])
def test_targets_that_are_no_shifted_inputs_say_nothing(case: str) -> None:
    torch.manual_seed(0)
    ids, targets = IDS, IDS.flip(0)
    if case == "constant":
        ids = targets = torch.full((12,), 3)
    if case == "classes":
        targets = torch.full_like(IDS, -100)
        targets[-1] = 2
    subject = Subject(
        model=Recurrent(), kind="tokens", vocabulary=list("abcdefghijk"), loss=by_step, examples={"a": (ids, targets)}
    )
    assert not [one for one in told(subject, "labels")[0] if one.word in ("holds", "fault")]


def from_inputs(by: int) -> object:
    """(b, t): each score is asked for the input so many steps later, which the loss reads off the inputs."""

    def loss(output: tuple[Tensor, Tensor], batch: Batch) -> Tensor:
        left = nn.functional.cross_entropy(
            output[0][:, : len(IDS) - by].transpose(1, 2), batch.inputs[:, by:], reduction="none"
        )
        return nn.functional.pad(left, (0, by), value=torch.nan)

    return loss


@pytest.mark.parametrize(
    ("by", "next_token", "words"),
    [(1, True, ["holds"]), (2, True, ["fault"]), (0, True, ["fault"]), (0, False, []), (2, False, [])],
)
def test_targets_that_the_loss_reads_off_the_inputs(by: int, next_token: bool, words: list[str]) -> None:
    """Only of a subject that says that it predicts the next token: others may copy, or remember, on purpose."""
    torch.manual_seed(0)
    subject = Subject(
        model=Recurrent(), kind="tokens", vocabulary=list("abcdefghijk"), loss=from_inputs(by), next_token=next_token,
        examples={"a": IDS},
    )  # type: ignore[arg-type]  # fmt: skip
    found, rules = told(subject, "labels")
    assert [one.word for one in found] == words
    assert all(one.sentence.startswith(f"All {len(IDS) - by} targets are the input") for one in found)
    assert [one for one in rules if "IN122" in one] == ["IN122 warning"] * words.count("fault")


def test_a_loss_that_reads_inputs_in_a_way_of_its_own_says_nothing() -> None:
    """Each target is the sum of two inputs, so that one input meets two scores."""

    def loss(output: tuple[Tensor, Tensor], batch: Batch) -> Tensor:
        wanted = (batch.inputs[:, 1:] + batch.inputs[:, :-1]) % V
        left = nn.functional.cross_entropy(output[0][:, :-1].transpose(1, 2), wanted, reduction="none")
        return nn.functional.pad(left, (0, 1), value=torch.nan)

    torch.manual_seed(0)
    subject = Subject(
        model=Recurrent(),
        kind="tokens",
        vocabulary=list("abcdefghijk"),
        loss=loss,
        next_token=True,
        examples={"a": IDS},
    )
    assert told(subject, "labels") == ([], [])
