"""Every sample that the folder holds: its card, its model, its checkpoints and what they have learned."""

from __future__ import annotations

import ast
import importlib
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file
from torch import Tensor

from sample_models import characters, digits_attention
from sample_models.base import Recipe, Sample, Sequences
from sample_models.catalog import HERE, Card, cards
from sample_models.train import main, train

CARDS = cards()
CHARACTERS = [name for name in CARDS if name.startswith("char-")]
MOST_BITS = {  # held-out bits per character of the last checkpoint
    "char-elman": 2.75,
    "char-elman-exploding": 2.95,
    "char-elman-vanishing": 2.75,
    "char-gru": 2.6,
    "char-lstm": 2.6,
    "char-transformer": 2.9,
}
PIECE = 4096  # characters of the held-out text that are enough here


@pytest.fixture(params=CARDS.values(), ids=CARDS.keys())
def card(request: pytest.FixtureRequest) -> Card:
    found: Card = request.param
    return found


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def build(card: Card) -> Sample:
    sample: Sample = importlib.import_module(card.module).build()
    return sample


def recipe(card: Card) -> Recipe:
    found: Recipe = importlib.import_module(card.module).recipe()
    return found


def load(card: Card, path: Path) -> Sample:
    sample = build(card)
    sample.model.load_state_dict(load_file(path), strict=True)
    return sample


def held_out_loss(sample: Sample) -> float:
    """Nats per prediction on a piece of the held-out data."""
    with torch.no_grad():
        if sample.kind == "tokens":
            return characters.bits_per_character(sample, limit=PIECE) / characters.BITS
        return digits_attention.figures(sample)["loss"]


def some_batch(sample: Sample) -> Sequences:
    """Two sequences of different lengths, 7 and 4 steps."""
    inputs = torch.arange(14).view(2, 7) if sample.kind == "tokens" else torch.rand(2, 7, sample.width or 0)
    inputs[1, 4:] = 0
    return Sequences(inputs, torch.tensor([7, 4]), None if sample.kind == "tokens" else torch.tensor([3, 5]))


def run(sample: Sample, batch: Sequences) -> Tensor:
    output: Tensor = (
        sample.forward(sample.model, batch.inputs, batch.lengths) if sample.forward else sample.model(batch.inputs)
    )
    return output


def loss(sample: Sample, output: Tensor, batch: Sequences) -> Tensor:
    assert sample.loss is not None
    return sample.loss(output, batch)


def test_every_system_asked_for_is_there() -> None:
    assert {card.row for card in CARDS.values()} >= {"S1", "S5", "S9", "S10", "S15", "S18"}


def test_card_says_everything(card: Card) -> None:
    assert all((card.name, card.row, card.title, card.task, card.shows))
    assert card.row[0] == "S" and card.row[1:].isdigit()
    assert card.shows.count(". ") == 0, "one sentence"


def test_catalog_imports_no_torch() -> None:
    tree = ast.parse((HERE / "catalog.py").read_text(encoding="utf-8"))
    assert imported(tree) <= {"__future__", "ast", "dataclasses", "pathlib"}


def test_nothing_imports_the_product() -> None:
    for path in HERE.glob("*.py"):
        assert "inspector" not in imported(ast.parse(path.read_text(encoding="utf-8"))), path.name


def imported(tree: ast.AST) -> set[str]:
    """Top-level names of all packages that a file imports, at any depth of it."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add((node.module or "").split(".")[0])
    return names


def test_build_leaves_the_random_state_alone(card: Card) -> None:
    before = torch.random.get_rng_state()
    assert build(card).name == card.name
    assert torch.equal(before, torch.random.get_rng_state())


def test_checkpoints_load_and_are_finite(card: Card) -> None:
    paths = card.checkpoints()
    assert len(paths) >= 6
    assert sum(path.stat().st_size for path in paths) <= 500_000
    for path in paths:
        weights = load(card, path).model.state_dict().values()
        assert all(weight.dtype == torch.float32 and bool(weight.isfinite().all()) for weight in weights), path.name


def test_checkpoints_say_step_loss_and_seed(card: Card) -> None:
    steps = []
    for path in card.checkpoints():
        with safe_open(path, framework="pt") as archive:
            metadata = archive.metadata()
        assert metadata["sample"] == card.name and path.name == f"step-{int(metadata['step']):06d}.safetensors"
        assert float(metadata["loss"]) > 0 and metadata["seed"] == str(recipe(card).seed)
        steps.append(int(metadata["step"]))
    assert steps[0] == 0 and tuple(steps) == recipe(card).checkpoints


def test_first_checkpoint_is_the_initialisation(card: Card) -> None:
    for name, weight in load_file(card.checkpoints()[0]).items():
        torch.testing.assert_close(weight, build(card).model.state_dict()[name])


def test_training_has_taught_it(card: Card) -> None:
    first, *_, last = card.checkpoints()
    untrained, trained = held_out_loss(load(card, first)), held_out_loss(load(card, last))
    assert trained < 0.7 * untrained
    if card.name in CHARACTERS:
        assert trained * characters.BITS < MOST_BITS[card.name] < unigram_bits()
    else:
        with torch.no_grad():
            assert digits_attention.figures(load(card, last))["accuracy"] >= 0.93


def unigram_bits() -> float:
    """Entropy of a single character of the book."""
    counts = torch.bincount(characters.encode(characters.book()))
    shares = counts[counts > 0] / counts.sum()
    return -float((shares * shares.log2()).sum())


def test_same_seed_same_bits(card: Card, tmp_path: Path) -> None:
    again = [train(card, tmp_path / run, steps=3) for run in ("one", "two")]
    assert [path.name for path in again[0]] == ["step-000000.safetensors", "step-000003.safetensors"]
    for one, two in zip(*again, strict=True):
        assert one.read_bytes() == two.read_bytes()


def test_training_replaces_an_older_run_and_leaves_no_partial_file(tmp_path: Path) -> None:
    folder = tmp_path / "char_gru"
    folder.mkdir()
    (folder / "step-000777.safetensors").write_bytes(b"old")
    assert main(["char-gru", "--steps", "0", "--out", str(tmp_path)]) == 0
    assert [path.name for path in folder.iterdir()] == ["step-000000.safetensors"]


def test_loss_is_missing_where_nothing_is_predicted(card: Card) -> None:
    sample = build(card)
    batch = some_batch(sample)
    with torch.no_grad():
        losses = loss(sample, run(sample, batch), batch)
    steps = torch.arange(7)
    last = batch.lengths[:, None] - 1
    expected = steps < last if sample.next_token else steps == last
    assert torch.equal(~losses.isnan(), expected)


def test_gradients_of_nansum_are_finite_and_padding_gives_none(card: Card) -> None:
    sample = build(card)
    batch = some_batch(sample)
    output = run(sample, batch)
    output.retain_grad()
    loss(sample, output, batch).nansum().backward()  # type: ignore[no-untyped-call]
    gradients = [parameter.grad for parameter in sample.model.parameters()]
    assert all(gradient is not None and bool(gradient.isfinite().all()) for gradient in gradients)
    assert output.grad is not None and float(output.grad.abs().sum()) > 0
    if sample.next_token:
        assert not output.grad[1, 3:].any() and not output.grad[0, 6].any()


def test_padding_changes_no_real_step(card: Card) -> None:
    sample = build(card)
    batch = some_batch(sample)
    alone = Sequences(batch.inputs[1:, :4], batch.lengths[1:])
    with torch.no_grad():
        padded, plain = run(sample, batch)[1:], run(sample, alone)
    torch.testing.assert_close(padded[:, : plain.shape[1]], plain)


def test_one_step_is_enough(card: Card) -> None:
    sample = build(card)
    whole = some_batch(sample)
    batch = Sequences(whole.inputs[:1, :1], torch.tensor([1]), None if whole.targets is None else whole.targets[:1])
    losses = loss(sample, run(sample, batch), batch)
    assert losses.shape == (1, 1)
    assert math.isnan(float(losses)) == sample.next_token


def test_examples_can_be_run(card: Card) -> None:
    sample = build(card)
    assert len(sample.examples) >= 3
    for example in sample.examples.values():
        if isinstance(example, str):
            assert sample.encode is not None
            inputs, target = sample.encode(example)[None], None
        else:
            rows, target = example
            assert rows.dtype == np.float32 and rows.shape == (8, 8)
            inputs = torch.from_numpy(rows)[None]
        batch = Sequences(inputs, torch.tensor([inputs.shape[1]]), target)
        with torch.no_grad():
            assert bool(loss(sample, run(sample, batch), batch).nanmean().isfinite())


@pytest.mark.parametrize("name", CHARACTERS)
def test_passages_have_the_sizes_promised(name: str) -> None:
    sizes = [len(text) for text in build(CARDS[name]).examples.values()]
    assert 220 <= sizes[0] <= 300 and 1900 <= max(sizes) <= 2000


def test_held_out_passages_are_held_out() -> None:
    trained = characters.book()[: len(characters.ids(held_out=False))]
    for title, (start, size) in characters.PASSAGES.items():
        assert (characters.passage(start, size) in trained) == ("held out" not in title)


@pytest.mark.parametrize("name", CHARACTERS)
def test_character_that_does_not_exist(name: str) -> None:
    encode = build(CARDS[name]).encode
    assert encode is not None
    with pytest.raises(ValueError, match=r"^Character 'é' \(U\+00E9\) at position 3, [^.]*\.$"):
        encode("café")
    assert encode("").shape == (0,)


def test_transformer_reads_far_more_than_it_was_trained_on() -> None:
    sample = load(CARDS["char-transformer"], CARDS["char-transformer"].checkpoints()[-1])
    with torch.no_grad():
        assert characters.bits_per_character(sample, length=512, limit=PIECE) < 3.2
        assert run(sample, Sequences(torch.zeros(1, 1500, dtype=torch.long), torch.tensor([1500]))).isfinite().all()


def lag_norm(card: Card, path: Path, lag: int = 20) -> float:
    """Geometric mean over starting steps of the spectral norm of the product of `lag` step Jacobians diag(1-h²)W."""
    rnn = load(card, path).model.rnn
    model = load(card, path).model
    with torch.no_grad():
        states = model.rnn(model.embedding(characters.ids(held_out=True)[None, :400]))[0][0]  # type: ignore[operator]
        weight = rnn.weight_hh_l0  # type: ignore[union-attr]
        jacobians = ((1 - states**2)[:, :, None] * weight).double()  # (t, h, h)
        product = jacobians[: 400 - lag]
        for step in range(1, lag):
            product = jacobians[step : 400 - lag + step] @ product
        return float(torch.linalg.matrix_norm(product, 2).log().mean().exp())


@pytest.mark.parametrize(
    ("name", "low", "high"), [("char-elman-exploding", 1e3, math.inf), ("char-elman-vanishing", 0.0, 1e-15)]
)
def test_extreme_starts_are_extreme(name: str, low: float, high: float) -> None:
    assert low < lag_norm(CARDS[name], CARDS[name].checkpoints()[0]) < high
