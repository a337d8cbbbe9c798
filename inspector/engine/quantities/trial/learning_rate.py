"""The largest step along an optimizer's first update, or the next one of the training's own, that does not raise the
loss."""

from __future__ import annotations

import math

from torch import Tensor

from inspector.engine.analyses.trial.critical_rate import search, sign
from inspector.engine.analyses.trial.own_step import own_step
from inspector.engine.analyses.trial.trial_steps import Trial, norm, wide
from inspector.engine.errors import Unsupported
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import Describe, per_run
from inspector.engine.trace.trace import Trace
from inspector.records import LOSS_UNIT
from inspector.records.catalogue import LOSS

PLACE = "model"
ABOUT = Describe(
    kind="trial", compare="separate", unit=LOSS_UNIT, title="loss after one step",
    formula="mean loss at θ − η d; d: the gradient (SGD), or its sign (the first step of Adam)",
    source="Lewkowycz et al. 2020, arXiv 2003.02218; Adam: Kingma & Ba 2015, whose first step is g / |g|",
    method="one batch, with the same random numbers each time; rates are trebled until the loss rises, then bisected "
    "on a logarithmic scale",
    labels={"statistic": ("learning rate", "loss")},
)  # fmt: skip

OWN = "mean loss at θ + (η / η₀) Δθ; Δθ: the next step of the training's own optimizer at its rate η₀, with its moments"


@QUANTITIES.register("trial/learning_rate")
@per_run(
    summary="the largest learning rate whose first step does not raise the loss", order=91, default=False,
    needs=(LOSS,), cost="some 40 runs of the model", work=lambda run: run.call * 45,
)  # fmt: skip
def learning_rate(trace: Trace, emit: Emitter) -> None:
    """Write (statistic, point) losses by learning rate of SGD and Adam, and scalars `trial/learning_rate/NAME`: the
    critical rate, NaN where the loss rises at once, infinite where it never does.

    Where the subject has an `optimizer`, also of that ("own"), by the learning rate of its next step, with its moments
    and weight decay; `trial/learning_rate/rate`, the learning rate that it has, and `trial/learning_rate/grows`: how
    many times as long its steps become by momentum alone.
    """
    try:
        trial = Trial(trace)
        with trial.ready():
            first, gradient = trial.gradients()
            if not math.isfinite(first) or not math.isfinite(norm(gradient)):
                raise Unsupported("The loss or its gradient is not finite, so no step can be tried.")
            if not norm(gradient):
                raise Unsupported("The gradient is 0: no step changes the loss.")
            for name, direction in (("sgd", [wide(g) for g in gradient]), ("adam", [sign(g) for g in gradient])):
                points, critical = search(trial, first, direction, emit.check)
                about = {"title": f"loss after one step of {'SGD' if name == 'sgd' else 'Adam'}"}
                channel = f"{PLACE}:trial/learning_rate/{name}"
                emit.array(ABOUT.channel(channel, ("statistic", "point"), points.shape, "float64", **about), points)
                emit.scalar(f"trial/learning_rate/{name}", critical)
            emit.scalar("trial/learning_rate/loss", first)
            if trial.subject.optimizer is not None:
                _own(trial, first, gradient, emit)
    except Unsupported as reason:
        emit.refuse(f"{PLACE}:trial/learning_rate", str(reason))


def _own(trial: Trial, first: float, gradient: list[Tensor], emit: Emitter) -> None:
    """Along the step that the training's optimizer would make now."""
    name = f"{PLACE}:trial/learning_rate/own"
    try:
        step, rate, made, grows = own_step(trial, trial.subject.optimizer, gradient)
        if not math.isfinite(norm(step)) or not norm(step):
            raise Unsupported(f"The step of {made} is 0 or not finite.")
    except Unsupported as reason:
        emit.refuse(name, str(reason))
        return
    points, critical = search(trial, first, [one / rate for one in step], emit.check)
    about = {"title": f"loss after one step of the training's {made}", "formula": OWN}
    emit.array(ABOUT.channel(name, ("statistic", "point"), points.shape, "float64", **about), points)
    emit.scalar("trial/learning_rate/own", critical)
    emit.scalar("trial/learning_rate/rate", rate)
    emit.scalar("trial/learning_rate/grows", grows)
