"""Is the loss lower with the past than without it? The past of some losses is replaced whole, at random.

A randomisation test: were the past of no use, the loss with it would be one among those with other pasts, and lower
than all of 20 of them in one case of 21. A model that answers to an unlikely past with wild outputs passes too, so
passing alone does not prove that the past is used well; not passing says that nothing was gained from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from inspector.engine.analyses.rerun import answer, chunk
from inspector.engine.errors import Unsupported
from inspector.engine.model.batch import Batch, selected
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.trace import Trace

LOSSES, DRAWS = 16, 20
"""At most so many losses, and pasts for each: p can be as low as 1/21."""
Pair = tuple[int, int]
"""A sample and the step of one of its losses."""


@dataclass(frozen=True, slots=True)
class WithoutPast:
    """Mean loss with the past as it was, with it replaced, and the p of the test that the first is no better."""

    with_past: float
    without: float
    p: float


def without_past(trace: Trace, most_steps: int, emit: Emitter, seed: int = 23) -> WithoutPast:
    """Losses of all sequences of the batch, evenly spaced, each with every input before its step replaced by others of
    its own sequence.

    `most_steps`: steps for which the model may run in total. Raises Unsupported.
    """
    assert trace.loss is not None
    pairs = _pairs(trace, min(LOSSES, most_steps // (DRAWS * trace.batch.steps)))
    random = torch.Generator().manual_seed(seed)
    every = [pair for pair in pairs for _ in range(DRAWS)]
    losses, size = list[Tensor](), chunk(trace)
    with torch.no_grad():
        for start in range(0, len(every), size):
            emit.check()
            losses.append(_losses(trace, every[start : start + size], random))
    replaced = torch.cat(losses).view(len(pairs), DRAWS).mean(0)
    plain = torch.stack([trace.loss[pair].detach().double().cpu() for pair in pairs]).mean()
    rank = 1 + int((replaced <= plain).sum()) if bool(replaced.isfinite().all()) else torch.nan
    return WithoutPast(float(plain), float(replaced.mean()), rank / (DRAWS + 1))


def left_out(trace: Trace) -> int:
    """How many losses with a past, of all sequences, are NaN or infinite: no comparison has them."""
    assert trace.loss is not None
    return int((_with_past(trace) & ~torch.isfinite(trace.loss.detach()).cpu()).sum())


def _with_past(trace: Trace) -> Tensor:
    """(b, t) True at the losses that have a step before them."""
    assert trace.loss_carried is not None
    there = trace.loss_carried.cpu().clone()
    there[:, 0] = False
    return there & (torch.arange(there.shape[1]) < trace.batch.lengths[:, None])


def _pairs(trace: Trace, most: int) -> list[Pair]:
    """Finite losses with a past, evenly spaced over those of all sequences. Raises Unsupported."""
    assert trace.loss is not None
    with_past = _with_past(trace)
    found = torch.nonzero(with_past & torch.isfinite(trace.loss.detach()).cpu())
    if not len(found) or most < 1:
        none = "no loss with a past is finite" if bool(with_past.any()) else "no loss has a past"
        why = none if not len(found) else "the sequence is too long"
        raise Unsupported(f"The loss is not compared with that of another past: {why}.")
    picks = torch.linspace(0, len(found) - 1, min(most, len(found)), dtype=torch.float64).round().long()
    return [(int(sample), int(step)) for sample, step in found[picks].tolist()]


def _losses(trace: Trace, pairs: list[Pair], random: torch.Generator) -> Tensor:
    """The loss of each pair with another past, (n,) float64."""
    samples = [sample for sample, _ in pairs]
    given, asked = (selected(trace.batch, samples, _targets(trace.batch, samples)) for _ in range(2))
    for row, (sample, step) in enumerate(pairs):
        own = trace.batch.inputs[sample, : int(trace.batch.lengths[sample])]
        given.inputs[row, :step] = own[torch.randint(len(own), (step,), generator=random).to(own.device)]
    loss, _ = answer(trace, given, asked)
    assert loss is not None
    return torch.stack([loss[row, step] for row, (_, step) in enumerate(pairs)]).double().cpu()


def _targets(batch: Batch, samples: list[int]) -> Any:
    targets = batch.targets
    if targets is None:
        return None
    if isinstance(targets, Tensor) and targets.dim() and len(targets) == batch.size:
        return targets[torch.tensor(samples, device=targets.device)]
    raise Unsupported("The targets are not a tensor with one row for each sequence, so copies of one have no targets.")
