"""Warm the learning rate up."""

from __future__ import annotations

from inspector.engine.analyses.trial.trial_training import Copy
from inspector.engine.registries import CURES

SHARE = 0.3
"""Of the steps of a trial, which is short; in a long training some hundreds to thousands of steps are usual."""


class WarmUp:
    """Goyal et al. 2017, arXiv 1706.02677; Xiong et al. 2020, arXiv 2002.04745, for attention."""

    title = "Warm the learning rate up"
    summary = f"The learning rate rises in equal parts over the first {100 * SHARE:g} % of the steps."
    rules = ("IN301", "IN302", "IN307", "IN309", "IN404", "IN413", "IN417")

    def apply(self, copy: Copy) -> str:
        """Set it."""
        copy.loop.warm = SHARE
        return f"the learning rate rises over {100 * SHARE:g} % of the steps"


CURES.register("warm_up")(WarmUp())
