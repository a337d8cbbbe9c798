"""Draw the weights anew."""

from __future__ import annotations

import torch

from inspector.engine.analyses.trial.trial_training import Copy
from inspector.engine.errors import Unsupported
from inspector.engine.registries import CURES
from inspector.records import counted

SEED = 982_451_653
"""No usual seed: with the one that the model was made with, its own weights would be drawn again. Each seed of a trial
draws others, since one draw says nothing of the next."""


class FreshWeights:
    """Each module's own `reset_parameters`: dead, equal and saturated units begin again, as all else."""

    title = "Draw the weights anew"
    summary = "Every module draws its weights again as it does when it is made; what was learned is lost."
    rules = ("IN202", "IN203", "IN306", "IN401", "IN408", "IN409", "IN410", "IN411", "IN412", "IN413", "IN415", "IN418")

    def apply(self, copy: Copy) -> str:
        """Called on the model with the copies in its place."""
        redrawn = list[str]()
        with copy.trial.ready(seed=SEED + copy.seed), copy.in_place(), torch.no_grad():
            for place, module in copy.trial.subject.model.named_modules():
                reset = getattr(module, "reset_parameters", None) or getattr(module, "_reset_parameters", None)
                if callable(reset):
                    reset()
                    redrawn.append(place or type(module).__name__)
            for own, held in zip(copy.trial.parameters, copy.held.values(), strict=True):
                held.data.copy_(own.data)
        if not redrawn:
            raise Unsupported("No module of the model can draw its weights again (reset_parameters).")
        return f"the weights of {counted(len(redrawn), 'module')} were drawn anew"


CURES.register("fresh_weights")(FreshWeights())
