"""Models with several inputs, run and captured: numbers against autograd's own, channels over their own steps."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from kept import Kept
from several_inputs import (
    SOURCE,
    TARGET,
    Captioner,
    Continued,
    FromMapping,
    GruTranslator,
    InOrder,
    KeywordOnly,
    LanguageModel,
    Output,
    Translator,
    Wrapped,
    made,
    numbers,
    run,
    translation,
)
from torch import Tensor, nn

from inspector.engine.errors import InputError
from inspector.engine.interventions.runs import perform_with_edits, plan_edits
from inspector.engine.model.batch import Batch
from inspector.engine.model.subject import Subject, adopt
from inspector.engine.pipeline import RunOptions
from inspector.engine.pipeline.batches import make_batch
from inspector.records import ANSWER_DOMAIN, Channel, Labels, Log, Page, parse_edit

D = torch.float64
VECTORS = {"kind": "vectors", "width": 3}
STATE = {"kind": "state", "shape": (2, 4), "batch_dim": 1}
MASKS = {name: {"kind": "mask", "of": name[:3], "marks": "padding"} for name in ("src_padding", "tgt_padding")}


def next_letter(scores: Tensor, batch: Batch) -> Tensor:
    """−ln p of each letter of the target under the scores of the step before, NaN at the last one and at padding."""
    tgt, real = batch["tgt"], batch.mask("tgt")
    values = nn.functional.cross_entropy(scores[:, :-1].transpose(1, 2), tgt[:, 1:], reduction="none")
    return nn.functional.pad(values.masked_fill(~real[:, 1:], torch.nan), (0, 1), value=torch.nan)


CASES: dict[str, tuple[Any, dict[str, Any]]] = {
    "two sequences": (translation(), {"src": "abcde", "tgt": "ABC"}),
    "transformer with masks": (translation(Translator, inputs=MASKS), {"src": ["abcde", "ab"], "tgt": ["ABC", "A"]}),
    "a mapping": (
        SimpleNamespace(model=made(FromMapping), inputs={"notes": VECTORS, "speaker": "other"}),
        {"notes": numbers(6, 3), "speaker": torch.tensor(2)},
    ),
    "keyword only": (made(KeywordOnly), {"left": numbers(5, 2), "right": numbers(5, 3)}),
    "dataclass": (made(LanguageModel), {"input_ids": [1, 2, 3, 4], "labels": [1, 2, 3, 4]}),
    "captioner": (
        SimpleNamespace(model=made(Captioner), inputs={"image": "image", "caption": {"vocabulary": TARGET}}),
        {"image": numbers(3, 64).view(3, 8, 8), "caption": "ABCA"},
    ),
    "initial state": (
        SimpleNamespace(model=made(Continued), inputs={"x": VECTORS, "h0": STATE, "c0": STATE}),
        {"x": numbers(6, 3), "h0": numbers(2, 4), "c0": numbers(2, 4)},
    ),
    "anything passed on": (
        SimpleNamespace(model=made(Wrapped, GruTranslator()), inputs=translation().inputs), {"src": "abcde", "tgt": "ABC"},
    ),
    "in order alone": (
        SimpleNamespace(model=made(InOrder, GruTranslator()), inputs=translation().inputs), {"src": "abcde", "tgt": "ABC"},
    ),
}  # fmt: skip


def direct(model: nn.Module, batch: Batch) -> Any:
    """The call written out, as the model's author would."""
    calls: dict[type[nn.Module], Any] = {
        FromMapping: lambda m: m({"notes": batch["notes"], "speaker": batch["speaker"]}),
        KeywordOnly: lambda m: m(left=batch["left"], right=batch["right"]),
        LanguageModel: lambda m: m(batch["input_ids"], labels=batch["labels"]).logits,
        Captioner: lambda m: m(batch["image"], batch["caption"]),
        Continued: lambda m: m(batch["x"], batch["h0"], batch["c0"]),
        Translator: lambda m: m(
            batch["src"], batch["tgt"], src_padding=~batch.mask("src"), tgt_padding=~batch.mask("tgt")
        ),
    }
    return calls.get(type(model), lambda m: m(batch["src"], batch["tgt"]))(model)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("case", CASES)
def test_each_way_of_calling_gives_what_the_author_gets(case: str) -> None:
    subject, values = CASES[case]
    trace, sink = run(subject, values)
    output = trace.output.logits if isinstance(trace.output, Output) else trace.output
    with torch.no_grad():
        torch.testing.assert_close(output.detach(), direct(trace.subject.model, trace.batch), rtol=0, atol=1e-12)
    assert not [reason for reason in sink.refusals().values() if "failed" in reason]
    channels = sink.of(Channel)
    assert channels and all(channel.name.startswith("input") or channel.place for channel in channels)
    for page in sink.of(Page):
        assert len(page.array.shape) == len(sink.channel(page.channel).dims)


@pytest.mark.parametrize("look_at", [0, 1])
def test_what_a_decoder_captures_is_autograds(look_at: int) -> None:
    values = {"src": ["abcde", "gfed"], "tgt": ["ABC", "EDCBAB"]}
    trace, sink = run(translation(loss=next_letter), values, look_at)
    batch, model = trace.batch, made(GruTranslator)
    tgt, length = batch["tgt"], len(values["tgt"][look_at])
    context = model.encoder(model.source(batch["src"]))[1]
    states = [context[0]]
    for t in range(tgt.shape[1]):
        states.append(model.decoder(model.target(tgt[:, t : t + 1]), states[-1][None])[0][:, 0])
    scores = model.head(torch.stack(states[1:], 1))
    loss = next_letter(scores, batch)
    found = torch.autograd.grad(loss.nansum(), states[1:], retain_graph=True)
    norms = [float(gradient[look_at].norm()) for gradient in found[:length]]
    np.testing.assert_allclose(sink.array("decoder.l0:gradient/state_norm"), norms, rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(
        sink.array("decoder.l0:h"), torch.stack(states[1:], 1)[look_at, :length].detach(), rtol=1e-9, atol=1e-12
    )
    np.testing.assert_allclose(sink.array("output:loss"), loss[look_at, :length].detach(), rtol=1e-6, equal_nan=True)
    logs = scores[look_at, :length].detach().log_softmax(-1)
    np.testing.assert_allclose(sink.array("output:entropy"), -(logs.exp() * logs).sum(-1), rtol=1e-5)
    weight = torch.autograd.grad(loss.nansum(), model.source.weight)[0]
    kept = trace.parameter_gradients.every
    torch.testing.assert_close(kept["source.weight"], weight, rtol=1e-9, atol=1e-12)


def test_the_next_token_of_a_decoder_is_the_targets() -> None:
    trace, sink = run(translation(next_token=True), {"src": "abcde", "tgt": "ABC"})
    logs = trace.output[0].log_softmax(-1)
    expected = [float("nan"), -float(logs[0, 1]), -float(logs[1, 2])]
    np.testing.assert_allclose(sink.array("output:surprise"), expected, rtol=1e-6)
    assert sink.channel("output:surprise").step_domain == ANSWER_DOMAIN


def test_nothing_of_the_target_is_over_the_steps_of_the_source() -> None:
    trace, sink = run(translation(loss=next_letter), {"src": "abcde", "tgt": "ABC"})
    assert sink.labels("step") == tuple("abcde") and sink.labels(ANSWER_DOMAIN) == tuple("ABC")
    over = {channel.place: channel.step_domain for channel in sink.of(Channel) if "step" in channel.dims}
    assert over == {
        "input": "step", "source": "step", "encoder.l0": "step", "input.tgt": ANSWER_DOMAIN, "target": ANSWER_DOMAIN,
        "decoder.l0": ANSWER_DOMAIN, "output": ANSWER_DOMAIN,
    }  # fmt: skip
    tokens = sink.channel("input.tgt:token")
    assert tokens.value_domain == sink.channel("output:token").value_domain == "vocabulary of tgt"
    assert sink.labels("vocabulary of tgt") == TARGET and sink.labels("vocabulary") == SOURCE
    assert sink.array("input.tgt:token").tolist() == [0, 1, 2] and sink.array("input:token").tolist() == [0, 1, 2, 3, 4]
    assert trace.answer is not None and trace.answer.source == "tgt" and trace.answer.ids is None


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("loss", [next_letter, None])  # without gradients the encoder runs on nested tensors
def test_attention_between_source_and_target_looks_from_one_to_the_other(loss: Any) -> None:
    subject = translation(Translator, inputs=MASKS, loss=loss)
    _, sink = run(subject, {"src": ["abcde", "abc"], "tgt": ["ABC", "BA"]}, look_at=1)
    place = "transformer.decoder.layers.0"
    crossing, own = sink.channel(f"{place}.multihead_attn:attention"), sink.channel(f"{place}.self_attn:attention")
    assert crossing.shape[1:] == (2, 5) and (crossing.domain("query"), crossing.domain("key")) == (
        ANSWER_DOMAIN,
        "step",
    )
    assert own.shape[1:] == (2, 2) and (own.domain("query"), own.domain("key")) == (ANSWER_DOMAIN, ANSWER_DOMAIN)
    assert not sink.array(f"{place}.multihead_attn:attention")[..., 3:].any()  # the padding of the source
    encoder = sink.channel("transformer.encoder.layers.0.self_attn:attention")
    assert encoder.shape[1:] == (3, 3) and encoder.domain("query") == encoder.domain("key") == "step"
    assert (
        sink.array("input.src_padding:mask").tolist() == [False] * 3
        and sink.channel("input.src_padding:mask").step_domain == "step"
    )
    assert sink.channel("input.tgt_padding:mask").step_domain == ANSWER_DOMAIN


@pytest.mark.parametrize(
    "said", [{"decoder": "decoder"}, {"inputs": {"tgt": {"vocabulary": TARGET, "modules": "decoder"}}}]
)
def test_equal_lengths_are_told_apart_by_the_modules(said: dict[str, Any]) -> None:
    _, sink = run(translation(**said), {"src": "abc", "tgt": "ABC"})
    assert sink.channel("decoder.l0:h").step_domain == sink.channel("output:entropy").step_domain == ANSWER_DOMAIN
    assert sink.channel("encoder.l0:h").step_domain == "step" and sink.labels(ANSWER_DOMAIN) == tuple("ABC")
    assert not sink.of(Log)


def test_equal_lengths_are_told_apart_by_what_is_read() -> None:
    _, sink = run(translation(), {"src": "abc", "tgt": "ABC"})
    assert sink.channel("decoder.l0:h").step_domain == "tgt" and sink.channel("encoder.l0:h").step_domain == "step"
    assert sink.labels("tgt") == tuple("ABC") and not sink.labels(ANSWER_DOMAIN) and not sink.of(Log)


class Unrecorded(GruTranslator):
    """Its steps cannot be followed: they are in the order of their values."""

    def forward(self, src: Tensor, tgt: Tensor) -> Tensor:
        return super().forward(torch.sort(src, 1)[0], torch.sort(tgt, 1)[0])


def test_equal_lengths_without_a_word_are_said_to_be_alike() -> None:
    _, sink = run(translation(Unrecorded), {"src": "abc", "tgt": "ABC"})
    assert sink.channel("decoder.l0:h").step_domain == "step" and sink.channel("input.tgt:token").step_domain == "tgt"
    assert sink.labels("tgt") == tuple("ABC") and not sink.labels(ANSWER_DOMAIN)
    assert ["src and tgt have as many steps" in log.text for log in sink.of(Log)] == [True]


class Question(nn.Module):
    """Two encoders: a sound (b, t, 3) and a question of tokens (b, q) → one row of scores."""

    def __init__(self) -> None:
        super().__init__()
        self.sound, self.words = nn.GRU(3, 4, batch_first=True), nn.Embedding(6, 5)
        self.text, self.head = nn.LSTM(5, 4, batch_first=True), nn.Linear(8, 2)

    def forward(self, sound: Tensor, question: Tensor) -> Tensor:
        heard, read = self.sound(sound)[0][:, -1], self.text(self.words(question))[0][:, -1]
        scores: Tensor = self.head(torch.cat((heard, read), -1))
        return scores


def test_an_encoder_of_another_input_runs_over_its_steps() -> None:
    inputs = {"sound": VECTORS, "question": {"vocabulary": TARGET}}
    loss = lambda out, batch: nn.functional.cross_entropy(out, torch.zeros(len(out), dtype=torch.long))  # noqa: E731
    _, sink = run(
        SimpleNamespace(model=made(Question), inputs=inputs, loss=loss),
        {"sound": [numbers(7, 3), numbers(5, 3)], "question": ["ABCD", "AB"]}, look_at=1,
    )  # fmt: skip
    states = sink.channel("text.l0:h")
    assert states.step_domain == "question" and sink.array("text.l0:h").shape == (2, 4)
    assert sink.labels("question") == ("A", "B") and sink.array("sound.l0:h").shape == (5, 4)
    embedded = sink.channel("words:gradient/embedding_norm")
    assert embedded.step_domain == "question" and embedded.shape == (2,)
    assert sink.channel("sound.l0:h").step_domain == "step" and not sink.labels(ANSWER_DOMAIN)


class Hand(nn.Module):
    """A loop written by hand, from a state that is given, kept where the mask is False."""

    def __init__(self) -> None:
        super().__init__()
        self.i, self.h = nn.Linear(3, 4), nn.Linear(4, 4)

    def forward(self, x: Tensor, h0: Tensor, keep: Tensor) -> Tensor:
        h, out = h0[0], []
        for t in range(x.shape[1]):
            h = torch.where(keep[:, t, None], torch.tanh(self.i(x[:, t]) + self.h(h)), h)
            out.append(h)
        return torch.stack(out, 1)


@pytest.mark.parametrize("forward", [None, lambda model, batch: model(batch["x"], batch["h0"], batch.mask("x"))])
def test_a_hand_written_loop_begins_at_the_state_that_it_is_given(forward: Any) -> None:
    inputs = {"x": VECTORS, "h0": {"kind": "state", "shape": (1, 4), "batch_dim": 1}, "keep": {"of": "x"}}
    own = SimpleNamespace(
        model=made(Hand), inputs=inputs, forward=forward, loss=lambda out, batch: out.square().sum(-1)
    )
    values = {"x": [numbers(5, 3), numbers(3, 3)], "h0": [numbers(1, 4), -numbers(1, 4)]}
    trace, sink = run(own, values, look_at=1)
    (found,) = trace.recurrences
    torch.testing.assert_close(found.states[0], torch.cat(values["h0"]), rtol=0, atol=0)
    model, h, states = trace.subject.model, -numbers(1, 4), []
    for x in numbers(3, 3):
        h = torch.tanh(model.i(x[None]) + model.h(h))
        states.append(h)
    padded = [states[-1].clone() for _ in range(2)]  # what is kept over the padding is in the loss as well
    loss = sum(state.square().sum() for state in (*states, *padded))
    norms = [gradient.norm().item() for gradient in torch.autograd.grad(loss, states)]
    np.testing.assert_allclose(sink.array("model:gradient/state_norm")[:3], norms, rtol=1e-9)
    np.testing.assert_allclose(sink.array("model:h")[:3], torch.cat(states).detach(), rtol=1e-12)


def test_steps_that_are_nobodys_are_not_drawn_over_the_source() -> None:
    forward = lambda model, batch: model(batch["src"], batch["tgt"][:, :-1])  # noqa: E731
    _, sink = run(translation(forward=forward), {"src": "abcdef", "tgt": "ABCD"})
    assert sink.channel("decoder.l0:h").step_domain == "tgt" and sink.channel("decoder.l0:h").shape[0] == 3
    assert "`answer`" in sink.refusals()["output:probability"]
    _, sink = run(translation(Unrecorded, forward=forward), {"src": "abcdef", "tgt": "ABCD"})
    assert sink.channel("decoder.l0:h").step_domain == "position"
    answer = lambda _out, batch: batch["tgt"][:, 1:].masked_fill(~batch.mask("tgt")[:, 1:], -1)  # noqa: E731
    values = {"src": ["abcdef", "ab"], "tgt": ["ABCD", "AB"]}
    _, sink = run(translation(forward=forward, answer=answer), values)
    assert sink.channel("decoder.l0:h").step_domain == ANSWER_DOMAIN and sink.labels(ANSWER_DOMAIN) == tuple("BCD")
    assert sink.labels("tgt") == tuple("ABCD") and sink.channel("input.tgt:token").step_domain == "tgt"
    assert sink.channel("output:surprise").shape == (3,)


def test_the_other_kinds_of_input_have_their_channels() -> None:
    sinks = {case: run(*CASES[case])[1] for case in ("a mapping", "captioner", "initial state", "keyword only")}
    speaker = sinks["a mapping"].channel("input.speaker:value")
    assert speaker.dims == ("feature",) and sinks["a mapping"].array("input.speaker:value").tolist() == [2]
    image = sinks["captioner"].channel("input.image:image")
    assert image.dims == ("channel", "row", "column") and image.shape == (3, 8, 8)
    np.testing.assert_array_equal(sinks["captioner"].array(image.name), CASES["captioner"][1]["image"])
    assert sinks["captioner"].channel("input:token").value_domain == "vocabulary"
    state = sinks["initial state"].channel("input.h0:state")
    assert state.dims == ("layer", "unit") and state.shape == (2, 4)
    np.testing.assert_array_equal(sinks["initial state"].array(state.name), CASES["initial state"][1]["h0"])
    vectors = sinks["keyword only"].channel("input.right:value")
    assert vectors.dims == ("step", "feature") and vectors.step_domain == "right"
    assert "input.right:health/value" in sinks["keyword only"].names()


def test_a_forward_sees_the_batch() -> None:
    def forward(model: nn.Module, batch: Batch) -> Any:
        assert batch["tgt"] is batch.named["tgt"].tensor and batch.mask("tgt").shape == batch["tgt"].shape
        return model(batch["src"], batch["tgt"])

    trace, _ = run(translation(forward=forward), {"src": "abcde", "tgt": "ABC"})
    plain, _ = run(translation(), {"src": "abcde", "tgt": "ABC"})
    torch.testing.assert_close(trace.output, plain.output, rtol=0, atol=0)
    with pytest.raises(InputError, match="The batch has no input 'x'; there are src, tgt"):
        run(translation(forward=lambda model, batch: batch["x"]), {"src": "a", "tgt": "A"})


def test_a_call_that_is_not_clear_is_refused_before_anything_runs() -> None:
    with pytest.raises(InputError, match="not clear how to call GruTranslator"):
        make_batch(adopt(made(GruTranslator)), {"src": [1], "tgt": [1], "more": [1]}, 0, 0)
    with pytest.raises(InputError, match="`forward` of it takes"):
        adopt(Subject(model=nn.Identity(), name="it", forward=lambda *given: None))


def test_tokens_of_any_input_can_be_edited() -> None:
    subject = adopt(translation())
    batch = make_batch(subject, {"src": "abcde", "tgt": "ABC"}, 0, 0)
    edit = parse_edit("input.tgt=E@1")
    assert str(edit) == "input.tgt=E@1" and edit.of_input
    sink = Kept()
    perform_with_edits(subject, batch, sink, plan_edits(subject, batch, [edit]), RunOptions(only=("states", "input")))
    assert [sink.array("input.tgt:token", frame).tolist() for frame in (0, 1)] == [[0, 1, 2], [0, 4, 2]]
    before, after = (sink.array("decoder.l0:h", frame) for frame in (0, 1))
    np.testing.assert_array_equal(before[0], after[0])
    assert (before[1:] != after[1:]).any(1).all()
    np.testing.assert_array_equal(sink.array("encoder.l0:h", 0), sink.array("encoder.l0:h", 1))
    labels = {(one.domain, one.frame): one.names for one in sink.of(Labels)}
    assert labels[ANSWER_DOMAIN, 1] == ("A", "E", "C") and labels["step", 1] == tuple("abcde")
    assert batch["tgt"].tolist() == [[0, 1, 2]]
    for text, said in (
        ("input.x=A@0", "there are input, input.tgt"),
        ("input.tgt=a@0", "not one entry"),
        ("input.tgt=A@3", "steps 0 to 2"),
    ):
        with pytest.raises(InputError, match=said):
            plan_edits(subject, batch, [parse_edit(text)])
    both = parse_edit("input.rnn:h=1@0:1")
    assert not both.of_input and both.place == "input.rnn"  # a module may be called so


def test_influence_and_other_runs_on_copies_take_all_inputs_along() -> None:
    subject, values = CASES["captioner"]
    subject = SimpleNamespace(
        **vars(subject), next_token=True,
        loss=lambda scores, batch: nn.functional.pad(nn.functional.cross_entropy(
            scores[:, :-1].transpose(1, 2), batch.inputs[:, 1:], reduction="none"), (0, 1), value=torch.nan),
    )  # fmt: skip
    _, sink = run(subject, values, options=RunOptions(only=("influence", "depth/parameters", "output/loss")))
    assert {"input:influence/loss", "input:gradient/lag", "output:loss"} <= sink.names(), sink.refusals()
