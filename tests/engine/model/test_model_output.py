"""Scores and losses are found in what models return: tensors, tuples, dictionaries, objects."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from several_inputs import LanguageModel, Output, made
from torch import Tensor, nn

from inspector.engine.model.batch import Batch
from inspector.engine.model.model_output import loss_in, may_return_loss
from inspector.engine.model.subject import Subject

NAMES = tuple("abcd")
SCORES, HIDDEN = torch.zeros(2, 3, 4), torch.zeros(2, 3, 7)
Pair = namedtuple("Pair", "logits state")


class Fields(OrderedDict[str, Any]):
    """As transformers' ModelOutput: a dictionary whose items are attributes too."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


FOUND: list[Any] = [
    SCORES, (SCORES, HIDDEN), [HIDDEN, SCORES], (HIDDEN, (SCORES,), SCORES), Output(SCORES), {"logits": SCORES},
    Fields(loss=torch.zeros(()), logits=SCORES), Pair(SCORES, HIDDEN), SimpleNamespace(last_hidden_state=SCORES),
    SimpleNamespace(logits=HIDDEN, last_hidden_state=SCORES),
]  # fmt: skip
NOT: list[Any] = [HIDDEN, (), None, {"hidden": SCORES}, torch.zeros(2, 4), torch.zeros(2, 3, 4, dtype=torch.long), "x"]


@pytest.mark.parametrize("output", FOUND)
def test_scores_are_as_wide_as_the_classes_are_many(output: Any) -> None:
    assert Subject(nn.Identity(), vocabulary=NAMES).scores(output) is SCORES
    assert Subject(nn.Identity(), labels=NAMES, vocabulary="xy").scores(output) is SCORES


@pytest.mark.parametrize("output", NOT)
def test_nothing_else_is_taken_for_scores(output: Any) -> None:
    assert Subject(nn.Identity(), vocabulary=NAMES).scores(output) is None


def test_what_is_called_logits_is_believed_without_names() -> None:
    bare = Subject(nn.Identity())
    assert bare.scores(Output(HIDDEN)) is HIDDEN and bare.scores({"logits": HIDDEN}) is HIDDEN
    assert bare.scores(HIDDEN) is None and bare.scores(SimpleNamespace(last_hidden_state=HIDDEN)) is None


def test_the_loss_in_an_output() -> None:
    loss = torch.ones(())
    for output in (Output(SCORES, loss), {"loss": loss}, Fields(loss=loss)):
        assert loss_in(output) is loss
    for output in (SCORES, (loss, SCORES), Output(SCORES), {"loss": 3.0}, SimpleNamespace(loss=len), None):
        assert loss_in(output) is None


class Keyed(nn.Module):
    def forward(self, x: Tensor) -> dict[str, Tensor]:
        return {"loss": x.sum()}


class ByPlace(nn.Module):
    """Its code has no such word: the class of what it returns has."""

    def forward(self, x: Tensor) -> Output:
        return Output(x, x.sum())


def by_place() -> nn.Module:
    """The same with a class that a function made."""
    Local = namedtuple("Local", "logits loss")

    class Model(nn.Module):
        def forward(self, x: Tensor) -> Any:
            return Local(x, x.sum())

    return Model()


class Tallied(nn.Module):
    """Its parameter's word holds "loss"; nothing it returns does."""

    def forward(self, x: Tensor, lossless: bool = True) -> Tensor:
        return x


def test_whether_gradients_are_needed_is_told_by_the_code() -> None:
    batch = Batch(torch.zeros(1, 2), torch.tensor([2]))
    assert may_return_loss(Keyed(), batch) and may_return_loss(nn.Sequential(nn.Identity(), Keyed()), batch)
    assert may_return_loss(ByPlace(), batch) and may_return_loss(by_place(), batch)
    assert not may_return_loss(Tallied(), batch) and not may_return_loss(nn.GRU(2, 3), batch)
    wanting = made(LanguageModel)  # its loss needs `labels`, which are not given …
    assert not may_return_loss(wanting, batch)
    assert may_return_loss(wanting, Batch.of({"input_ids": batch.first, "labels": batch.first}, "input_ids"))
    assert may_return_loss(wanting, None)  # … or may be, by the subject's own forward
