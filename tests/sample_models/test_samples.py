"""Every sample that the folder holds: its card, its model, its checkpoints and what they have learned."""

from __future__ import annotations

import ast
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file
from sample_batches import MOST_BITS, STEMS, build, drawn_batch, every_character_model, losses, restored, some_batch
from torch import nn

from sample_models import captions, digits, text
from sample_models.base import FOLDER, Plain, Sample, checkpoints, load, run, train
from sample_models.readers import TokenTransducer

BITS = 1 / math.log(2)

PIECE = text.WINDOW
"""Characters in one piece of the held-out text, as in training; each is read from a fresh start."""

ROWS = {f"S{number}" for number in range(1, 23)}
"""Rows of the table of systems that this registry covers."""

SLOW = ("char-elman-exploding", "char-elman-unclipped", "char-hmm", "elman-linear")
"""Character models that are there to show that they hardly learn, or without a nonlinearity no more than so much."""

LEAST_RIGHT = {
    "acceptor-digits": 0.93,
    "deep-dynamic": 0.94,
    "deep-hard": 0.92,
    "deep-highway": 0.94,
    "deep-plain": 0.75,
    "deep-skip": 0.83,
    "digits-attention": 0.93,
    "orthogonal-elman": 0.88,
    "pixels-elman": 0.94,
}
"""Share of the held-out digits that the last checkpoint of every classifier must get right."""

MOST_NATS = {
    "adding-elman": 0.01,
    "captions-attention": 0.2,
    "captions-transformer": 0.07,
    "captions-vector": 0.06,
    "copy-truncated": 1.1,
    "dates-additive": 0.01,
    "dates-bilinear": 0.01,
    "dates-dot": 0.01,
    "dates-every-step": 0.02,
    "dates-linear-score": 0.05,
    "dates-state": 0.4,
    "dates-transformer": 0.03,
    "dates-two-encoders": 0.01,
    "encoder-decoder-reverse": 0.03,
    "first-digit-causal": 0.01,
    "first-digit-concatenated": 0.01,
    "first-digit-hard": 0.01,
    "first-digit-learned": 0.01,
    "first-digit-sinusoidal": 0.01,
    "first-digit-unordered": 1.75,
    "garden-path-gru": 0.3,
    "generator-digits": 2.95,
    "ladder-lstm": 0.002,
    "ladder-mix": 0.002,
    "ladder-two-gates": 0.002,
    "nile-kalman": 1.82,
    "numerals-vae": 0.34,
    "numerals-vae-annealed": 0.36,
    "numerals-vae-free-bits": 0.62,
    "skip-elman": 0.012,
    "sunspots-deep": 1.8,
    "sunspots-gru": 0.008,
    "sunspots-kalman": 1.95,
    "transducer-brackets": 0.002,
    "transducer-parity": 0.002,
    "word-lm": 3.2,
}
"""Loss on freshly drawn batches that the last checkpoint of every other sample must stay below."""

every_sample = pytest.mark.parametrize("name", STEMS)

every_classifier = pytest.mark.parametrize("name", LEAST_RIGHT)


def card(name: str) -> dict[str, str]:
    """The literal in the file, read without importing it."""
    for node in ast.parse((FOLDER / f"{STEMS[name]}.py").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "SAMPLE":
            found: dict[str, str] = ast.literal_eval(node.value)
            return found
    raise AssertionError(f"{STEMS[name]}.py has no card.")


def drawn_loss(sample: Sample) -> float:
    """Mean loss over four such batches, the model run as it is run after training."""
    with torch.no_grad():
        found = [losses(sample, drawn_batch(sample, seed)).nanmean() for seed in range(999, 1003)]
    return float(torch.stack(found).mean())


def example_batch(sample: Sample, example: Any) -> Plain:
    """One example, text, ids or rows, and perhaps a target, as a batch of one; texts of several inputs by name."""
    if isinstance(example, dict):
        texts = [example["caption"]] if "caption" in example else []
        batch = captions.as_batch(torch.from_numpy(example["picture"])[None], texts or [""])
        return batch if texts else Plain(batch.inputs, batch.lengths, named={"picture": batch.named["picture"]})
    if sample.inputs:
        named = {
            name: Plain(one["encode"](text)[None], torch.tensor([len(text)]))
            for (name, one), text in zip(sample.inputs.items(), example, strict=True)
        }
        first = next(iter(named.values()))
        return Plain(first.inputs, first.lengths, named=named)
    value, target = example if isinstance(example, tuple) else (example, None)
    if isinstance(value, str):
        names = list(sample.vocabulary or ())
        row = sample.encode(value) if sample.encode is not None else torch.tensor([names.index(c) for c in value])
    else:
        row = torch.from_numpy(np.array(value))
    targets = None if target is None else torch.as_tensor(np.asarray([target]))
    return Plain(row[None], torch.tensor([len(row)]), targets)


def held_out_batch(sample: Sample, piece: int = PIECE) -> Plain:
    """All held-out digits, or all whole pieces of the held-out text."""
    if sample.kind == "vectors":
        images, labels = digits.data(test=True)
        inputs = torch.from_numpy(images).view(len(images), -1, sample.width or 0)
        return Plain(inputs, torch.full((len(images),), inputs.shape[1]), torch.from_numpy(labels))
    ids = text.encode(text.held_out())
    inputs = ids[: len(ids) // piece * piece].view(-1, piece)
    return Plain(inputs, torch.full((len(inputs),), piece))


def held_out_loss(sample: Sample, piece: int = PIECE) -> float:
    """Mean nats of all held-out predictions."""
    with torch.no_grad():
        return float(losses(sample, held_out_batch(sample, piece)).nanmean())


def test_the_systems_of_this_registry_are_there() -> None:
    assert {card(name)["row"] for name in STEMS} >= ROWS


def test_every_sample_is_held_to_what_it_has_learned() -> None:
    assert set(STEMS) == {*MOST_BITS, *LEAST_RIGHT, *MOST_NATS}


def test_nothing_imports_the_product() -> None:
    """But for the script that records trainings, which watches them as a user does and which nothing imports."""
    for path in set(FOLDER.glob("*.py")) - {FOLDER / "record.py"}:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not any(name.split(".")[0] == "inspector" for name in names), path.name


@every_sample
def test_card_is_a_complete_literal(name: str) -> None:
    found = card(name)
    assert set(found) == {"name", "row", "title", "task", "shows"} and all(found.values())
    assert found["row"][0] == "S" and found["row"][1:].isdigit()
    assert build(name).name == found["name"]


@every_sample
def test_checkpoints_fit_and_are_finite(name: str) -> None:
    paths = checkpoints(STEMS[name])
    assert len(paths) >= 6
    for path in paths:
        sample = build(name)
        load(sample.model, path)
        for weight in sample.model.state_dict().values():
            assert weight.dtype == torch.float32 and bool(weight.isfinite().all()), path.name


@every_sample
def test_checkpoints_are_small(name: str) -> None:
    assert sum(path.stat().st_size for path in checkpoints(STEMS[name])) <= 480_000


@every_sample
def test_history_holds_every_step_of_training(name: str) -> None:
    history = json.loads((FOLDER / "checkpoints" / STEMS[name] / "history.json").read_text(encoding="utf-8"))
    last = int(checkpoints(STEMS[name])[-1].stem.rpartition("-")[2])
    plan = build(name).training
    assert plan is not None and history["clip"] == plan.clip and last == plan.steps
    assert history["step"] == list(range(last + 1))
    for column in ("loss", "gradient_norm"):
        values = np.array(history[column])
        assert values.shape == (last + 1,) and bool((values >= 0).all()) and bool(np.isfinite(values).all())
    with safe_open(checkpoints(STEMS[name])[0], framework="pt") as archive:
        assert float(archive.metadata()["loss"]) == pytest.approx(history["loss"][0], rel=2e-3)


@every_sample
def test_checkpoints_say_step_loss_and_seed(name: str) -> None:
    steps = []
    for path in checkpoints(STEMS[name]):
        with safe_open(path, framework="pt") as archive:
            about = archive.metadata()
        assert path.name == f"step-{int(about['step']):06d}.safetensors"
        assert float(about["loss"]) > 0 and about["seed"] == "0"
        steps.append(int(about["step"]))
    assert steps[0] == 0 and steps == sorted(set(steps))


@every_sample
def test_first_checkpoint_is_the_initialisation(name: str) -> None:
    fresh = build(name).model.state_dict()
    for key, weight in load_file(checkpoints(STEMS[name])[0]).items():
        torch.testing.assert_close(weight, fresh[key])


def unigram_bits() -> float:
    """Entropy of a single character of the book."""
    counts = torch.bincount(text.encode(text.book()))
    shares = counts[counts > 0] / counts.sum()
    return -float((shares * shares.log2()).sum())


@every_character_model
def test_character_models_have_learned(name: str) -> None:
    untrained, trained = (held_out_loss(restored(name, position)) * BITS for position in (0, -1))
    assert trained < MOST_BITS[name] < untrained
    if name not in SLOW:
        assert trained < 0.65 * unigram_bits()


@every_classifier
def test_digits_have_been_learned(name: str) -> None:
    first, last = restored(name, 0), restored(name, -1)
    assert held_out_loss(last) < 0.4 * held_out_loss(first)
    batch = held_out_batch(last)
    with torch.no_grad():
        answers = run(last, batch)[:, 0].argmax(-1)
    assert float((answers == batch.targets).float().mean()) >= LEAST_RIGHT[name]


@pytest.mark.parametrize("name", MOST_NATS)
def test_tasks_have_been_learned(name: str) -> None:
    assert drawn_loss(restored(name, -1)) < MOST_NATS[name] < drawn_loss(restored(name, 0))


@every_sample
def test_same_seed_same_weights(name: str, tmp_path: Path) -> None:
    for folder in ("one", "two"):
        train(build(name), tmp_path / folder, steps=3)
    names = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert names == ["history.json", "step-000000.safetensors", "step-000003.safetensors"]
    for file in names:
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()


@every_sample
def test_examples_run(name: str) -> None:
    sample = build(name)
    assert len(sample.examples) >= 3
    for example in sample.examples.values():
        batch = example_batch(sample, example)
        assert batch.inputs.dim() == {"tokens": 2, "vectors": 3, "image": 4}[sample.kind]
        with torch.no_grad():
            found = losses(sample, batch)
        if not (sample.next_token and found.shape[1] == 1):  # a single token predicts what is not there
            assert bool(found.nanmean().isfinite()) or (batch.named and "caption" not in batch.named)


@every_character_model
def test_first_passage_is_moderate_and_one_is_long(name: str) -> None:
    sizes = [len(passage) for passage in build(name).examples.values()]
    longest = 400 if name == "char-transformer" else 1900  # it was trained on 320 characters
    assert 200 <= sizes[0] <= 400 and longest <= max(sizes) <= 2100


@every_character_model
def test_held_out_passages_are_not_trained_on(name: str) -> None:
    trained = text.book()[: int(text.HELD_OUT * len(text.book()))]
    titles = [title for title in build(name).examples if "held out" in title]
    assert titles
    for title in titles:
        assert build(name).examples[title] not in trained


@every_classifier
def test_digit_examples_are_held_out_images(name: str) -> None:
    images, _labels = digits.data(test=False)
    sample = build(name)
    for rows, label in sample.examples.values():
        assert rows.size == 64 and rows.shape[1] == sample.width and rows.dtype == np.float32 and 0 <= label <= 9
        assert not (images == rows.reshape(8, 8)).all(axis=(1, 2)).any()


@every_character_model
def test_unknown_character_is_named_with_its_position(name: str) -> None:
    encode = build(name).encode
    assert encode is not None
    with pytest.raises(ValueError, match=r"^Character 'é' at position 3 .*[^\n]$"):
        encode("café")
    assert encode("").shape == (0,)


def test_transformer_reads_more_than_it_was_trained_on() -> None:
    sample = restored("char-transformer", -1)
    with torch.no_grad():
        assert bool(run(sample, Plain(torch.zeros(1, 1024, dtype=torch.long), torch.tensor([1024]))).isfinite().all())


def test_transformer_predicts_well_over_its_first_example() -> None:
    assert held_out_loss(restored("char-transformer", -1), piece=300) * BITS < 3.0


def test_padding_changes_no_digit() -> None:
    sample = restored("digits-attention", -1)
    batch = some_batch(sample)
    with torch.no_grad():
        alone = run(sample, Plain(batch.inputs[1:, :4], batch.lengths[1:]))
        torch.testing.assert_close(run(sample, batch)[1:], alone)


def lag_norm(name: str, lag: int) -> float:
    """At step 0 of training: geometric mean of ‖J_{t+lag} … J_{t+1}‖₂ over t, with J_t = diag(1 − h_t²) W."""
    model = restored(name, 0).model
    assert isinstance(model, TokenTransducer) and isinstance(model.rnn, nn.RNN)
    with torch.no_grad():
        states = model.rnn(model.embedding(text.encode(text.held_out()[:200])[None]))[0][0].double()  # (t, h)
        jacobians = (1 - states**2)[:, :, None] * model.rnn.get_parameter("weight_hh_l0").double()  # (t, h, h)
        product = jacobians[: 200 - lag]
        for step in range(1, lag):
            product = jacobians[step : 200 - lag + step] @ product
        return float(torch.linalg.matrix_norm(product, 2).log().mean().exp())


def test_exploding_start_explodes() -> None:
    assert lag_norm("char-elman-exploding", 20) > 1e3


def test_vanishing_start_vanishes() -> None:
    assert lag_norm("char-elman-vanishing", 20) < 1e-20
