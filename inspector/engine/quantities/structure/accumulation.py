"""Is the gradient that a training accumulates over several passes the one of the whole batch?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from inspector.engine.analyses.rerun import undisturbed
from inspector.engine.analyses.structure.autocast import without_autocast
from inspector.engine.analyses.structure.findings import PLACE
from inspector.engine.analyses.trial.trial_steps import dense, in_float64, norm
from inspector.engine.errors import Unsupported, model_error
from inspector.engine.model.batch import Batch
from inspector.engine.model.subject import Subject
from inspector.engine.model.uncompiled import uncompiled
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import Describe, per_run
from inspector.engine.trace.trace import Trace

NAME = f"{PLACE}:structure/accumulation"
MOST_PASSES = 8
ABOUT = Describe(
    kind="structure", compare="separate", scale="log", title="gradient of several passes against that of one",
    formula="‖g_k − g_1‖ / ‖g_1‖; ⟨g_k, g_1⟩ / ‖g_1‖²; ‖g_k − (⟨g_k, g_1⟩ / ‖g_1‖²) g_1‖ / ‖g_1‖, g_k of k passes, all "
    "parameters",
    source="the definition of a gradient: it does not depend on how a batch is divided",
    labels={"statistic": ("error", "scale", "direction")},
)  # fmt: skip


@QUANTITIES.register("structure/accumulation")
@per_run(
    summary="whether gradients that are accumulated are those of the whole batch", order=90, default=False,
    cost="some four forward and backward passes", work=lambda run: run.call * 12,
)  # fmt: skip
def accumulation(trace: Trace, emit: Emitter) -> None:
    """Write (statistic, part) of the passes that were tried; nothing where the subject has no `backward`.

    Scalar `structure/accumulation/uneven`: 1 where sequences of the batch have different lengths, `…/sequences`, and
    where a model with batch normalisation differs `…/batch_norm`: the largest error that is left without it.
    """
    subject, batch = trace.subject, trace.subject.placed(trace.batch)
    if subject.backward is None:
        return
    try:
        if batch.size < 2:
            raise Unsupported("The batch has one sequence, which cannot be divided: give several.")
        passes = sorted({2, min(batch.size, MOST_PASSES)})
        rows = _compared(subject, batch, passes, trace.seed, emit)
    except Unsupported as reason:
        emit.refuse(NAME, str(reason))
        return
    labels = {**ABOUT.labels, "part": tuple(f"{count} passes" for count in passes)}
    about = ABOUT.channel(NAME, ("statistic", "part"), (3, len(passes)), "float64", labels=labels)
    emit.array(about, np.array(rows).T)
    emit.scalar("structure/accumulation/uneven", float(len(set(batch.lengths.tolist())) > 1))
    emit.scalar("structure/accumulation/sequences", float(batch.size))
    limit = _allowed(subject)
    if float(np.max([row[0] for row in rows])) > limit and _batch_norms(subject):
        alone = _compared(subject, batch, passes, trace.seed, emit, norms_learn=False)
        emit.scalar("structure/accumulation/batch_norm", float(np.max([row[0] for row in alone])))
    emit.scalar("structure/accumulation/rounding", limit)


LEAST, ROUNDINGS = 1e-4, 512.0
"""Relative errors up to this, or so many units of rounding, are no fault: sums are made in another order. A gradient
that is wrong by less than a ten thousandth is not seen."""


def _allowed(subject: Subject) -> float:
    eps = max(torch.finfo(one.dtype).eps for one in subject.model.parameters() if one.requires_grad)
    return max(LEAST, ROUNDINGS * eps)


def _batch_norms(subject: Subject) -> list[nn.Module]:
    """Modules that normalise by statistics of the batch that they are given."""
    return [one for one in subject.model.modules() if isinstance(one, _BatchNorm)]


def _compared(
    subject: Subject, batch: Batch, passes: Sequence[int], seed: int, emit: Emitter, *, norms_learn: bool = True
) -> list[tuple[float, float, float]]:
    """(error, scale, direction) of each number of passes. Raises Unsupported."""
    gradients = partial(_gradients, subject, batch, norms_learn=norms_learn)
    whole = gradients(1, seed)
    size = norm(whole)
    if not size > 0 or not np.isfinite(size):
        raise Unsupported("The gradient of one pass is 0 or not finite, so others cannot be compared with it.")
    again = gradients(1, seed + 1)
    if norm([a - b for a, b in zip(whole, again, strict=True)]) > LEAST * size:
        raise Unsupported(
            "With other random numbers the gradient of one pass is another one, so that of several cannot be compared "
            "with it: set dropout to 0."
        )
    found = []
    for count in passes:
        emit.check()
        other = gradients(count, seed)
        scale = sum(float((in_float64(a) * in_float64(b)).sum()) for a, b in zip(other, whole, strict=True)) / size**2
        error = norm([a - b for a, b in zip(other, whole, strict=True)]) / size
        found.append((error, scale, norm([a - scale * b for a, b in zip(other, whole, strict=True)]) / size))
    return found


def _gradients(subject: Subject, batch: Batch, passes: int, seed: int, *, norms_learn: bool) -> list[Tensor]:
    """What `backward` leaves in `.grad` of each parameter, zeros where it leaves nothing. Raises Unsupported.

    `norms_learn`: whether batch normalisation is in the mode of training, where it reads the batch of each pass.
    """
    assert subject.backward is not None
    parameters = [one for one in subject.model.parameters() if one.requires_grad]
    with (
        undisturbed(subject.model, seed), uncompiled(subject.model), _of_their_own(parameters), torch.enable_grad(),
        without_autocast(subject.model),
    ):  # fmt: skip
        for name, part in subject.model.named_modules():
            part.training = (part.training or name in subject.set_to_eval) and "Dropout" not in type(part).__name__
        for one in () if norms_learn else _batch_norms(subject):
            one.training = False
        _called(subject.backward, subject, batch, passes)
        return [torch.zeros_like(one) if one.grad is None else dense(one.grad).clone() for one in parameters]


def _called(backward: Callable[..., object], subject: Subject, batch: Batch, passes: int) -> None:
    try:
        backward(subject.model, batch, passes)
    except (Exception, SystemExit) as fault:  # noqa: BLE001 - the user's code may raise anything
        raise Unsupported(str(model_error(fault, f"The subject's backward, with {passes} passes,"))) from None


@contextmanager
def _of_their_own(parameters: Sequence[Tensor]) -> Iterator[None]:
    """Inside, parameters are copies without a gradient: code that steps them, or clears gradients, changes nothing."""
    known = [(one, one.data, one.grad) for one in parameters]
    try:
        for one in parameters:
            one.data, one.grad = one.data.clone(), None
        yield
    finally:
        for one, data, gradient in known:
            one.data, one.grad = data, gradient
