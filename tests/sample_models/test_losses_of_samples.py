"""Losses and batches of samples: padding, missing targets, gradients."""

from __future__ import annotations

import pytest
import torch
from sample_batches import CHARACTERS, STEMS, build, drawn_batch, every_character_model, losses, restored, some_batch
from torch import Tensor

from sample_models.base import Plain, run

DRAWN = [name for name in STEMS if name not in ("char-transformer", "digits-attention")]
"""Samples whose losses can be tried on a batch that they draw themselves, in a bearable time."""

ALONE = [
    name
    for name in DRAWN
    if name not in ("dates-two-encoders", "sunspots-deep") and "vae" not in name and "captions" not in name
]
"""Those that read one sequence and do not sample: the loss of a sampled state is another at every call."""

every_alone = pytest.mark.parametrize("name", ALONE)

every_drawn = pytest.mark.parametrize("name", DRAWN)


@pytest.mark.parametrize("name", [*CHARACTERS, "digits-attention", "acceptor-digits"])
def test_loss_is_missing_where_nothing_is_predicted(name: str) -> None:
    sample = build(name)
    batch = some_batch(sample)
    steps, last = torch.arange(7), batch.lengths[:, None] - 1
    expected = steps < last if sample.next_token else steps == last
    assert torch.equal(~losses(sample, batch).isnan(), expected)


@pytest.mark.parametrize("name", [*CHARACTERS, "digits-attention", "acceptor-digits"])
def test_missing_losses_do_not_poison_gradients(name: str) -> None:
    sample = build(name)
    assert sample.loss is not None
    batch = some_batch(sample)
    output = run(sample, batch)
    output.retain_grad()
    sample.loss(output, batch).nansum().backward()
    for key, parameter in sample.model.named_parameters():
        assert parameter.grad is not None and bool(parameter.grad.isfinite().all()), key
    assert bool(output.grad.any())
    if sample.next_token:
        assert not output.grad[1, 3:].any() and not output.grad[0, 6].any()


@every_drawn
def test_every_weight_learns_from_a_drawn_batch(name: str) -> None:
    sample = build(name)
    losses(sample, drawn_batch(sample)).nansum().backward()
    for key, parameter in sample.model.named_parameters():
        assert parameter.grad is not None and bool(parameter.grad.isfinite().all()) and bool(parameter.grad.any()), key


@every_alone
def test_padding_reaches_no_loss(name: str) -> None:
    """A sequence alone, and the same one in a batch of longer ones with rubbish behind it, cost the same."""
    sample = restored(name, -1)
    sample.model.double()  # one of the networks is chaotic: single precision does not last for a window
    batch = drawn_batch(sample)
    if sample.kind == "vectors":
        batch.inputs = batch.inputs.double()
    short = int(batch.lengths.argmin())
    length = int(batch.lengths[short])
    targets = None if batch.targets is None else batch.targets[short : short + 1]
    alone = Plain(batch.inputs[short : short + 1, :length], batch.lengths[short : short + 1], targets)
    longer = torch.cat((batch.inputs, batch.inputs[:, :3]), dim=1)
    longer[torch.arange(longer.shape[1])[None] >= batch.lengths[:, None]] = 1
    with torch.no_grad():
        one = losses(sample, alone)[0]
        many = losses(sample, Plain(longer, batch.lengths, batch.targets))[short]
    assert bool(many[len(one) :].isnan().all())
    torch.testing.assert_close(many[: len(one)], one, equal_nan=True, rtol=1e-5, atol=1e-7)


@every_drawn
def test_loss_has_one_value_a_step(name: str) -> None:
    sample = build(name)
    batch = drawn_batch(sample)
    found = losses(sample, batch)
    wanted = batch.inputs if sample.answer is None else sample.answer(run(sample, batch), batch)
    if isinstance(wanted, Tensor):
        assert found.shape == wanted.shape[:2]  # the input's steps, or those of an answer that has its own
    else:
        assert found.shape == (len(wanted), len(wanted[0]))
    assert bool((found[~found.isnan()] >= 0).all()) and not found.isnan().all()


@every_character_model
def test_padding_changes_no_real_step(name: str) -> None:
    sample = build(name)
    batch = some_batch(sample)
    alone = Plain(batch.inputs[1:, :4], batch.lengths[1:])
    with torch.no_grad():
        torch.testing.assert_close(run(sample, batch)[1:, :4], run(sample, alone))


@every_character_model
def test_one_character_predicts_nothing(name: str) -> None:
    sample = build(name)
    found = losses(sample, Plain(torch.tensor([[5]]), torch.tensor([1])))
    assert found.shape == (1, 1) and bool(found.isnan())
