"""How far back the gradient of a loss reaches the inputs, in a few sequences of a batch: before a training."""

from __future__ import annotations

import torch
from torch import Tensor

from inspector.engine.analyses.input_gradients import spaced
from inspector.engine.analyses.rerun import Entry, answer, chunk, copies, undisturbed
from inspector.engine.errors import Unsupported
from inspector.engine.model.batch import Batch
from inspector.engine.model.uncompiled import uncompiled
from inspector.engine.trace.trace import Trace

SEQUENCES, LOSSES = 4, 16
"""Sequences that are looked at, and losses of each: evenly spaced, the last one included."""
NEAR, VANISHED = 0.1, 1e-3
"""Lag 0 is what others are compared with, unless its gradient is below this share of the largest; a gradient has
vanished three powers of ten below that. Counter-example: Adam divides scales out, and may learn from less."""


def gradient_by_lag(trace: Trace, lags: int) -> Tensor:
    """(sequence, lag) mean over losses of ‖∂ℓ_t/∂x_{t−k}‖₂, x as embedded; NaN where no loss has the lag.

    Raises Unsupported where no loss has a gradient at the inputs.
    """
    if trace.loss is None:
        raise Unsupported(
            "The subject gives one loss for all steps together, so no input lies a lag before one."
            if trace.subject.may_give_loss(trace.batch)
            else "The subject gives no loss, so there is no gradient."
        )
    picks = range(min(trace.batch.size, SEQUENCES))
    return torch.stack([_of_sequence(trace, row, lags) for row in picks])


def reach_of(curve: Tensor) -> float:
    """The longest lag with a gradient of 10⁻³ of the reference lag's; NaN where there is none."""
    known = curve.nan_to_num(0.0, posinf=0.0)
    top = known[0] if known[0] >= NEAR * known.max() else known.max()
    passed = torch.nonzero(known >= VANISHED * top).flatten() if top > 0 else torch.empty(0)
    return float(passed[-1]) if len(passed) else float("nan")


def _of_sequence(trace: Trace, row: int, lags: int) -> Tensor:
    given = trace.batch
    one = Batch.of(given.named, given.primary, targets=given.targets, look_at=row, title=given.title)
    assert trace.loss is not None
    length = one.length
    carried = torch.isfinite(trace.loss[row, :length]) if trace.loss.dim() > 1 else torch.zeros(0).bool()
    at = torch.nonzero(carried).flatten().cpu()
    if not len(at):
        raise Unsupported("No step of the sequence has a loss of its own, so no input lies a lag before one.")
    wanted = at[spaced(len(at), LOSSES)]
    total, count = torch.zeros(lags + 1, dtype=torch.float64), torch.zeros(lags + 1)
    size = chunk(trace)
    for start in range(0, len(wanted), size):
        steps = wanted[start : start + size]
        norms = _norms(trace, one, steps)
        for n, step in enumerate(steps.tolist()):
            found = norms[n, max(0, step - lags) : step + 1].flip(0)
            total[: len(found)] += found
            count[: len(found)] += 1
    return torch.where(count > 0, total / count, torch.nan)


def _norms(trace: Trace, one: Batch, steps: Tensor) -> Tensor:
    """(n, t) norms of ∂ℓ/∂x, row n for the loss at step `steps[n]`."""
    given, asked = (copies(one, len(steps)) for _ in range(2))
    entry = Entry(given)
    model = trace.subject.model
    with undisturbed(model, trace.seed), uncompiled(model), torch.enable_grad(), entry.watching(model):
        loss, _ = answer(trace, given, asked)
        assert loss is not None
        total = loss[torch.arange(len(steps)), steps].sum()
        return entry.gradient(total).detach()
