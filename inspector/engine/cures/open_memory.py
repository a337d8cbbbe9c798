"""Open the gates that keep the state."""

from __future__ import annotations

import math

import torch

from inspector.engine.analyses.trial.recurrent_blocks import recurrent_parts
from inspector.engine.analyses.trial.trial_training import Copy
from inspector.engine.errors import Unsupported
from inspector.engine.registries import CURES

LEAST = 3
"""Steps: ln(T − 1) opens nothing for fewer."""


class OpenMemory:
    """Tallec & Ollivier 2018, arXiv 1804.11188: a bias of ln(T − 1) keeps a state for about T steps."""

    title = "Open the forget gates"
    summary = "The biases of forget gates (LSTM) and update gates (GRU) are ln(T − 1), T the steps of the sequence."
    rules = ("IN201", "IN206", "IN406", "IN407")

    def apply(self, copy: Copy) -> str:
        """Set the biases of the copies."""
        wanted, changed = math.log(max(LEAST, copy.trial.trace.batch.steps) - 1), 0
        with torch.no_grad():
            for part in recurrent_parts(copy.trial.subject.model):
                held = [copy.held[name] for name in part.biases if name in copy.held]
                if part.memory is None or not held:
                    continue
                for one in held:
                    one[part.memory] = wanted / len(held)
                changed += 1
        if not changed:
            raise Unsupported("The model has no nn.LSTM and no nn.GRU with biases that are trained.")
        return f"the biases of {changed} forget or update gates are {wanted:.3g}"


CURES.register("open_memory")(OpenMemory())
