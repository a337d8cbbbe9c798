"""A batch's predictions with its own targets, and with those of its other sequences: nothing is called again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from inspector.engine.hooks.loss_nodes import Asked

MOST = 16_384
"""Targets of a batch that are compared: all up to so many, else sequences from the front."""
SAMPLED = 64
"""Sequences, or steps, of which outputs are compared entry by entry."""


@dataclass(frozen=True, slots=True)
class Compared:
    """Means (1,) over targets for which both are known: loss with the own and with another's target; how far outputs
    of two sequences are apart, beside the largest; the share of targets that differ."""

    own: Tensor
    others: Tensor
    apart: Tensor
    differ: Tensor

    @staticmethod
    def mean(several: Sequence[Compared]) -> Compared:
        """Of losses that are added up; outputs differ where those of one loss do."""
        parts = [torch.stack(one) for one in zip(*((c.own, c.others, c.differ) for c in several), strict=True)]
        return Compared(parts[0].mean(0), parts[1].mean(0), torch.stack([c.apart for c in several]).amax(0),
                        parts[2].mean(0))  # fmt: skip


def compared(asked: Asked, sequences: int) -> Compared | None:
    """None where the batch has one sequence alone.

    sequences: of the batch, where they were joined with the steps; where that does not go into the number of targets
    (packed sequences) half of all lie between a target and the one that it is compared with.
    """
    apart = _distance(asked, sequences)
    if not apart:
        return None
    if asked.kind == "classes":
        kept = _kept(len(asked.targets), apart)
        given, targets = asked.given[:kept], asked.targets[:kept]
        known, classes = targets != asked.ignored, given.shape[1]
        known &= (targets >= 0) & (targets < classes)
        safe = targets.where(known, 0)[:, None]
        moved, there = safe.roll(apart, 0), known & known.roll(apart, 0)
        own, others = (-given.gather(1, one)[:, 0] for one in (safe, moved))
        differ = (safe != moved)[:, 0]
    else:
        kept = _kept(len(asked.targets), apart)
        given, targets = asked.given[:kept], asked.targets[:kept].to(asked.given.dtype)
        moved = targets.roll(apart, 0)
        own, others = (_losses(asked.kind, given, one) for one in (targets, moved))
        there, differ = torch.isfinite(targets) & torch.isfinite(moved), targets != moved
    count = there.sum().clamp(min=1)
    means = [(one.double().where(there, 0).sum() / count).reshape(1) for one in (own, others, differ.double())]
    return Compared(means[0], means[1], _apart(given, apart), means[2]) if given.device.type != "mps" else None


def _distance(asked: Asked, sequences: int) -> int:
    """How many entries along the first axis lie between a target and that of the next sequence; 0 where none is."""
    n = asked.rows if asked.rows and asked.kind == "classes" else len(asked.targets)
    if asked.kind == "classes" and asked.rows:
        return len(asked.targets) // n if n > 1 else 0
    if sequences > 1 and n % sequences == 0:
        return n // sequences
    return 0 if sequences == 1 or n < 2 else n // 2


def _kept(count: int, apart: int) -> int:
    """Whole sequences alone, at least two."""
    return count if count <= MOST else max(2, MOST // apart) * apart


def _losses(kind: str, given: Tensor, targets: Tensor) -> Tensor:
    if kind == "shares":
        return functional.binary_cross_entropy_with_logits(given, targets, reduction="none")
    return (given - targets).square()


def _apart(given: Tensor, apart: int) -> Tensor:
    """(1,) the largest difference of outputs at the same step of two sequences, beside the largest of all."""
    every = max(1, len(given) // SAMPLED)
    other = given.roll(apart, 0)[::every][:SAMPLED].reshape(-1).double()
    one = given[::every][:SAMPLED].reshape(-1).double()
    return ((one - other).abs().amax() / one.abs().amax().clamp(min=1e-300)).reshape(1)


def numbers_of(asked: Asked) -> Tensor:
    """(5,) mean and deviation of targets, of predictions, and their correlation; over finite targets."""
    given, targets = asked.given.reshape(-1).double(), asked.targets.reshape(-1).double()
    known = torch.isfinite(targets)
    count = known.sum().clamp(min=1)
    a, b = (one.where(known, 0) for one in (targets, given))
    means = [one.sum() / count for one in (a, b)]
    left = [(one - mean).where(known, 0) for one, mean in zip((targets, given), means, strict=True)]
    spread = [(one.square().sum() / count).sqrt() for one in left]
    together = (left[0] * left[1]).sum() / count / (spread[0] * spread[1])  # 0 / 0 where one is constant
    return torch.stack((means[0], spread[0], means[1], spread[1], together))


FEWEST = 4
"""Steps of a sequence, and targets, of which it is said how far ahead they lie."""


def steps_ahead(asked: Asked, ids: Tensor, shifts: Sequence[int]) -> Tensor | None:
    """(s,) the share of targets that are the input so many steps later, of (b, t) ids; NaN where too few lie so far
    ahead. None where the targets do not lie along steps: as many as the steps, or fewer by no more than the largest
    shift, where the loop shifts (`out[:, :-2]` beside `ids[:, 2:]`).

    Which step the first target belongs to is read off the slices of what the loss was given. Counter-example: outputs
    of a loop that begins at its second step.
    """
    count, (rows, steps) = len(asked.targets), ids.shape
    cut = steps - count // max(1, rows)
    if asked.kind != "classes" or count % max(1, rows) or not 0 <= cut <= max(shifts) or steps - cut < FEWEST:
        return None
    targets = asked.targets.reshape(rows, -1)
    known = (targets >= 0) & (targets != asked.ignored)
    found, begins = [], asked.left_out(steps)
    for shift in (begins + one for one in shifts):
        inputs = ids[:, shift : shift + targets.shape[1]].to(targets)
        there = known[:, : inputs.shape[1]]
        same, total = (inputs == targets[:, : inputs.shape[1]]) & there, there.sum()
        found.append((same.sum() / total).where(total >= FEWEST, torch.nan))
    return torch.stack(found).double()
