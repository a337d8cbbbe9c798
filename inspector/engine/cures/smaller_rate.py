"""A tenth of the learning rate."""

from __future__ import annotations

from inspector.engine.analyses.trial.trial_training import Copy
from inspector.engine.registries import CURES

SHARE = 0.1


class SmallerRate:
    """Steps that kill units, shut gates or raise the loss are usually ten times too long, not by a tenth."""

    title = "A smaller learning rate"
    summary = "The learning rate is a tenth of what it is."
    rules = (
        "IN102",
        "IN301",
        "IN302",
        "IN306",
        "IN307",
        "IN308",
        "IN309",
        "IN401",
        "IN402",
        "IN403",
        "IN404",
        "IN405",
        "IN408",
        "IN413",
        "IN417",
    )

    def apply(self, copy: Copy) -> str:
        """Set it."""
        copy.loop.rate *= SHARE
        return f"the learning rate is {copy.loop.rate:.3g}"


CURES.register("smaller_rate")(SmallerRate())
