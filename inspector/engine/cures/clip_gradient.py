"""Clip the norm of the gradient."""

from __future__ import annotations

from inspector.engine.analyses.trial.trial_training import Copy
from inspector.engine.errors import Unsupported
from inspector.engine.registries import CURES


class ClipGradient:
    """Pascanu, Mikolov & Bengio 2013, arXiv 1211.5063: no step is far longer than the others."""

    title = "Clip the gradient"
    summary = "The norm of the gradient of all parameters is clipped at 1."
    rules = ("IN102", "IN301", "IN302", "IN305")

    def apply(self, copy: Copy) -> str:
        """Clip at 1."""
        if copy.loop.clip <= 1.0:
            raise Unsupported(f"The norm of the gradient is clipped at {copy.loop.clip:.4g} already.")
        copy.loop.clip = 1.0
        return "the norm of the gradient is clipped at 1"


CURES.register("clip_gradient")(ClipGradient())
