"""Set the learning rate to a share of the critical one."""

from __future__ import annotations

import math

from inspector.engine.analyses.trial.critical_rate import search, sign
from inspector.engine.analyses.trial.own_step import own_step
from inspector.engine.analyses.trial.trial_steps import norm, wide
from inspector.engine.analyses.trial.trial_training import Copy
from inspector.engine.errors import Unsupported
from inspector.engine.registries import CURES

SHARE = 0.3
"""Of the critical rate of the first step, on one batch: later steps may bear less. Counter-example: a training whose
curvature grows tenfold soon after."""


class CriticalRate:
    """Lewkowycz et al. 2020, arXiv 2003.02218: steps beyond the critical rate raise the loss."""

    title = "Set the learning rate"
    summary = f"The learning rate is {SHARE:g} of the largest whose first step does not raise the loss."
    rules = ("IN203", "IN207", "IN301", "IN302", "IN303", "IN404")

    def apply(self, copy: Copy) -> str:
        """Search along the optimizer's own first step."""
        trial, sgd = copy.trial, copy.loop.optimizer == "sgd"
        with trial.ready():
            first, gradient = trial.gradients()
            if not math.isfinite(first) or not math.isfinite(size := norm(gradient)) or not size:
                raise Unsupported("The loss or its gradient is 0 or not finite, so there is no critical learning rate.")
            along, grows = [wide(g) if sgd else sign(g) for g in gradient], 1.0
            if copy.loop.own is not None:
                own = copy.stepper(dict(zip(trial.names, trial.parameters, strict=True)))
                moved, rate, _, grows = own_step(trial, own, gradient)
                along = [one / rate for one in moved]
            _, critical = search(trial, first, along, lambda: None)
        if not math.isfinite(critical):
            raise Unsupported("No critical learning rate was found: the loss rises at once, or with no step tried.")
        copy.loop.rate = SHARE * critical / grows
        of = "" if grows <= 1 else f", divided by the {grows:.3g} by which momentum makes later steps longer"
        return f"the learning rate is {copy.loop.rate:.3g}, {SHARE:g} of the critical one{of}"


CURES.register("critical_rate")(CriticalRate())
