"""Captions of two digits: the pictures, their words, and what the trained models say of pictures that none saw."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
import torch

from sample_models import captions, digits
from sample_models.base import Plain, Sample, checkpoints, load, run

SAMPLES = {"captions_vector": 0.88, "captions_attention": 0.74, "captions_transformer": 0.85}
"""The share of held-out captions that must be wholly right."""


def drawn(many: int, *, kept: bool = True, seed: int = 2) -> tuple[torch.Tensor, list[str]]:
    return captions.pictures(torch.Generator().manual_seed(seed), many, kept=kept)


def test_a_picture_has_the_digits_that_its_caption_says_where_it_says() -> None:
    shown, texts = drawn(60)
    images, labels = digits.data(test=True)
    seen = set()
    for picture, text in zip(shown[:, 0].numpy(), texts, strict=True):
        first, *how, second = text.split()
        seen.add(" ".join(how))
        halves = (picture[:, :10], picture[:, 10:]) if how == ["left", "of"] else (picture[:10], picture[10:])
        for half, word in zip(halves, (first, second), strict=True):
            own = images[labels == captions.NUMBERS.index(word)]
            places = [(r, c) for r in range(half.shape[0] - 7) for c in range(half.shape[1] - 7)]
            assert any((own == half[r : r + 8, c : c + 8]).all((1, 2)).any() for r, c in places), text
    assert seen == {"left of", "above"}


def test_pictures_are_the_same_for_a_seed_and_no_trained_digit_is_held_out() -> None:
    assert torch.equal(drawn(5)[0], drawn(5)[0]) and drawn(5)[1] == drawn(5)[1]
    trained, kept = (digits.data(test=test)[0].reshape(-1, 64) for test in (False, True))
    assert len({*map(bytes, trained)} & {*map(bytes, kept)}) <= 1  # the data set has a pair of equal ones at most


def test_words_are_read() -> None:
    assert captions.encode("Three left of seven").tolist() == [3, 10, 11, 7, 13]
    assert captions.encode("three <").tolist() == [3, 13]
    for text, said in (("three beside seven", "'beside' is no word"), ("one " * 5, "at most 4 words")):
        with pytest.raises(ValueError, match=said):
            captions.encode(text)


def test_any_picture_becomes_twenty_by_twenty_with_light_ink() -> None:
    page = np.full((60, 80, 3), 255, np.uint8)
    page[:30, :8] = 0
    made = captions.pixels(page)
    assert made.shape == (1, 20, 20)
    assert made[0, :10, :2].min() == 1 and made[0, 11:].max() == 0 and made[0, :, 3:].max() == 0


def trained(stem: str) -> Sample:
    sample: Sample = importlib.import_module(f"sample_models.{stem}").build()
    load(sample.model, checkpoints(stem)[-1])
    sample.model.eval()
    return sample


@pytest.mark.parametrize("stem", SAMPLES)
def test_held_out_pictures_are_told_in_the_models_own_words(stem: str) -> None:
    sample = trained(stem)
    shown, texts = drawn(200)
    alone = Plain(shown, torch.ones(200, dtype=torch.long), named={"picture": Plain(shown, torch.ones(200))})
    with torch.no_grad():
        found = captions.answer(run(sample, alone), alone)
        assert sample.loss is not None and bool(sample.loss(run(sample, alone), alone).isnan().all())
    said = [" ".join(captions.WORDS[i] for i in row if 0 <= i < captions.BORDER) for row in found.tolist()]
    right = sum(one == text for one, text in zip(said, texts, strict=True)) / 200
    assert right >= SAMPLES[stem]


@pytest.mark.parametrize("stem", SAMPLES)
def test_what_may_follow_is_what_the_model_says_with_those_words_given(stem: str) -> None:
    sample = trained(stem)
    batch = captions.as_batch(*drawn(1))
    words = batch["caption"]
    assert sample.next_logits is not None
    with torch.no_grad():
        whole = run(sample, batch)
        after = sample.next_logits(sample.model, batch, words[:, :-1])
    torch.testing.assert_close(after, whole)
