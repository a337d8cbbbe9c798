"""What a typed text is judged by: masked tokens, or its class; for any model that declares a mask or names classes."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest
from listed import Listed
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from inspector.engine.errors import InputError, Unsupported
from inspector.engine.model.subject import Batch, Subject, adopt
from inspector.engine.pipeline import perform
from inspector.engine.pipeline.batches import batch_of_spec
from inspector.records import InputSpec, Refusal


class Completer(nn.Module):
    """ids (b, t) → scores (b, t, 5)."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.rnn, self.head = nn.Embedding(5, 4), nn.RNN(4, 4, batch_first=True), nn.Linear(4, 5)

    def forward(self, ids: Tensor) -> Tensor:
        scores: Tensor = self.head(self.rnn(self.embedding(ids))[0])
        return scores


def subject(**more: Any) -> Subject:
    return adopt(SimpleNamespace(model=Completer(), vocabulary="abcd?", **more))


def asked(known: Subject, value: str, **options: Any) -> Batch:
    return batch_of_spec(known, InputSpec(kind="text", value=value, options=options), 0)


def test_masked_tokens_are_replaced_and_kept_as_targets() -> None:
    batch = asked(subject(mask_token=4), "abcd", mask="1,3", texts=["dc ba".replace(" ", "")])
    assert batch.inputs.tolist() == [[0, 4, 2, 4], [3, 4, 1, 4]]
    assert batch.targets.tolist() == [[-100, 1, -100, 3], [-100, 2, -100, 0]]
    ragged = asked(subject(mask_token=4), "ab", mask=0, texts=["dcb"])
    assert ragged.targets.tolist() == [[0, -100, -100], [3, -100, -100]]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"mask": "4"}, "Option mask is '4'; expected numbers of tokens from 0 to 3, as the text has 4 tokens"),
        ({"mask": ""}, "Option mask is ''"),
        ({"mask": "½"}, "expected numbers of tokens"),
        ({"label": "bad"}, "expected one of good, poor, or a number below 2"),
        ({"label": "2"}, "or a number below 2"),
        ({"label": "good", "mask": "1"}, "exclude each other"),
    ],
)
def test_what_cannot_be_a_target_is_one_sentence(options: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        asked(subject(mask_token=4, labels=("good", "poor")), "abcd", **options)


def test_models_without_a_mask_or_classes() -> None:
    with pytest.raises(InputError, match="has no token for a mask"):
        asked(subject(), "abcd", mask="1")
    with pytest.raises(InputError, match="no classifier with named classes"):
        asked(subject(), "abcd", label="1")


def test_a_class_by_name_or_number() -> None:
    known = subject(labels=("good", "1", "poor"))
    assert [int(asked(known, "abcd", label=one).targets) for one in ("poor", 0, "1")] == [2, 0, 1]


def test_a_loss_that_says_why_there_is_none_is_refused_with_that_reason() -> None:
    def loss(output: Tensor, batch: Batch) -> Tensor:
        if batch.targets is None:
            raise Unsupported("Nothing is masked.")
        losses = cross_entropy(output.transpose(1, 2), batch.targets, reduction="none")
        return losses.masked_fill(batch.targets < 0, math.nan)

    known, sink = subject(mask_token=4, loss=loss), Listed()
    trace = perform(known, asked(known, "abcd"), sink)
    assert trace.loss is None and not trace.backward_ran
    assert [one.reason for one in sink.of(Refusal) if one.channel == "output:loss"] == ["Nothing is masked."]
    assert perform(known, asked(known, "abcd", mask="1"), Listed()).loss_terms == 1
