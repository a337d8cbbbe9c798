"""Answers with steps of their own: shorter than the input, longer and as long; padded, in batches, without targets."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from listed import Listed
from torch import Tensor, nn

from inspector.engine.analyses.aligned_inputs import aligned_inputs
from inspector.engine.errors import ModelError, Unsupported
from inspector.engine.model.subject import Batch, Subject, adopt
from inspector.engine.pipeline import RunOptions, perform
from inspector.engine.trace.target_steps import Answer, read_answer
from inspector.engine.trace.trace import Trace
from inspector.records import ANSWER_DOMAIN, Channel, Log

LETTERS = tuple("abcdef<")
END, PADDING = 6, -100


class Translator(nn.Module):
    """ids (b, t) → scores (b, l, 7); the decoder is fused, a loop over a cell, or written by hand."""

    def __init__(self, how: str) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.how = how
        self.embedding = nn.Embedding(7, 4)
        self.encoder = nn.GRU(4, 5, batch_first=True)
        self.decoder: nn.Module = (
            nn.GRU(4, 5, batch_first=True) if how == "fused" else nn.GRUCell(4, 5) if how == "cell" else Hand(4, 5)
        )
        self.head = nn.Linear(5, 7)

    def forward(self, ids: Tensor, lengths: Tensor, wanted: Tensor) -> Tensor:
        packed = nn.utils.rnn.pack_padded_sequence(self.embedding(ids), lengths, batch_first=True, enforce_sorted=False)
        h = self.encoder(packed)[1]
        read = self.embedding(torch.cat((torch.full_like(wanted[:, :1], END), wanted[:, :-1].clamp(min=0)), 1))
        if self.how == "fused":
            out: Tensor = self.head(self.decoder(read, h)[0])
            return out
        if self.how == "hand":
            out = self.head(self.decoder(read, h[0]))
            return out
        states, state = [], h[0]
        for t in range(read.shape[1]):
            state = self.decoder(read[:, t], state)
            states.append(state)
        out = self.head(torch.stack(states, 1))
        return out


class Hand(nn.Module):
    def __init__(self, i: int, h: int) -> None:
        super().__init__()
        self.x, self.h = nn.Linear(i, h), nn.Linear(h, h)

    def forward(self, read: Tensor, h: Tensor) -> Tensor:
        states = []
        for t in range(read.shape[1]):
            h = torch.tanh(self.x(read[:, t]) + self.h(h))
            states.append(h)
        return torch.stack(states, 1)


def answers(lengths: list[int]) -> Tensor:
    wanted = torch.full((len(lengths), max(lengths)), PADDING)
    for row, length in zip(wanted, lengths, strict=True):
        row[:length] = torch.randint(0, 6, (length,), generator=torch.Generator().manual_seed(length))
        row[length - 1] = END
    return wanted


def loss(scores: Tensor, batch: Batch) -> Tensor:
    values = nn.functional.cross_entropy(scores.transpose(1, 2), batch.targets, reduction="none", ignore_index=PADDING)
    return values.masked_fill(batch.targets < 0, torch.nan)


def subject_of(how: str, wanted: Tensor, **more: Any) -> Subject:
    options: dict[str, Any] = {
        "loss": loss,
        "answer": lambda _output, batch: batch.targets,
        "decoder": "decoder",
        **more,
    }
    return Subject(
        Translator(how).double().eval(), vocabulary=LETTERS, kind="tokens",
        forward=lambda model, ids, lengths: model(ids, lengths, wanted), **options,
    )  # fmt: skip


def batch_of(lengths: list[int], wanted: Tensor | None, look_at: int = 0) -> Batch:
    ids = torch.zeros(len(lengths), max(lengths), dtype=torch.long)
    for row, length in zip(ids, lengths, strict=True):
        row[:length] = torch.randint(0, 6, (length,))
    names = tuple(tuple(LETTERS[i] for i in row[:n].tolist()) for row, n in zip(ids, lengths, strict=True))
    return Batch(ids, torch.tensor(lengths), names, wanted, look_at)


GIVEN = [3, 5, 2]
LONGER, SHORTER, EQUAL = [7, 4, 8], [2, 3, 1], [5, 3, 4]


def run(how: str, lengths: list[int], look_at: int = 0, **more: Any) -> tuple[Trace, Listed]:
    torch.manual_seed(1)
    wanted, sink = answers(lengths), Listed()
    trace = perform(subject_of(how, wanted, **more), batch_of(GIVEN, wanted, look_at), sink)
    return trace, sink


@pytest.mark.parametrize("how", ["fused", "cell", "hand"])
@pytest.mark.parametrize("look_at", [0, 1, 2])
@pytest.mark.parametrize("lengths", [LONGER, SHORTER, EQUAL], ids=["longer", "shorter", "equal"])
def test_outputs_and_decoder_are_laid_out_over_the_answer(how: str, look_at: int, lengths: list[int]) -> None:
    trace, sink = run(how, lengths, look_at)
    wanted, own = answers(lengths), lengths[look_at]
    model = trace.subject.model
    with torch.no_grad():
        scores = model(trace.batch.inputs, trace.batch.lengths, wanted)
    logs = scores[look_at].log_softmax(-1)
    expected = [-float(logs[t, int(wanted[look_at, t])]) for t in range(own)]
    for name in ("output:loss", "output:surprise"):
        np.testing.assert_allclose(sink.array(name), expected, rtol=1e-6)
    entropy = [-sum(float(p) * math.log(float(p)) for p in row.exp()) for row in logs[:own]]
    np.testing.assert_allclose(sink.array("output:entropy"), entropy, rtol=1e-5)
    assert sink.array("output:token")[:, 0].tolist() == scores[look_at, :own].argmax(-1).tolist()
    assert sink.labels("step") == trace.batch.names[look_at]
    assert sink.labels(ANSWER_DOMAIN) == tuple(LETTERS[i] for i in wanted[look_at, :own].tolist())
    every = [
        -float(row.log_softmax(-1)[i])
        for s, w in zip(scores, wanted, strict=True)
        for row, i in zip(s, w, strict=True)
        if i >= 0
    ]
    assert sink.scalars()["output:perplexity"] == pytest.approx(math.exp(sum(every) / len(every)))
    place = "decoder.l0" if how == "fused" else "decoder"
    found = [channel for channel in sink if isinstance(channel, Channel)]
    for channel in found:
        answered = channel.place in ("output", place, "embedding#2")
        if channel.step_domain in ("step", ANSWER_DOMAIN):
            assert channel.step_domain == (ANSWER_DOMAIN if answered else "step"), channel.name
    assert sink.array(f"{place}:h").shape == (own, 5) and sink.array("encoder.l0:h").shape == (GIVEN[look_at], 5)
    for signal in ("gradient/state_norm", "jacobian/spectral_norm"):
        assert sink.array(f"{place}:{signal}").shape == (own,)
    assert not any(name.startswith("output:") for name in sink.refusals())


@pytest.mark.parametrize("how", ["fused", "cell", "hand"])
def test_without_a_word_the_number_of_steps_tells_the_decoder(how: str) -> None:
    place = "decoder.l0" if how == "fused" else "decoder"
    alike = "step" if how == "fused" else ANSWER_DOMAIN  # a loop that reads no input is the output's
    for lengths, domain in ((LONGER, ANSWER_DOMAIN), (SHORTER, ANSWER_DOMAIN), (EQUAL, alike)):
        _, sink = run(how, lengths, decoder=())
        assert sink.channel(f"{place}:h").domain("step") == domain
        assert sink.channel("encoder.l0:h").domain("step") == "step"
        said = [record.text for record in sink if isinstance(record, Log) and "`decoder`" in record.text]
        assert len(said) == (domain == "step")  # what cannot be told apart is said, not guessed


@pytest.mark.parametrize("lengths", [LONGER, EQUAL])
def test_gradients_are_the_same_with_and_without_an_answer(lengths: list[int]) -> None:
    trace, _ = run("fused", lengths)
    plain, _ = run("fused", lengths, answer=None, decoder=())
    for one, other in zip(trace.recurrences, plain.recurrences, strict=True):
        assert one.place == other.place and one.delta is not None and other.delta is not None
        torch.testing.assert_close(one.delta, other.delta, rtol=0, atol=0)


def test_a_model_without_the_attribute_is_refused_as_before() -> None:
    trace, sink = run("fused", LONGER, answer=None, decoder=())
    assert trace.answer is None and "expected one value a step, (3, 5)" in sink.refusals()["output:loss"]
    assert "`answer`" in sink.refusals()["output:probability"] and not sink.labels(ANSWER_DOMAIN)
    assert all(channel.step_domain != ANSWER_DOMAIN for channel in sink if isinstance(channel, Channel))


def test_without_targets_the_steps_are_called_by_the_models_own_answer() -> None:
    wanted, sink = answers(LONGER), Listed()
    trace = perform(subject_of("fused", wanted, loss=None), batch_of(GIVEN, None), sink)
    assert trace.logits is not None
    assert sink.labels(ANSWER_DOMAIN) == tuple(LETTERS[i] for i in trace.logits[0].argmax(-1).tolist())
    assert sink.array("output:entropy").shape == (8,)
    assert not {"output:surprise", "output:loss"} & sink.names() and "output:perplexity" not in sink.scalars()


def test_an_answer_without_steps_is_said_and_breaks_nothing() -> None:
    wanted, sink = answers([3, 2, 4]), Listed()
    wanted[1] = PADDING
    perform(subject_of("fused", wanted), batch_of(GIVEN, wanted, 1), sink)
    assert "no steps" in sink.refusals()["output:answer"] and sink.array("encoder.l0:h").shape == (5, 5)
    assert not any("failed" in reason for reason in sink.refusals().values())
    assert "decoder.l0:gate/update" not in sink.names()


def test_labels_are_taken_as_they_are() -> None:
    rows = [["row 1", "row 2"], ["row 1"]]
    subject = adopt(nn.Linear(2, 3))
    subject.answer = lambda _output, _batch: rows
    found = read_answer(subject, None, Batch(torch.zeros(2, 4, 2), torch.tensor([4, 3]), look_at=1), None)
    assert (found.steps, found.lengths.tolist(), found.ids, found.names) == (2, [2, 1], None, ("row 1",))


def test_ids_end_at_their_last_real_one_and_unknown_ones_are_numbered() -> None:
    subject = Subject(nn.Identity(), vocabulary="abc", answer=lambda _o, _b: torch.tensor([[1, -1, 9, -100], [-1] * 4]))
    batch = Batch(torch.zeros(2, 3, dtype=torch.long), torch.tensor([3, 2]))
    found = read_answer(subject, None, batch, None)
    assert found.lengths.tolist() == [3, 0] and found.names == ("b", "", "9")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (torch.zeros(2, 3), "torch.float32 of shape (2, 3)"),
        (torch.zeros(3, 2, dtype=torch.long), "shape (3, 2)"),
        (torch.zeros(2, dtype=torch.long), "shape (2,)"),
        ("abc", "a str"),
        (7, "an int"),
        ([["a"]], "a list"),
        (None, "gave nothing"),
    ],
)
def test_what_is_no_answer_is_refused_in_one_sentence(given: object, said: str) -> None:
    subject = Subject(nn.Identity(), vocabulary="abc", answer=lambda _o, _b: given)
    batch = Batch(torch.zeros(2, 3, dtype=torch.long), torch.tensor([3, 2]))
    with pytest.raises(Unsupported) as told:
        read_answer(subject, None, batch, None)
    assert said in str(told.value) and str(told.value).count(". ") == 0


def test_a_fault_of_the_users_answer_is_told_with_its_name() -> None:
    def broken(_output: Any, _batch: Batch) -> Tensor:
        raise KeyError("targets")

    with pytest.raises(ModelError, match=r"`answer` of .* raised KeyError"):
        run("fused", LONGER, answer=broken)


def test_scores_of_another_number_of_steps_are_not_laid_beside_the_answer() -> None:
    _, sink = run("fused", LONGER, logits=lambda output: output[:, :-1])
    assert "have 7 steps and the answer has 8" in sink.refusals()["output:probability"]


def test_gates_of_a_decoder_are_not_assigned_to_the_inputs_tokens_even_where_lengths_agree() -> None:
    trace, sink = run("fused", GIVEN)
    assert (
        isinstance(trace.answer, Answer) and "other steps than the input" in sink.refusals()["decoder.l0:gate/openers"]
    )
    decoder = next(item for item in trace.recurrences if item.place == "decoder.l0")
    with pytest.raises(Unsupported):
        aligned_inputs(trace, decoder)


def test_influence_by_lag_is_refused_where_nothing_lies_a_lag_apart() -> None:
    wanted, sink = answers(EQUAL), Listed()
    perform(subject_of("fused", wanted), batch_of(GIVEN, wanted), sink, RunOptions(only=("influence",)))
    assert "a step axis of its own" in sink.refusals()["input:influence/loss"]


class Looker(nn.Module):
    """An encoder and queries of the answer's steps that look at it, and at themselves."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embedding = nn.Embedding(7, 4)
        self.read = nn.MultiheadAttention(4, 1, batch_first=True)
        self.decoder = nn.ModuleDict({name: nn.MultiheadAttention(4, 1, batch_first=True) for name in ("own", "cross")})
        self.head = nn.Linear(4, 7)

    def forward(self, ids: Tensor, wanted: Tensor) -> Tensor:
        x, y = self.embedding(ids), self.embedding(wanted.clamp(min=0))
        x = self.read(x, x, x)[0]
        later = torch.ones(y.shape[1], y.shape[1]).triu(1).bool()
        y = self.decoder["own"](y, y, y, attn_mask=later)[0]
        y = self.decoder["cross"](y, x, x)[0]
        out: Tensor = self.head(y)
        return out


@pytest.mark.parametrize("lengths", [LONGER, SHORTER, EQUAL], ids=["longer", "shorter", "equal"])
def test_a_decoders_attention_has_queries_of_the_answer_and_keys_of_the_input(lengths: list[int]) -> None:
    wanted, sink = answers(lengths), Listed()
    subject = Subject(
        Looker().eval(), vocabulary=LETTERS, kind="tokens", loss=loss, decoder="decoder",
        answer=lambda _o, batch: batch.targets, forward=lambda model, ids, _lengths: model(ids, wanted),
    )  # fmt: skip
    perform(subject, batch_of(GIVEN, wanted), sink)
    own, cross, read = (sink.channel(f"{place}:attention") for place in ("decoder.own", "decoder.cross", "read"))
    assert [own.domain("query"), own.domain("key")] == [ANSWER_DOMAIN, ANSWER_DOMAIN]
    assert [cross.domain("query"), cross.domain("key")] == [ANSWER_DOMAIN, "step"]
    assert [read.domain("query"), read.domain("key")] == ["step", "step"]
    n = lengths[0]
    assert own.shape == (1, n, n) and cross.shape[1] == n and read.shape[1] == GIVEN[0]
    assert "attends to another sequence" in sink.refusals()["decoder.cross:attention/distance"]
    np.testing.assert_allclose(sink.array("decoder.own:attention")[0].sum(-1), 1, atol=2e-3)
    np.testing.assert_allclose(sink.array("decoder.cross:attention")[0].sum(-1), 1, atol=2e-3)


def test_the_samples_say_whose_steps_they_run_over() -> None:
    from inspector.engine.model.batching import of_value, pad
    from inspector.engine.opening.open_subject import open_subject
    from inspector.records import Load

    for name, text, answer, domains in (
        ("encoder-decoder-reverse", "ab·c", ("c", "b", "a", "<"), {"encoder.l0": "step", "decoder.l0": ANSWER_DOMAIN}),
        ("generator-digits", "3", tuple(f"row {n}" for n in range(1, 9)), {"rnn.l0": ANSWER_DOMAIN}),
    ):
        subject, sink = open_subject(Load(subject=name)).subject, Listed()
        perform(subject, pad(subject, [of_value(subject, text)], targets=[None]), sink)
        assert sink.labels(ANSWER_DOMAIN) == answer
        for place, domain in domains.items():
            assert sink.channel(f"{place}:h").domain("step") == domain
        assert not any(reason.startswith("The loss has shape") for reason in sink.refusals().values())
