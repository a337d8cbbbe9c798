"""A search as a run: what a subject may offer, the frames, the tree in the capture, and how far free running drifts."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import inspector
from inspector.analysis.decoded_tree import read_tree
from inspector.capture import Capture
from inspector.engine.decoding.decoding_run import title_of
from inspector.engine.decoding.next_tokens import NextTokens
from inspector.engine.errors import InputError, ModelError
from inspector.engine.model.batching import pad
from inspector.engine.model.subject import adopt
from inspector.records import DecodedTree
from sample_models import dates, dates_state
from sample_models.base import checkpoints, load

pytestmark = pytest.mark.usefixtures("one_thread")

TEXT, RIGHT = "tuesday, the 23rd of september 2025", "2025-09-23<"
ONLY = ("states", "attention/maps", "output/probabilities")


def tree_of(capture: Capture) -> DecodedTree:
    tree = read_tree(capture)
    assert tree is not None
    return tree


@pytest.fixture(scope="module")
def wrong() -> Capture:
    """A model that says the wrong day."""
    return inspector.decode("dates-state", TEXT, how="beam", width=3, shown=2, only=ONLY)


def date_model() -> nn.Module:
    model = dates_state.build().model
    load(model, checkpoints("dates_state")[-1])
    return model.eval()


def free_steps(said: str) -> tuple[Tensor, Tensor]:
    """States (t, h) and ln p (t, v) of the sample while it is fed with some symbols, in a plain loop."""
    model: Any = date_model()
    with torch.no_grad():
        _, last = model.encoder.rnn(model.encoder.embedding(dates.encode(TEXT)[None]))
        state, states, scores = last[0], [], []
        for before in ("<" + said)[: len(said)]:
            symbol = model.decoder.embedding(torch.tensor([dates.SAID.index(before)]))
            state = model.decoder.cell(symbol, state)
            states.append(state[0])
            scores.append(torch.log_softmax(model.decoder.head(state)[0].double(), -1))
    return torch.stack(states), torch.stack(scores)


def test_frames_are_the_right_answer_and_the_best_hypotheses(wrong: Capture) -> None:
    tree = tree_of(wrong)
    best = [tree.said(end) for end in tree.ranked[:2]]
    assert [frame.label.partition(" (")[0] for frame in wrong.frames] == ["right answer", *best]
    assert RIGHT in {tree.said(end) for end in tree.ranked} and best[0] != RIGHT
    for frame, said in enumerate((RIGHT, *best)):
        assert "".join(wrong.labels("answer step", frame)) == said
        states, scores = free_steps(said)
        np.testing.assert_allclose(wrong.array("decoder.cell:h", frame), states, atol=1e-5)
        wanted = -sum(float(row[dates.SAID.index(symbol)]) for row, symbol in zip(scores, said, strict=True))
        assert float(np.sum(wrong.array("output:surprise", frame))) == pytest.approx(wanted, rel=1e-4)
    for end in tree.ranked:
        _, scores = free_steps(tree.said(end))
        total = sum(float(row[token]) for row, token in zip(scores, tree.ids(end), strict=True))
        assert tree.tokens[end].total == pytest.approx(total, rel=1e-5)


def test_the_capture_says_how_it_was_searched(wrong: Capture) -> None:
    assert (tree_of(wrong).decode.how, tree_of(wrong).decode.width, tree_of(wrong).decode.shown) == ("beam", 3, 2)
    assert wrong.status == "done" and not wrong.stop.left  # type: ignore[union-attr]


def test_drift_is_how_far_free_running_parts_from_the_right_answer(wrong: Capture) -> None:
    said = tree_of(wrong).said(tree_of(wrong).ranked[0])
    (forced, p), (free, q) = free_steps(RIGHT), free_steps(said)
    divergence = (p.exp() * (p - q)).sum(-1)
    np.testing.assert_allclose(wrong.array("decoding:drift/output", 1), divergence, atol=1e-5)
    distance = (free - forced).double().norm(dim=-1) / forced.double().norm(dim=-1)
    np.testing.assert_allclose(wrong.array("decoder.cell:drift/state", 1), distance, atol=1e-5)
    count = np.cumsum([a != b for a, b in zip(RIGHT, said, strict=True)])
    np.testing.assert_array_equal(wrong.array("decoding:drift/wrong", 1), count)
    first = int(np.argmax(count > 0))
    assert not distance[: first + 1].any() and float(distance[first + 1]) > 0.01, "a symbol is read a step later"
    assert wrong.channels["decoding:drift/output"].domain("step") == "answer step"


def test_a_right_hypothesis_does_not_drift() -> None:
    capture = inspector.decode("dates-bilinear", TEXT, only=ONLY)
    assert tree_of(capture).said(tree_of(capture).ranked[0]) == RIGHT
    for name in ("decoding:drift/output", "decoding:drift/wrong", "decoder.cell:drift/state"):
        assert not np.asarray(capture.array(name, 1)).any(), name
    maps = [capture.array("decoder.attention:attention", frame) for frame in (0, 1)]
    np.testing.assert_array_equal(*maps)
    assert capture.array("decoder.attention:attention").shape == (1, len(RIGHT), len(TEXT))


def test_a_text_without_a_right_answer_has_hypotheses_only() -> None:
    capture = inspector.decode("dates-transformer", "next tuesday", how="beam", width=2, shown=2, only=ONLY)
    assert len(capture.frames) == 2 and "right answer" not in {frame.label for frame in capture.frames}
    assert not [name for name in capture.channels if "drift" in name]
    shape = capture.array("decoder.layers.0.multihead_attn:attention", 1).shape
    assert shape == (4, len(capture.labels("answer step", 1)), 12)


def test_two_inputs_are_decoded_together() -> None:
    capture = inspector.decode("dates-two-encoders", {"day": "9", "month": "1999 december"}, only=ONLY)
    assert tree_of(capture).said(tree_of(capture).ranked[0]) == "1999-12-09<"
    assert "".join(capture.labels(capture.channels["decoder.month:attention"].domain("key"), 1)) == "1999 december"


def test_a_model_of_next_tokens_continues_what_it_reads() -> None:
    greedy, beam = (
        inspector.decode("garden-path-gru", "<", how=how, width=2, only=ONLY)  # type: ignore[arg-type]
        for how in ("greedy", "beam")
    )
    assert tree_of(greedy).said(tree_of(greedy).ranked[0])[0] == "b"
    assert tree_of(beam).said(tree_of(beam).ranked[0]) == "along<"
    assert "".join(beam.labels("step")) == "<along<"
    assert beam.array("rnn.l0:h").shape == (7, 16) and len(beam.frames) == 1
    found = inspector.decode("garden-path-gru", "<b", longest=1, width=30, only=ONLY)
    assert {one.text for one in tree_of(found).tokens if one.log_probability > np.log(0.1)} == set("aeio")


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_a_translator_of_ones_own_is_decoded() -> None:
    example = "docs/examples/translator.py:make"
    capture = inspector.decode(example, {"src": "water", "tgt": "<eau>"}, how="beam", width=2, longest=6, only=ONLY)
    assert capture.frames[0].label == "right answer"
    name = "transformer.decoder.layers.0.multihead_attn:attention"
    for frame, said in enumerate(("eau>", tree_of(capture).said(tree_of(capture).ranked[0]))):
        assert "".join(capture.labels("answer step", frame)) == said
        assert capture.array(name, frame).shape == (2, len(said), len("water"))
        assert "".join(capture.labels(capture.channels[name].domain("key"), frame)) == "water"


class Echo(nn.Module):
    """Says what it read, backwards, one token a step."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(5, 5)
        nn.init.eye_(self.embedding.weight)

    def forward(self, ids: Tensor) -> Tensor:
        return 9 * self.embedding(ids.flip(1))


def last_only(model: nn.Module, batch: Any, beginnings: Tensor) -> Tensor:
    scores = model(nn.functional.pad(batch.inputs, (1, 0)))
    return scores[:, min(beginnings.shape[1], scores.shape[1] - 1)].expand(len(beginnings), -1)


def echo(**more: Any) -> SimpleNamespace:
    return SimpleNamespace(**{"model": Echo(), "kind": "tokens", "vocabulary": "·abcd", "end_token": 0, **more})


def test_the_smallest_offer_is_the_logits_of_what_follows() -> None:
    capture = inspector.decode(echo(next_logits=last_only), [1, 2, 3], how="beam", width=2, only=ONLY)
    assert tree_of(capture).said(tree_of(capture).ranked[0]) == "cba·"
    assert [frame.label.partition(" (")[0] for frame in capture.frames] == ["cba·"]
    assert "rnn.l0:h" not in capture.channels and any("(n, t + 1, v)" in log.text for log in capture.logs)


def test_what_cannot_be_decoded_is_said() -> None:
    with pytest.raises(InputError, match=r"does not say what may follow.*next_logits"):
        inspector.decode(echo(), [1, 2])
    with pytest.raises(InputError, match="An answer is searched for to one"):
        inspector.decode("garden-path-gru", "<", edits=["input=a@0"])
    with pytest.raises(ValueError, match="width is 0"):
        inspector.decode("garden-path-gru", "<", width=0)


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        (lambda _m, _b, _p: torch.zeros(2, 5), InputError, r"shape \(2, 5\) for 1 beginnings"),
        (lambda _m, _b, _p: torch.zeros(1, 9, 5), InputError, r"expected \(n, v\) or \(n, 1, v\)"),
        (lambda _m, _b, _p: None, InputError, "gave a NoneType"),
        (lambda _m, _b, _p: torch.full((1, 5), torch.nan), ModelError, "NaN"),
        (lambda _m, _b, _p: torch.full((1, 5), -torch.inf), ModelError, "rule out every token"),
        (lambda _m, _b, _p: 1 / 0, ModelError, "ZeroDivisionError"),
    ],
)
def test_wrong_logits_are_said(given: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        inspector.decode(echo(next_logits=given), [1, 2], only=ONLY)


def test_asking_leaves_the_model_as_it_was() -> None:
    subject = adopt(echo(next_logits=last_only))
    subject.model.train()
    state, random = {k: v.clone() for k, v in subject.model.state_dict().items()}, torch.get_rng_state()
    NextTokens(subject, pad(subject, [torch.tensor([1, 2])], targets=[None]))([(), ()])
    assert subject.model.training and torch.equal(torch.get_rng_state(), random)
    assert all(torch.equal(value, state[key]) for key, value in subject.model.state_dict().items())


def test_samples_are_drawn_by_the_seed(tmp_path: Path) -> None:
    one, same, other = (
        tree_of(inspector.decode("garden-path-gru", "<", how="sample", width=5, seed=seed, only=ONLY))
        for seed in (3, 3, 4)
    )
    assert one == same and one != other and sum(one.tokens[end].times for end in one.ranked) == 5


@pytest.mark.parametrize(("score", "said"), [(-1.934, "(ln p -1.93 nat)"), (-0.412, "(score -0.412, ln p -1.93 nat)")])
def test_a_frame_of_a_hypothesis_tells_its_probability_and_a_penalised_score_apart(score: float, said: str) -> None:
    tree = SimpleNamespace(said=lambda _: "abc", tokens=[SimpleNamespace(score=score, total=-1.934)])
    assert title_of(tree, 0) == f"abc {said}"  # type: ignore[arg-type]
