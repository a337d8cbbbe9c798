"""No weight decay on biases and normalisation."""

from __future__ import annotations

from inspector.engine.analyses.trial.trial_training import Copy
from inspector.engine.errors import Unsupported
from inspector.engine.registries import CURES


class DecayApart:
    """Two groups of parameters: matrices are decayed, what has one dimension is not."""

    title = "Decay matrices alone"
    summary = "Weight decay is left out for biases and normalisation: parameters of one dimension."
    rules = ("IN114",)

    def apply(self, copy: Copy) -> str:
        """Set which parameters are decayed."""
        alone = [name for name, one in copy.held.items() if one.dim() < 2]
        if not alone or not copy.loop.decay:
            raise Unsupported("Nothing of one dimension is decayed: give a weight decay to try it (the option decay).")
        copy.loop.decays = lambda _name, one: one.dim() >= 2
        return f"{len(alone)} parameters of one dimension are not decayed"


CURES.register("decay_apart")(DecayApart())
