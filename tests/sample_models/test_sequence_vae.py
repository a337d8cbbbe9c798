"""The sequence VAEs: numbers in words, the terms of their bound, and what each of the three twins came to."""

from __future__ import annotations

import importlib
import math
from collections.abc import Mapping

import pytest
import torch

from sample_models.base import Plain, checkpoints, load
from sample_models.numerals import ALPHABET, END, batch_of, encode, in_words
from sample_models.sequence_vae import Bound, SequenceVae, annealed, bound_of, terms

STEMS = ("numerals_vae", "numerals_vae_annealed", "numerals_vae_free_bits")


def last(stem: str) -> SequenceVae:
    sample = importlib.import_module(f"sample_models.{stem}").build()
    load(sample.model, checkpoints(stem)[-1])
    model = sample.model.eval()
    assert isinstance(model, SequenceVae)
    return model


@pytest.fixture(scope="module")
def reached() -> Mapping[str, Mapping[str, float]]:
    probe = batch_of(range(1, 1000, 11))
    return {stem: terms(last(stem), probe) for stem in STEMS}


def test_numbers_are_said_in_words() -> None:
    said = {
        7: "seven",
        13: "thirteen",
        40: "forty",
        85: "eighty-five",
        300: "three hundred",
        742: "seven hundred forty-two",
    }
    assert {number: in_words(number) for number in said} == said
    assert len({in_words(number) for number in range(1, 1000)}) == 999
    assert "".join(ALPHABET[i] for i in encode("Forty-two")) == "forty-two<"
    with pytest.raises(ValueError, match="no number in words"):
        encode("42")


def test_the_loss_of_all_steps_is_the_bound_and_free_bits_cost_the_same_below_them() -> None:
    batch = batch_of([5, 742])
    torch.manual_seed(0)
    scores, kl = torch.randn(2, batch.inputs.shape[1], len(ALPHABET), dtype=torch.float64), torch.rand(2, 3).double()
    found, free = (bound_of(nats)(Bound(scores, kl), batch) for nats in (0.0, 0.5))
    half = bound_of(0.0)(Bound(scores, kl, 0.5), batch)
    for row, length in enumerate(batch.lengths.tolist()):
        logs = [float(scores[row, t].log_softmax(-1)[batch.inputs[row, t]]) for t in range(length)]
        own = kl[row].tolist()
        assert float(found[row].nansum()) == pytest.approx(sum(own) - sum(logs))
        assert float(free[row].nansum()) == pytest.approx(sum(max(0.5, one) for one in own) - sum(logs))
        assert float(half[row].nansum()) == pytest.approx(sum(own) / 2 - sum(logs))
        assert bool(found[row, length:].isnan().all()) and batch.inputs[row, length - 1] == END


def test_annealing_counts_the_divergence_more_by_every_call() -> None:
    model, forward = last(STEMS[0]), annealed(waits=1, rises=2)
    batch = batch_of([5])
    with torch.no_grad():
        assert [forward(model, batch).weight for _ in range(5)] == [0, 0, 0.5, 1, 1]


def test_padding_changes_nothing() -> None:
    model, alone, beside = last(STEMS[2]), batch_of([7]), batch_of([7, 742])
    with torch.no_grad():
        for one, other in zip(
            model.encode(alone.inputs, alone.lengths), model.encode(beside.inputs, beside.lengths), strict=True
        ):
            torch.testing.assert_close(one[0], other[0])


def test_one_collapsed_one_gave_most_up_again_and_one_uses_all(reached: Mapping[str, Mapping[str, float]]) -> None:
    collapsed, middle, healthy = (reached[stem] for stem in STEMS)
    kl, missed, units = "nats of a text: KL", "nats of a text: reconstruction", "active units"
    assert collapsed[kl] < 0.05 and collapsed[units] == 0
    assert collapsed[missed] == pytest.approx(math.log(999), abs=0.1), "nothing is left but to guess which number"
    assert 2 < middle[kl] < 4 and 1 < middle[missed] < 4
    assert healthy[kl] > math.log(999) and healthy[missed] < 1.2 and healthy[units] == 8


@torch.no_grad()
def test_the_healthy_one_writes_numbers_again() -> None:
    model, batch = last(STEMS[2]), batch_of(range(3, 1000, 83))
    mean, _ = model.encode(batch.inputs, batch.lengths)
    ids = torch.full((len(mean), 0), 0)
    for _ in range(batch.inputs.shape[1]):
        before = torch.cat((torch.full_like(batch.inputs[:, :1], END), ids), 1)
        ids = torch.cat((ids, model.decode(mean, before)[:, -1:].argmax(-1)), 1)
    right = [
        bool((row[:n] == wanted[:n]).all()) for row, wanted, n in zip(ids, batch.inputs, batch.lengths, strict=True)
    ]
    assert sum(right) >= len(right) - 3


def test_characters_are_left_out_in_training_alone() -> None:
    model = last(STEMS[2])
    batch: Plain = batch_of([742])
    z = torch.zeros(1, 8)
    with torch.no_grad(), torch.random.fork_rng():
        same = [model.decode(z, batch.inputs) for _ in "ab"]
        model.train()
        other = [model.decode(z, batch.inputs) for _ in "ab"]
    assert torch.equal(*same) and not torch.equal(*other)
