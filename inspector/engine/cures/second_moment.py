"""Lower β₂ of Adam."""

from __future__ import annotations

from inspector.engine.analyses.trial.trial_training import Copy
from inspector.engine.errors import Unsupported
from inspector.engine.registries import CURES

BETA = 0.95
"""Averages over 20 steps where 0.999 averages over 1000 (Zhai et al. 2023, arXiv 2303.15343)."""


class SecondMoment:
    """Wortsman et al. 2023, arXiv 2304.13013: a second moment that is out of date makes steps too long."""

    title = "Lower β₂"
    summary = f"β₂ of Adam is {BETA:g}, so that its second moment follows the gradient sooner."
    rules = ("IN304",)

    def apply(self, copy: Copy) -> str:
        """Set it."""
        own = copy.loop.own
        if copy.loop.optimizer == "sgd" or (own is not None and own.betas is None):
            kind = "SGD" if own is None else own.kind.__name__
            raise Unsupported(f"{kind} has no {'second moment' if kind == 'SGD' else 'β₂'}: choose adam or adamw.")
        copy.loop.betas = (copy.loop.betas[0], BETA)
        return f"β₂ is {BETA:g}"


CURES.register("second_moment")(SecondMoment())
