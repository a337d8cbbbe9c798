"""A sequence with some of its positions replaced by others, drawn from a seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from inspector.engine.errors import NotApplicable, Unsupported
from inspector.engine.model.batch import Batch, NamedInput, selected
from inspector.engine.model.subject import Subject

SEED = 29
MOST_POSITIONS = 24
"""Positions that are changed one after the other, evenly spaced over the sequence, the last one included."""


class SingleStep(Unsupported):
    """The sequence has one step, and a test needs several."""

    def __init__(self) -> None:
        super().__init__("The sequence has a single step; this test needs one of two steps at least.")


def alone(batch: Batch) -> Batch:
    """The sequence that is shown, without the others and without padding of the primary input.

    Raises NotApplicable where it has no steps, and SingleStep.
    """
    one = selected(batch, [batch.look_at])
    length = int(one.lengths[0])
    if one.first.kind not in ("tokens", "vectors"):
        raise NotApplicable("The primary input has no steps.")
    if length < 2:
        raise SingleStep
    named = {
        name: replace(given, tensor=given.tensor[:, :length].clone())
        if given.tensor is not None and given.axis == one.first.axis and given.tensor.dim() > 1
        else given
        for name, given in one.named.items()
    }
    return Batch.of(named, one.primary, title=one.title)


def positions(steps: int) -> list[int]:
    """Which positions are changed: all, or as many as are affordable."""
    count = min(steps, MOST_POSITIONS)
    return sorted({round(n * (steps - 1) / max(1, count - 1)) for n in range(count)})


class Replacing:
    """Draws other ids, or other numbers, for the steps of a batch's primary input."""

    def __init__(self, subject: Subject, batch: Batch, seed: int = SEED) -> None:
        self._random = torch.Generator().manual_seed(seed)
        self._given = batch.first
        self._ids = _ids(subject, batch) if batch.first.kind == "tokens" else torch.empty(0)

    def at(self, batch: Batch, places: Sequence[tuple[int, int]]) -> Batch:
        """A copy in which the inputs at these (sequence, step) are others than before."""
        values = batch.inputs.clone()
        for sequence, step in places:
            values[sequence, step] = self._other(values[sequence, step])
        return with_values(batch, values)

    def _other(self, value: Tensor) -> Tensor:
        if self._given.kind == "tokens":
            choices = self._ids[self._ids != int(value)] if value.dim() == 0 else self._ids
            if not len(choices):
                raise Unsupported("Only one id is known, so none can be replaced by another.")
            picks = torch.randint(len(choices), value.shape, generator=self._random)
            other: Tensor = choices[picks].to(value)
            return other
        spread = float(batch_spread(self._given))
        drawn = torch.randn(value.shape, generator=self._random, dtype=torch.float64)
        moved: Tensor = value + (spread * drawn).to(value)
        return moved


def batch_spread(given: NamedInput) -> Tensor:
    """The standard deviation of the numbers of an input, 1 where they are all the same."""
    assert given.tensor is not None
    found = given.tensor.detach().double().flatten()
    spread = found[found.isfinite()].std() if found.numel() > 1 else torch.tensor(0.0)
    return spread if bool(spread > 0) else torch.tensor(1.0)


def with_values(batch: Batch, values: Tensor) -> Batch:
    """The batch with another tensor as its primary input."""
    named = {**batch.named, batch.primary: replace(batch.first, tensor=values)}
    return Batch.of(named, batch.primary, targets=batch.targets, look_at=batch.look_at, title=batch.title)


def _ids(subject: Subject, batch: Batch) -> Tensor:
    """Ids that the model can be given: those of its vocabulary, of its only embedding, or else of the sequence."""
    seen: Tensor = torch.unique(batch.inputs.cpu())
    vocabulary = subject.vocabulary
    sizes = {one.num_embeddings for one in subject.model.modules() if isinstance(one, nn.Embedding)}
    if vocabulary is not None and (not sizes or len(vocabulary) <= max(sizes)):
        return torch.arange(len(vocabulary))
    if len(sizes) == 1:
        only: int = sizes.pop()
        return torch.arange(only)
    return seen
