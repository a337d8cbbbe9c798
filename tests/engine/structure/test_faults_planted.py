"""Each structure test finds the fault that was planted, and is silent on the same model without it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from structures import Attending, Forgetting, MeanOfBatch, Normalised, Query, Recurrent, Remembering
from torch import nn

import inspector
from inspector.analysis.before_training.verdicts import Verdict

IDS = [1, 2, 3, 4, 5, 6, 7, 8, 9]
Make = Callable[[], nn.Module]


def found(make: Make, **options: object) -> dict[str, Verdict]:
    torch.manual_seed(0)
    return {one.test: one for one in inspector.preflight(make(), IDS, **options)}


CASES: list[tuple[str, Make, Make, str]] = [
    ("large", lambda: Attending(-1e4), Attending, ""),
    ("batch", lambda: Recurrent(batch_first=False), Recurrent, "rnn (GRU)"),
    ("batch", MeanOfBatch, Attending, "centred (Centred)"),
    ("repeat", lambda: Recurrent(keeps=True), Recurrent, ""),
    ("repeat", lambda: Forgetting(keeps=True), Forgetting, ""),
    ("cache", lambda: Recurrent(ignores=True), Recurrent, ""),
    ("cache", lambda: Remembering(late=1), Remembering, ""),
]


@pytest.mark.parametrize(("test", "ill", "healthy", "place"), CASES)
def test_a_planted_fault_is_found_and_its_twin_is_not_accused(test: str, ill: Make, healthy: Make, place: str) -> None:
    one, other = found(ill), found(healthy)
    assert one[test].word == "fault", one[test].sentence
    assert one[test].place == place
    assert [
        verdict for verdict in one.values() if verdict.word == "fault" and verdict.test not in (test, "causal")
    ] == []
    assert other[test].word == "holds", other[test].sentence
    assert all(verdict.word != "fault" for verdict in other.values()), other


@pytest.mark.parametrize(
    ("late", "turned", "word"), [(0, False, "holds"), (1, False, "fault"), (0, True, "not tested")]
)
def test_a_subject_that_calls_its_model_itself_is_tested_where_ids_alone_give_the_same(
    late: int, turned: bool, word: str
) -> None:
    """As folders are called, with a mask beside the ids; a call that turns the ids is not one of the ids alone."""
    from inspector.engine.model.subject import Subject

    torch.manual_seed(0)

    def forward(model: nn.Module, ids: torch.Tensor, _lengths: torch.Tensor) -> torch.Tensor:
        returned: torch.Tensor = model(ids.flip(1) if turned else ids)[0]
        return returned

    subject = Subject(model=Remembering(late=late), forward=forward)
    told = {one.test: one.word for one in inspector.preflight(subject, IDS)}
    assert told.get("cache", "") == word


class OneWay(nn.Module):
    """Adds to each sequence those behind it in the batch, or those before it: the last, or the first, is alone."""

    def __init__(self, *, behind: bool) -> None:
        super().__init__()
        self.embed, self.head, self.behind = nn.Embedding(11, 8), nn.Linear(8, 11), behind

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.embed(ids).cumsum(1)
        x = x.flip(0).cumsum(0).flip(0) if self.behind else x.cumsum(0)
        return self.head(x)  # type: ignore[no-any-return]


@pytest.mark.parametrize("behind", [True, False])
def test_a_leak_between_sequences_is_found_whichever_way_it_goes(behind: bool) -> None:
    assert found(lambda: OneWay(behind=behind))["batch"].word == "fault"


def test_batch_normalisation_over_channels_is_a_note_in_training_mode() -> None:
    told = found(lambda: Normalised().train())["batch"]
    assert (told.word, told.place) == ("fact", "norm (BatchNorm1d)")
    assert found(lambda: Normalised().eval())["batch"].word == "holds"


@pytest.mark.parametrize(("make", "place"), [
    (lambda: Recurrent(both=True), "rnn (GRU)"), (lambda: Attending(-4.0), "the code of model, before head (Linear)"),
    (lambda: Attending(causal=False), "the code of model, before head (Linear)"),
])  # fmt: skip
def test_a_model_that_reads_later_inputs_is_at_fault_where_it_predicts_them(make: Make, place: str) -> None:
    from inspector.engine.model.subject import Subject

    torch.manual_seed(0)
    model = make()
    told = {one.test: one for one in inspector.preflight(model, IDS)}["causal"]
    assert told.word == "fact"
    assert told.place == place
    step, source = told.steps
    assert source > step
    told = {one.test: one for one in inspector.preflight(Subject(model=model, next_token=True), IDS)}["causal"]
    assert told.word == "fault"
    assert "which it can read" in told.sentence


def test_normalisation_of_features_before_steps_is_named() -> None:
    told = found(Normalised)
    assert (told["batch"].word, told["batch"].place) == ("fact", "norm (BatchNorm1d)")
    assert "by design" in told["batch"].sentence
    told = found(lambda: Normalised(nn.InstanceNorm1d))
    assert told["batch"].word == "holds"
    assert (told["causal"].word, told["causal"].place) == ("fact", "norm (InstanceNorm1d)")


def test_the_query_cancels_without_a_nonlinearity() -> None:
    assert found(lambda: Query(tanh=False))["query"].word == "fault"
    assert found(lambda: Query(tanh=True))["query"].word == "holds"


def test_a_mask_that_hides_every_key_is_not_a_query_that_cancels() -> None:
    """Rows are even then, as with a score that loses its query; the cause is another."""

    def inverted() -> nn.Module:
        model = Query(tanh=True)
        model.score.register_forward_hook(lambda _m, _a, out: out.masked_fill(torch.ones_like(out).bool(), -1e9))
        return model

    told = found(inverted)["query"]
    assert told.word == "fault"
    assert "the mask may be inverted" in told.sentence and "masked_fill hides" in told.remedy


def test_a_leak_within_a_loop_lies_between_two_calls() -> None:
    """The second call of `score` is the first that is given what has moved: the first one is not the place."""

    class Looping(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed, self.score, self.head = nn.Embedding(11, 8), nn.Linear(8, 8), nn.Linear(8, 11)

        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            x = self.embed(ids)
            state, rows = torch.zeros_like(x[:, 0]), []
            for _ in range(x.shape[1]):
                read = self.score(x + state[:, None])
                state = (torch.softmax(read, 0) * x).sum(1)  # over the batch
                rows.append(state)
            return torch.as_tensor(self.head(torch.stack(rows, 1)))

    torch.manual_seed(0)
    told = {one.test: one for one in inspector.preflight(Looping(), IDS)}["batch"]
    assert (told.word, told.place) == ("fault", "between call 1 and call 2 of score (Linear)")
    assert "it comes in between call 1" in told.sentence


def test_of_several_attentions_each_is_named() -> None:
    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(11, 8)
            self.low, self.high = nn.MultiheadAttention(8, 2), nn.MultiheadAttention(8, 2)

        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            x = self.embed(ids).transpose(0, 1)
            x = x + self.low(x, x, x, need_weights=False)[0]
            return (x + self.high(x, x, x, need_weights=False)[0]).transpose(0, 1)  # type: ignore[no-any-return]

    told = [one for one in inspector.preflight(Two(), IDS) if one.test == "query"]
    assert [one.sentence.partition(" depends")[0] for one in told] == ["Attention in low", "Attention in high"]


def test_attention_without_positions_does_not_see_order() -> None:
    told = found(lambda: Attending(causal=False, positions=False))["order"]
    assert told.word == "fact"
    assert "not seen" in told.sentence
    told = found(lambda: Attending(causal=False))["order"]
    assert (told.word, told.place) == ("holds", "places (Embedding)")


def test_dropout_that_is_on_is_told() -> None:
    def dropping() -> nn.Module:
        return nn.Sequential(nn.Embedding(11, 8), nn.Dropout(0.5), nn.Linear(8, 11)).train()

    told = found(dropping)
    assert told["random"].word == "fact"
    assert told["repeat"].word == "holds"


def test_an_input_that_reaches_no_output_is_told() -> None:
    class Deaf(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed, self.head = nn.Embedding(11, 4), nn.Linear(4, 3)

        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            return self.head(self.embed(ids) * 0)  # type: ignore[no-any-return]

    told = found(Deaf)["causal"]
    assert told.word == "fault"
    assert "does not reach" in told.sentence


class Unread(nn.Module):
    """A recurrence that nothing reads: zeros are read in its place, or its read-out begins with weights of 0."""

    def __init__(self, *, fault: bool) -> None:
        super().__init__()
        self.embed, self.rnn, self.read = nn.Embedding(12, 4), nn.GRU(4, 4, batch_first=True), nn.Linear(4, 12)
        self.fault = fault
        if not fault:
            nn.init.zeros_(self.read.weight)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        states = self.rnn(self.embed(ids))[0]
        return self.read(states * 0 if self.fault else states)


def test_an_input_that_does_not_reach_the_output_is_a_fault_but_for_a_read_out_that_begins_at_zero() -> None:
    told = found(lambda: Unread(fault=True), quick=True)
    assert told["causal"].word == "fault" and "does not reach" in told["causal"].sentence
    told = found(lambda: Unread(fault=False), quick=True)
    assert {told[test].word for test in ("causal", "order")} == {"not tested"}
    assert "weights of the model are all 0" in told["causal"].sentence
