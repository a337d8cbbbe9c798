"""Gates that begin half open."""

from __future__ import annotations

import torch

from inspector.engine.analyses.trial.recurrent_blocks import recurrent_parts
from inspector.engine.analyses.trial.trial_training import Copy
from inspector.engine.errors import Unsupported
from inspector.engine.registries import CURES


class NeutralGates:
    """A bias of large size shuts or opens a gate whatever it reads; at 0 its weights decide."""

    title = "Gate biases at 0"
    summary = "The biases of all gates (nn.LSTM, nn.GRU) are 0, those of the candidate stay."
    rules = ("IN402", "IN405", "IN407")

    def apply(self, copy: Copy) -> str:
        """Set the biases of the copies."""
        largest = list[float]()
        with torch.no_grad():
            for part in recurrent_parts(copy.trial.subject.model):
                held = [copy.held[name] for name in part.biases if name in copy.held]
                for rows in part.gates if held else []:
                    largest.append(float(torch.stack([one[rows].double() for one in held]).sum(0).abs().max()))
                    for one in held:
                        one[rows] = 0
        if not largest:
            raise Unsupported("The model has no nn.LSTM and no nn.GRU with biases that are trained.")
        return f"the biases of {len(largest)} gates are 0 (the largest was {max(largest):.3g})"


CURES.register("neutral_gates")(NeutralGates())
