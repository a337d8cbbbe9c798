"""The gradient of every parameter, and the effect of clipping it, by norm and by value, at any threshold."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from inspector.engine.analyses.real_numbers import real_numbers
from inspector.engine.errors import Unsupported
from inspector.engine.model.training_log import column, read_history, unreadable
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.iteration_axis import describe_iterations
from inspector.engine.trace.quantity import Describe, per_run
from inspector.engine.trace.trace import Trace
from inspector.records import LOSS_UNIT
from inspector.records.catalogue import LOSS

PLACE, DOMAIN = "parameters", "trained parameter"
THRESHOLDS, DECADES = 241, 8.0
"""Thresholds by value: 30 a decade, from 10⁻⁸ of the largest entry up to it."""
CHUNK = 1 << 22
UNDERFLOW = 2.0**-24
"""The smallest positive float16, about 6e-8."""
SOURCE = "Pascanu, Mikolov & Bengio 2013 (clipping by norm); Mikolov 2012 (by value)"
NORMS = Describe(
    kind="clipping", compare="separate", title="gradient by parameter", source="", unit=LOSS_UNIT, scale="log",
    formula="‖g‖₂, √(mean g²), max |g|, share of g = 0, share of 0 < |g| < 6e-8 (lost in float16), number of entries; "
    "g = ∂/∂θ of the mean loss over all steps that carry one",
    labels={"statistic": ("norm", "root mean square", "largest", "zeros", "underflow", "entries")},
)  # fmt: skip
BY_VALUE = Describe(
    kind="clipping", compare="separate", title="clipping by value", source=SOURCE, scale="log",
    formula="clip_c(g) = min(max(g, −c), c): share of entries with |g| > c; ‖clip_c(g)‖; cos(clip_c(g), g)",
    method="exact at the thresholds that are shown",
    labels={"statistic": ("threshold", "share cut", "norm after", "cosine")},
)  # fmt: skip

NO_LOSS = "No step of this input carries a loss (all are NaN): there is no mean loss, and no gradient of it to clip."

HISTORY = Describe(
    kind="clipping", compare="separate",
    title="gradient norm during training", source="history.json beside the checkpoint", scale="log",
    formula="‖g‖₂ of each training step's batch, before clipping; NaN or inf as it was", unit=LOSS_UNIT,
    labels={"statistic": ("gradient norm",)},
)  # fmt: skip


@QUANTITIES.register("clipping")
@per_run(
    summary="gradient of every parameter, and the effect of clipping", order=26,
    parameter_gradients=True, needs=(LOSS,),
)  # fmt: skip
def clipping(trace: Trace, emit: Emitter) -> None:
    """Write `parameters:clipping/norms` (statistic, parameter), `…/by_value` (statistic, bin), `…/history`, scalars.

    Gradients are those of the mean loss (the sum over its terms, divided by `…/loss_terms`), as training uses it.
    Scalars: `parameters:clipping/gradient_norm`, `…/largest`, `…/loss_terms`, and `…/used` where training clipped.
    """
    _history(trace.subject.checkpoint, emit)
    gradients = trace.parameter_gradients.every
    if not gradients:
        return
    if trace.loss_carried is not None and not trace.loss_terms:
        emit.refuse(f"{PLACE}:clipping/norms", NO_LOSS)
        return
    terms = max(1, trace.loss_terms)
    rows = torch.stack([_statistics(gradient, terms, emit) for gradient in gradients.values()], dim=1)
    emit.labels(DOMAIN, tuple(gradients))
    about = NORMS.channel(
        f"{PLACE}:clipping/norms", ("statistic", "parameter"), tuple(rows.shape), "float64",
        domains={"parameter": DOMAIN},
    )  # fmt: skip
    emit.array(about, rows)
    total, largest = float(rows[0].square().sum().sqrt()), float(rows[2].max())
    emit.scalar(f"{PLACE}:clipping/gradient_norm", total)
    emit.scalar(f"{PLACE}:clipping/largest", largest)
    emit.scalar(f"{PLACE}:clipping/loss_terms", terms)
    if math.isfinite(total) and largest > 0:
        table = by_value(list(gradients.values()), largest, terms, emit)
        name = f"{PLACE}:clipping/by_value"
        emit.array(BY_VALUE.channel(name, ("statistic", "bin"), tuple(table.shape), "float64"), table)


def _statistics(gradient: Tensor, terms: int, emit: Emitter) -> Tensor:
    """(norm, root mean square, largest, share of zeros, share of underflows, entries), float64; NaN stays NaN."""
    square, zeros, under, largest = 0.0, 0, 0, 0.0
    flat = real_numbers(gradient).reshape(-1)
    for start in range(0, flat.numel(), CHUNK):
        emit.check()
        size = flat[start : start + CHUNK].double().abs() / terms
        square += float(size.square().sum())
        largest = float(torch.maximum(size.max(), torch.tensor(largest, dtype=torch.float64, device=size.device)))
        zeros += int((size == 0).sum())
        under += int(((size > 0) & (size < UNDERFLOW)).sum())
    n = max(1, flat.numel())
    values = (math.sqrt(square), math.sqrt(square / n), largest, zeros / n, under / n, flat.numel())
    return torch.tensor(values, dtype=torch.float64)


def by_value(gradients: list[Tensor], largest: float, terms: int, emit: Emitter) -> Tensor:
    """(threshold c, share of entries above it, ‖clip_c(g)‖, cos(clip_c(g), g)), (4, bin) float64.

    From three histograms over |g|: Σ 1, Σ |g| and Σ g² of the entries between two thresholds.
    """
    exponents = torch.linspace(-DECADES, 0, THRESHOLDS, dtype=torch.float64)
    thresholds = largest * 10**exponents
    sums = torch.zeros(3, THRESHOLDS + 1, dtype=torch.float64)
    for gradient in gradients:
        flat = real_numbers(gradient).reshape(-1)
        for start in range(0, flat.numel(), CHUNK):
            emit.check()
            size = flat[start : start + CHUNK].double().abs().cpu() / terms
            where = torch.bucketize(size, thresholds)  # thresholds[j − 1] < |g| ≤ thresholds[j]
            for row, weight in enumerate((torch.ones_like(size), size, size * size)):
                sums[row] += torch.bincount(where, weight, minlength=THRESHOLDS + 1)
    count, first = sums[:2].flip(1).cumsum(1).flip(1)[:, 1:]  # over the entries above each threshold
    below = sums[2].cumsum(0)[:-1]
    norm = (below + thresholds**2 * count).sqrt()
    whole = sums[2].sum().sqrt()
    return torch.stack((thresholds, count / sums[0].sum(), norm, (below + thresholds * first) / (norm * whole)))


def _history(checkpoint: str, emit: Emitter) -> None:
    """The norms that training logged in `history.json` beside the checkpoint, and the threshold at which it clipped."""
    name = f"{PLACE}:clipping/history"
    try:
        known = read_history(checkpoint)
        if known is None:
            return
        if "gradient_norm" not in known:
            raise Unsupported(unreadable("it has no gradient_norm"))
        norms = column(known["gradient_norm"], "gradient_norm")
        steps = column(known.get("step", range(len(norms))), "step")
        if len(steps) != len(norms):
            raise Unsupported(unreadable(f"gradient_norm has {len(norms):,} values for {len(steps):,} steps"))
        used = float(column([known.get("clip")], "clip"))
    except Unsupported as reason:
        emit.refuse(name, str(reason))
        return
    if not len(norms):
        return
    domains = describe_iterations(emit, steps)
    emit.array(
        HISTORY.channel(name, ("statistic", "iteration"), (1, len(norms)), "float64", domains=domains), norms[None]
    )
    if math.isfinite(used):
        emit.scalar(f"{PLACE}:clipping/used", used)
