"""Orthogonal recurrent weights."""

from __future__ import annotations

import torch

from inspector.engine.analyses.trial.recurrent_blocks import known_range, trained_blocks
from inspector.engine.analyses.trial.trial_training import Copy
from inspector.engine.errors import Unsupported
from inspector.engine.registries import CURES
from inspector.records import counted


class OrthogonalRecurrence:
    """Saxe, McClelland & Ganguli 2014, arXiv 1312.6120; Arjovsky, Shah & Bengio 2016, arXiv 1511.06464."""

    title = "Orthogonal recurrent weights"
    summary = "Each recurrent matrix becomes the orthogonal one that is nearest to it: all its singular values are 1."
    rules = ("IN201", "IN205", "IN206", "IN305")

    def apply(self, copy: Copy) -> str:
        """The polar factor U Vᵀ of each block W = U Σ Vᵀ."""
        largest = list[float]()
        with torch.no_grad():
            for block in trained_blocks(copy.trial.subject.model, copy.held):
                u, values, v = torch.linalg.svd(block.double(), full_matrices=False)
                block.copy_((u @ v).to(block.dtype))
                largest.append(float(values.max()))
        if not largest:
            raise Unsupported("The model has no nn.RNN, nn.GRU or nn.LSTM with recurrent weights that are trained.")
        return f"{counted(len(largest), 'recurrent block')} made orthogonal (σ₁ was {known_range(largest)})"


CURES.register("orthogonal_recurrence")(OrthogonalRecurrence())
