"""A decoder that is given what it is to say: its axes, and whether it reads that too early."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import inspector
from inspector.analysis.before_training.verdicts import Verdict
from inspector.diagnosis import diagnose

V, D = 11, 8
SOURCE, SAID = [1, 2, 3, 4, 5, 6], [7, 3, 9, 2, 8]


class Decoding(nn.Module):
    """Causal attention over what is said, attention to the source; → ((b, t, v) scores, (b, s, d) of the source).

    `shifts`: it reads each step one late, behind a start sign; `causal`: with a mask.
    """

    def __init__(self, shifts: bool = True, causal: bool = True) -> None:
        super().__init__()
        self.embed, self.places = nn.Embedding(V, D), nn.Embedding(16, D)
        self.own, self.cross = (nn.MultiheadAttention(D, 2, batch_first=True) for _ in range(2))
        self.head = nn.Linear(D, V)
        self.shifts, self.causal = shifts, causal

    def forward(self, src: Tensor, tgt: Tensor, padding: Tensor | None = None) -> tuple[Tensor, Tensor]:
        source, said = self.embed(src), self.embed(tgt)
        said = torch.cat((torch.zeros_like(said[:, :1]), said[:, :-1]), 1) if self.shifts else said
        x = said + self.places(torch.arange(tgt.shape[1]))
        later = torch.ones(tgt.shape[1], tgt.shape[1]).triu(1).bool() if self.causal else None
        x = x + self.own(x, x, x, attn_mask=later, need_weights=False)[0]
        x = x + self.cross(x, source, source, key_padding_mask=padding, need_weights=False)[0]
        return self.head(x), source


def subject(model: nn.Module, **inputs: Any) -> SimpleNamespace:
    """It says what it is given as `tgt`."""
    return SimpleNamespace(
        model=model, logits=lambda output: output[0], answer=lambda _output, batch: batch["tgt"],
        inputs={"src": {"kind": "tokens", "size": V}, "tgt": {"kind": "tokens", "size": V}, **inputs},
    )  # fmt: skip


def verdicts(made: SimpleNamespace) -> dict[str, Verdict]:
    return {one.test: one for one in inspector.preflight(made, {"src": SOURCE, "tgt": SAID}, quick=True)}


@pytest.mark.parametrize(("shifts", "causal", "said"), [
    (True, True, ""), (False, True, "which it is to say"), (True, False, "which comes after it"),
])  # fmt: skip
def test_a_decoder_that_reads_what_it_is_to_say_is_at_fault(shifts: bool, causal: bool, said: str) -> None:
    """The table against autograd: which outputs depend on which embedding of what is given."""
    torch.manual_seed(0)
    model = Decoding(shifts, causal).eval()
    with inspector.run(subject(model), {"src": SOURCE, "tgt": SAID}, only=["structure/causal"]) as capture:
        channel = capture.channel("model:structure/causal")
        table = np.asarray(capture.array(channel.name))
    assert (channel.domain("source"), channel.domain("step")) == ("tgt", "answer step")
    given = model.embed(torch.tensor([SAID])).detach().requires_grad_()
    handle = model.embed.register_forward_hook(lambda _m, args, out: given if args[0].tolist() == [SAID] else out)
    scores = model(torch.tensor([SOURCE]), torch.tensor([SAID]))[0]
    handle.remove()
    rows = [torch.autograd.grad(one.sum(), given, retain_graph=True)[0][0].abs().sum(-1) for one in scores[0]]
    depends = torch.stack(rows, 1).numpy() > 1e-9
    assert (table > 1e-6).tolist() == depends.tolist()
    told = verdicts(subject(model))["causal"]
    assert told.word == ("fault" if said else "holds"), told.sentence
    assert said in told.sentence
    assert "tgt" in told.sentence


class Handing(Decoding):
    """It hands the keys of what was said on; `late`: the places of further steps are too early."""

    def __init__(self, late: int = 0) -> None:
        super().__init__(shifts=False)
        self.late = late

    def forward(  # type: ignore[override]
        self, src: Tensor, tgt: Tensor, past: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        begin = 0 if past is None else past.shape[1] - self.late
        x = self.embed(tgt) + self.places(torch.arange(tgt.shape[1]) + begin)
        keys = x if past is None else torch.cat((past, x), 1)
        later = torch.ones(x.shape[1], keys.shape[1]).triu(1 + keys.shape[1] - x.shape[1]).bool()
        read = x + self.own(x, keys, keys, attn_mask=later, need_weights=False)[0]
        source = self.embed(src)
        return self.head(read + self.cross(read, source, source, need_weights=False)[0]), keys


@pytest.mark.parametrize(("late", "word"), [(0, "holds"), (1, "fault")])
def test_a_decoder_is_given_what_it_says_one_step_at_a_time(late: int, word: str) -> None:
    torch.manual_seed(0)
    model = Handing(late).eval().requires_grad_(False)
    with inspector.run(subject(model), {"src": SOURCE, "tgt": SAID}, only=["structure/cache"]) as capture:
        channel = capture.channel("model:structure/cache")
        moved = np.asarray(capture.array(channel.name))
    assert channel.domain("step") == "answer step"
    whole, keys = model(torch.tensor([SOURCE]), torch.tensor([SAID]))
    begin = int(np.isnan(moved).sum())
    last = model(torch.tensor([SOURCE]), torch.tensor([SAID[begin : begin + 1]]), keys[:, :begin])[0][0, 0]
    expected = float((last - whole[0, begin]).abs().max() / whole.abs().max())
    assert 0 < begin < len(SAID) and moved[begin] == pytest.approx(expected, rel=1e-3, abs=1e-6)
    assert verdicts(subject(model))["cache"].word == word


def test_why_a_decoder_with_a_cache_is_not_tested_is_said() -> None:
    class Renamed(Handing):
        def forward(self, source: Tensor, tgt: Tensor, past: Tensor | None = None) -> tuple[Tensor, Tensor]:  # type: ignore[override]
            return super().forward(source, tgt, past)

    told = subject(Renamed().eval())
    told.forward = lambda model, batch: model(batch["src"], batch["tgt"])
    with inspector.run(told, {"src": SOURCE, "tgt": SAID}, only=["structure/cache"]) as capture:
        (reason,) = (one.reason for one in capture.refusals if one.channel == "model:structure/cache")
    assert "no parameter src" in reason


class Late(nn.Module):
    """A recurrence over what is said, `late` steps behind it; `source` is its first state."""

    def __init__(self, late: int) -> None:
        super().__init__()
        self.embed, self.rnn, self.head = nn.Embedding(V, D), nn.GRU(D, D, batch_first=True), nn.Linear(D, V)
        self.late = late

    def forward(self, src: Tensor, tgt: Tensor) -> tuple[Tensor, Tensor]:
        start = torch.zeros_like(tgt[:, : self.late])
        said = torch.cat((start, tgt[:, : tgt.shape[1] - self.late]), 1)
        return self.head(self.rnn(self.embed(said), self.embed(src).mean(1)[None])[0]), self.embed(src)


@pytest.mark.parametrize(("late", "fault"), [(1, False), (2, True), (3, False)])
def test_a_decoder_that_is_given_its_answer_shifted_twice(late: int, fault: bool) -> None:
    """Three steps late is on purpose, or another fault: nothing is said of it."""
    torch.manual_seed(0)
    given = {"src": SOURCE, "tgt": [*SAID, 4, 1, 5]}
    told = [one for one in inspector.preflight(subject(Late(late).eval()), given, quick=True) if one.test == "labels"]
    assert [one.word for one in told] == ["fault"] * fault
    assert not fault or ("shifted twice" in told[0].sentence and "Shift once" in told[0].remedy)
    assert not fault or "6 replaced of tgt" in told[0].sentence


def test_a_model_of_one_sequence_that_does_not_read_its_newest_input() -> None:
    class Behind(Late):
        def forward(self, ids: Tensor) -> Tensor:  # type: ignore[override]
            return super().forward(torch.zeros_like(ids[:, :1]), ids)[0]

    for late, word in ((0, []), (1, ["fault"])):
        torch.manual_seed(0)
        made = SimpleNamespace(model=Behind(late).eval(), next_token=True, vocabulary=list("abcdefghijk"))
        ids = [3, 1, 4, 1, 5, 9, 2, 6]
        with inspector.run(made, ids, only=["structure/causal"]) as capture:
            found = [one for one in diagnose(capture, capture.frames).findings if one.rule == "label-shift"]
        assert [one.severity for one in found] == ["warning"] * len(word)
        assert all("its input just before" in one.message and not one.code for one in found)


def test_states_of_the_source_are_not_taken_for_outputs() -> None:
    """Nothing that is given holds what is said, and what the encoder returns has the source's steps."""
    made = subject(Decoding().eval())
    made.answer = lambda _output, batch: batch["tgt"].flip(1)
    assert verdicts(made)["causal"].word == "not tested"


@pytest.mark.parametrize("marks", ["padding", "real"])
def test_a_mask_of_either_sense_marks_the_padding_that_is_added(marks: str) -> None:
    torch.manual_seed(0)
    made = subject(Decoding().eval(), padding={"kind": "mask", "of": "src", "marks": marks})
    flip = marks == "real"
    made.forward = lambda model, batch: model(batch["src"], batch["tgt"], batch["padding"] ^ flip)
    assert verdicts(made)["padding"].word == "holds"
    made.forward = lambda model, batch: model(batch["src"], batch["tgt"], batch["padding"] & False)
    assert verdicts(made)["padding"].word == "fault"


def test_maps_of_a_decoder_lie_over_what_it_says_and_their_gradients_beside_them() -> None:
    """`tgt` has as many steps as the answer, which it holds: no question of whose the queries are."""
    made = subject(Decoding().eval())
    made.loss = lambda output, batch: nn.functional.cross_entropy(output[0].mT, batch["tgt"], reduction="none")
    only = ["attention/maps", "attention/gradient", "attention/weighted_norm"]
    with inspector.run(made, {"src": SOURCE, "tgt": SAID}, only=only) as capture:
        for place, keys in (("own", "answer step"), ("cross", "step")):
            for signal in ("", "/gradient", "/times_gradient", "/weighted_norm"):
                channel = capture.channel(f"{place}:attention{signal}")
                assert (channel.domain("query"), channel.domain("key")) == ("answer step", keys), channel.name
