"""What a subject says of its inputs may be objects whose text cannot be made: they are told in our words all the same."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from listed import Listed
from several_inputs import GruTranslator, KeywordOnly, made
from torch import Tensor, nn

from inspector.engine.errors import InputError
from inspector.engine.model.batch import Batch
from inspector.engine.model.call import arguments, takes_batch
from inspector.engine.model.declared_inputs import declare
from inspector.engine.model.named_batches import of_values
from inspector.engine.model.subject import adopt
from inspector.engine.pipeline import RunOptions, perform

NO_TEXT = "<Entry whose text cannot be made>"


class Entry:
    def __str__(self) -> str:
        raise ValueError("no text")

    __repr__ = __str__


ENTRY = Entry()


def test_entries_of_every_vocabulary_are_texts() -> None:
    inputs = {"src": {"vocabulary": [Entry(), "b"]}, "tgt": {"vocabulary": ["A", "B", Entry()]}}
    subject = adopt(SimpleNamespace(model=made(GruTranslator), inputs=inputs))
    assert subject.vocabulary == subject.declared["src"].vocabulary == (NO_TEXT, "b")
    assert subject.declared["tgt"].vocabulary == ("A", "B", NO_TEXT)
    sink, batch = Listed(), of_values(subject, {"src": [0, 1, 1], "tgt": [2, 0]})
    perform(subject, batch, sink, RunOptions(only=("input",)))
    assert sink.labels("step") == (NO_TEXT, "b", "b")
    assert sink.labels("vocabulary of tgt") == ("A", "B", NO_TEXT)


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({Entry(): "tokens"}, f"'{NO_TEXT}' cannot name an input"),
        ({"x": {"kind": Entry()}}, f"is '{NO_TEXT}'; expected one of"),
        ({"x": {Entry(): 1}}, f"has no '{NO_TEXT}'"),
        ({"x": {"kind": "mask", "marks": Entry()}}, f"marks '{NO_TEXT}'"),
        ({"x": {"kind": "mask", "of": Entry()}}, f"is of '{NO_TEXT}'"),
    ],
)
def test_a_declaration_that_has_no_text_has_its_sentence(inputs: Any, said: str) -> None:
    with pytest.raises(InputError) as told:
        declare(inputs, "model")
    assert said in str(told.value)


def test_a_signature_that_has_no_text_has_its_sentence() -> None:
    def forward(model: nn.Module, a: Any, b: Any, c: Any, d: Any = ENTRY) -> None:
        """One parameter too many."""

    with pytest.raises(InputError, match="Parameter whose text cannot be made"):
        takes_batch(forward, "model")


class Annotated(KeywordOnly):
    def forward(self, *, left: Tensor, right: Tensor) -> Tensor:
        return super().forward(left=left, right=right)


def test_an_annotation_that_has_no_text_has_its_sentence() -> None:
    Annotated.forward.__annotations__["left"] = Entry()
    first = of_values(adopt(made(KeywordOnly)), {"left": [[1.0, 2.0]], "right": [[1.0, 2.0, 3.0]]})
    batch = Batch.of({"a": first.named["left"], "b": first.named["right"]}, "a")
    with pytest.raises(InputError, match="Parameter whose text cannot be made"):
        arguments(made(Annotated), batch)
