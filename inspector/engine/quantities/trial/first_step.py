"""One step of training on this batch that is not kept: by how much each parameter would move."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from inspector.engine.analyses.trial.idle_parameters import moving_elsewhere, moving_later, unfound
from inspector.engine.analyses.trial.trial_steps import Trial, in_float64, stand_ins
from inspector.engine.errors import Unsupported
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import Describe, per_run
from inspector.engine.trace.trace import Trace
from inspector.records import Option
from inspector.records.catalogue import LOSS

PLACE = "model"
DOMAIN = "trial parameter"
LATER, ELSEWHERE = "trial parameter that moves later", "trial parameter that moves on other inputs"
"""Label domains: of the parameters without a gradient, those that have one in the second step, and on other inputs."""
UNFOUND = "trial parameter that torch does not find"
"""Label domain of parameters that the loss reaches and that lie in plain lists of the model."""
STATISTICS = ("gradient", "ratio", "lost")
ABOUT = Describe(
    kind="trial", compare="separate", scale="log", title="one step that is not kept",
    formula="‖g‖; ‖Δθ‖ / ‖θ‖ of the stored parameters; share of entries with a gradient that stay as they are",
    source="update ratios: Karpathy 2015, CS231n: about 1e-3", labels={"statistic": STATISTICS},
)  # fmt: skip
OPTIMIZERS = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW, "sgd": torch.optim.SGD}
KIND = Option(name="optimizer", type="text", default="adam", help="One of adam, adamw, sgd.")
RATE = Option(name="rate", type="float", default=0.001, help="Learning rate.")


@QUANTITIES.register("trial/first_step")
@per_run(
    summary="how far one step of an optimizer would move each parameter", order=91, default=False, needs=(LOSS,),
    cost="one step of training on copies of the parameters", work=lambda run: run.call * 3, options=(KIND, RATE),
)  # fmt: skip
def first_step(trace: Trace, emit: Emitter, optimizer: str = "adam", rate: float = 0.001) -> None:
    """Write (statistic, parameter) of a first step; the ratio of parameters that are all 0 is NaN, and of those that
    the step makes NaN or infinite it is infinite."""
    name = f"{PLACE}:trial/first_step"
    if optimizer not in OPTIMIZERS:
        emit.refuse(name, f"There is no optimizer {optimizer!r} here; there are {', '.join(OPTIMIZERS)}.")
        return
    try:
        trial = Trial(trace)
        with trial.ready():
            loss, gradients = trial.gradients()
        if not math.isfinite(loss):
            raise Unsupported("The loss is not finite, so no step can be tried.")
        hidden = unfound(trial)
    except Unsupported as reason:
        emit.refuse(name, str(reason))
        return
    held = stand_ins(trial.parameters)
    for one, gradient in zip(held, gradients, strict=True):
        one.grad = gradient
    OPTIMIZERS[optimizer](held, lr=rate).step()
    table = _moves(trial.parameters, held, gradients)
    names = trial.names
    emit.labels(DOMAIN, names)
    idle = [n for n, gradient in enumerate(gradients) if not bool((gradient != 0).any())]
    later = moving_later(trial, held, idle) if idle else []
    emit.labels(UNFOUND, hidden)
    emit.labels(LATER, [names[n] for n in later])
    emit.labels(ELSEWHERE, [names[n] for n in moving_elsewhere(trial, set(idle) - set(later))])
    method = f"{optimizer}, learning rate {rate:g}, its first step"
    emit.array(
        ABOUT.channel(
            name, ("statistic", "parameter"), table.shape, "float64", domains={"parameter": DOMAIN}, method=method
        ), table,
    )  # fmt: skip


def _moves(
    before: Sequence[Tensor], after: Sequence[Tensor], gradients: Sequence[Tensor]
) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """(statistic, parameter) of what a step made of each parameter."""
    table = np.full((len(STATISTICS), len(before)), np.nan)
    for n, (one, other, gradient) in enumerate(zip(before, after, gradients, strict=True)):
        moved, wanted = other.data != one.data, gradient != 0
        now, known = in_float64(other), in_float64(one)
        size = float(known.norm())
        table[0, n] = float(in_float64(gradient).norm())
        table[1, n] = float((now - known).norm()) / size if size else math.nan
        if bool((known.isfinite() & ~now.isfinite()).any()):
            table[1, n] = math.inf
        table[2, n] = float((wanted & ~moved).sum() / wanted.sum()) if bool(wanted.any()) else math.nan
    return table
