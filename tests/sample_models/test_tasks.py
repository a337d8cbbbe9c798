"""The made tasks ask for the right answers, and the samples that show a system show it."""

from __future__ import annotations

import importlib
import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from sample_models import copy_truncated, encoder_decoder_reverse, generator_digits, tasks, word_lm
from sample_models.base import FOLDER, Plain, Sample, checkpoints, load, run
from sample_models.digits import data
from sample_models.readers import Acceptor
from sample_models.sunspots_gru import HELD_OUT, sunspots


def drawn(draw: Callable[..., Plain], seed: int = 5, **lengths: int) -> Plain:
    return draw(torch.Generator().manual_seed(seed), **lengths)


def text_of(names: tuple[str, ...], ids: Tensor) -> str:
    return "".join(names[i] for i in ids.tolist())


def ids_of(names: tuple[str, ...], text: str) -> Plain:
    return Plain(torch.tensor([[names.index(c) for c in text]]), torch.tensor([len(text)]))


def trained(module: Any, position: int = -1) -> Sample:
    sample: Sample = module.build()
    load(sample.model, checkpoints(module.__name__.rpartition(".")[2])[position])
    sample.model.eval()
    return sample


def test_adding_marks_one_number_in_each_half_and_wants_their_sum() -> None:
    batch = drawn(tasks.adding)
    wanted = []
    for rows, length in zip(batch.inputs, batch.lengths.tolist(), strict=True):
        first, second = torch.nonzero(rows[:, 1])[:, 0].tolist()
        assert first < length // 2 <= second < length and not rows[length:].any()
        wanted.append(float(rows[first, 0] + rows[second, 0]))
    loss = tasks.adding_loss(torch.ones(len(wanted), 1, 1), batch)
    at_end = loss[torch.arange(len(wanted)), batch.lengths - 1]
    torch.testing.assert_close(at_end, (torch.tensor(wanted) - 1) ** 2 / 2)
    assert int((~loss.isnan()).sum()) == len(wanted)


def test_saying_one_costs_a_twelfth_of_a_nat_in_the_adding_problem() -> None:
    found = [float(tasks.adding_loss(torch.ones(32, 1, 1), drawn(tasks.adding, seed)).nanmean()) for seed in range(100)]
    assert np.mean(found) == pytest.approx(1 / 12, abs=0.004)


def test_copying_asks_for_each_symbol_after_the_lag() -> None:
    batch = drawn(tasks.copying)
    targets = tasks.copying_targets(batch)
    assert torch.equal(targets[:, -4:], batch.inputs[:, :4]) and bool((targets[:, :-4] == tasks.IGNORED).all())
    typed = tasks.copying_targets(ids_of(tasks.COPY, "ba·?·??"))
    assert typed[0].tolist() == [-100, -100, -100, 1, -100, 0, -100]


def test_parity_counts_ones() -> None:
    batch = drawn(tasks.parity)
    scores = torch.zeros(*batch.inputs.shape, 2)
    for b, length in enumerate(batch.lengths.tolist()):
        for t in range(length):
            scores[b, t, sum(batch.inputs[b, : t + 1].tolist()) % 2] = 50.0
    loss = tasks.parity_loss(scores, batch)
    assert torch.equal(~loss.isnan(), tasks.real_steps(batch)) and float(loss.nansum()) == 0
    assert float(tasks.parity_loss(0 * scores, batch).nanmean()) == pytest.approx(math.log(2))


def test_brackets_are_well_nested_and_bounded() -> None:
    batch = drawn(tasks.brackets)
    targets = tasks.brackets_targets(batch)
    for ids, wanted, length in zip(batch.inputs, targets, batch.lengths.tolist(), strict=True):
        written = text_of(tasks.BRACKETS, ids[:length])
        for t in range(1, length + 1):
            rest = written[:t]
            while any(pair in rest for pair in ("()", "[]", "{}")):
                rest = rest.replace("()", "").replace("[]", "").replace("{}", "")
            assert not set(rest) & set(")]}") and len(rest) <= tasks.DEEPEST
            closing = {"(": ")", "[": "]", "{": "}"}[rest[-1]] if rest else "none"
            assert tasks.CLOSING[int(wanted[t - 1])] == closing
        assert bool((wanted[length:] == tasks.IGNORED).all())


@pytest.mark.parametrize(("wrong", "asked"), [("([{])}", 3), (")()", 0), ("()]", 2)])
def test_nothing_is_asked_for_after_a_bracket_that_does_not_fit(wrong: str, asked: int) -> None:
    targets = tasks.brackets_targets(ids_of(tasks.BRACKETS, wrong))[0]
    assert (targets != tasks.IGNORED).tolist() == [t < asked for t in range(len(wrong))]


def test_reversing_leaves_out_fillers_and_ends() -> None:
    batch = ids_of(tasks.LETTERS, "ab·c·")
    assert text_of(tasks.LETTERS, tasks.reversed_letters(batch.inputs, batch.lengths)[0]) == "cba<"
    drawn_batch = drawn(tasks.reversing)
    wanted = tasks.reversed_letters(drawn_batch.inputs, drawn_batch.lengths)
    for ids, answer, length in zip(drawn_batch.inputs, wanted, drawn_batch.lengths.tolist(), strict=True):
        letters = text_of(tasks.LETTERS, ids[:length]).replace("·", "")
        assert text_of(tasks.LETTERS, answer[answer != tasks.IGNORED]) == letters[::-1] + "<"


def test_decoder_says_words_backwards_by_itself() -> None:
    model = trained(encoder_decoder_reverse).model
    batch = drawn(tasks.reversing)
    wanted = tasks.reversed_letters(batch.inputs, batch.lengths).tolist()
    said = model.say(batch.inputs, batch.lengths)
    right = [answer == row[: row.index(tasks.BORDER)] for answer, row in zip(said, wanted, strict=True)]
    assert sum(right) >= len(right) - 1
    assert {len(answer) for answer in said} != set(batch.lengths.tolist())


def test_truncation_cuts_the_gradient_and_nothing_else() -> None:
    """Values as without it; the gradient is that of pieces started from states that are mere numbers."""
    sample = copy_truncated.build()
    batch = drawn(tasks.copying)
    whole, cut = run(sample, batch), copy_truncated.truncated(sample.model, batch, 4)
    torch.testing.assert_close(cut, whole)
    embedded = []
    hook = sample.model.embedding.register_forward_hook(lambda _m, _i, out: embedded.append(out) or out.retain_grad())
    copy_truncated.truncated(sample.model, batch, 4)[:, -1].sum().backward()
    run(sample, batch)[:, -1].sum().backward()
    hook.remove()
    reached = [(item.grad.abs().sum((0, 2)) > 0).tolist() for item in embedded]
    assert reached == [[t >= 20 for t in range(24)], [True] * 24]


def test_truncated_training_fails_where_the_lag_is_longer() -> None:
    """Full backpropagation comes to 0.001 nat in as many steps; guessing costs ln 4."""
    history = json.loads((FOLDER / "checkpoints" / "copy_truncated" / "history.json").read_text(encoding="utf-8"))
    assert 0.8 < np.mean(history["loss"][-200:]) < math.log(4)


def test_unclipped_training_has_spikes() -> None:
    history = json.loads((FOLDER / "checkpoints" / "char_elman_unclipped" / "history.json").read_text(encoding="utf-8"))
    norms = np.array(history["gradient_norm"])
    assert history["clip"] is None and norms.max() > 500 * np.median(norms) and (norms > 1).mean() > 0.3
    clipped = json.loads((FOLDER / "checkpoints" / "char_elman" / "history.json").read_text(encoding="utf-8"))
    assert clipped["clip"] == 1.0 and max(clipped["gradient_norm"]) < 10


@pytest.mark.parametrize("position", [0, 3, -1])
def test_orthogonal_recurrence_stays_orthogonal(position: int) -> None:
    module = importlib.import_module("sample_models.orthogonal_elman")
    model = trained(module, position).model
    assert isinstance(model, Acceptor)
    weight = model.rnn.weight_hh_l0.detach().double()
    assert float((weight.T @ weight - torch.eye(48)).abs().max()) < 1e-5
    starts = trained(module, 0).model.rnn.weight_hh_l0
    assert (position == 0) == torch.allclose(weight.float(), starts, atol=1e-3)


def test_deep_nets_learn_the_better_the_more_they_carry() -> None:
    last = {}
    for name in ("deep_plain", "deep_skip", "deep_dynamic", "deep_highway"):
        history = json.loads((FOLDER / "checkpoints" / name / "history.json").read_text(encoding="utf-8"))
        last[name] = np.mean(history["loss"][-200:])
    assert last["deep_plain"] > last["deep_skip"] > 3 * last["deep_dynamic"] > last["deep_highway"]


def test_painted_digits_are_the_mean_of_their_class() -> None:
    sample = trained(generator_digits)
    images, labels = data(test=False)
    for digit in range(10):
        ids = generator_digits.encode(str(digit))
        with torch.no_grad():
            ink = torch.sigmoid(run(sample, Plain(ids[None], torch.tensor([8]))))[0].numpy()
        means = np.stack([images[labels == other].mean(0) for other in range(10)])
        assert np.abs(means - ink).mean((1, 2)).argmin() == digit


@pytest.mark.parametrize("wrong", ["", "33", "x", "·3"])
def test_what_is_no_digit_is_refused(wrong: str) -> None:
    with pytest.raises(ValueError, match="is no digit from 0 to 9"):
        generator_digits.encode(wrong)


def test_words_are_split_counted_and_looked_up() -> None:
    names = word_lm.vocabulary()
    assert len(set(names)) == len(names) == word_lm.WORDS and names[0] == word_lm.UNKNOWN and names[1] == ","
    ids = word_lm.encode("Alice didn't see the telephone!")
    assert [names[i] for i in ids.tolist()][::4] == ["alice", word_lm.UNKNOWN] and len(ids) == 6
    with pytest.raises(ValueError, match="There is no word"):
        word_lm.encode(" 123 ")


def test_words_are_predicted_better_than_by_their_frequency() -> None:
    text = word_lm.book()[int(word_lm.HELD_OUT * len(word_lm.book())) :]
    ids = word_lm.encode(text)
    rows = ids[: len(ids) // 32 * 32].view(-1, 32)
    sample = trained(word_lm)
    assert sample.loss is not None
    batch = Plain(rows, torch.full((len(rows),), 32))
    with torch.no_grad():
        perplexity = math.exp(float(sample.loss(run(sample, batch), batch).nanmean()))
    shares = torch.bincount(ids, minlength=word_lm.WORDS) / len(ids)
    unigram = math.exp(-float((shares * shares.clamp(min=1e-12).log()).sum()))
    assert perplexity < 35 < 0.6 * unigram


def test_sunspots_are_predicted_better_than_by_the_year_before() -> None:
    series = sunspots()
    assert series.shape == (309, 1) and float(series[0, 0]) == pytest.approx(0.05)
    assert float(series[257, 0]) == pytest.approx(1.902)  # 1957, the highest of them
    sample = trained(importlib.import_module("sample_models.sunspots_gru"))
    assert sample.loss is not None
    batch = Plain(series[None], torch.tensor([309]))
    with torch.no_grad():
        loss = sample.loss(run(sample, batch), batch)[0]
    persistence = ((series[-HELD_OUT:] - series[-HELD_OUT - 1 : -1]) ** 2 / 2).mean()
    assert bool(loss[-1].isnan()) and float(loss[-HELD_OUT - 1 : -1].mean()) < 0.4 * float(persistence)


def test_truncation_can_be_switched_off() -> None:
    plan = copy_truncated.build(truncate=None).training
    assert plan is not None and plan.forward is None
