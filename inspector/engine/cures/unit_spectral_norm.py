"""The largest singular value of each recurrent block is made 1."""

from __future__ import annotations

import torch

from inspector.engine.analyses.trial.recurrent_blocks import known_range, trained_blocks
from inspector.engine.analyses.trial.trial_training import Copy
from inspector.engine.errors import Unsupported
from inspector.engine.registries import CURES
from inspector.records import counted


class UnitSpectralNorm:
    """Pascanu, Mikolov & Bengio 2013, arXiv 1211.5063: below 1/γ gradients must vanish, above they may explode.

    Unlike an orthogonal matrix it keeps the directions and their proportions: one direction is kept in size, the
    others still shrink.
    """

    title = "Rescale the recurrent weights"
    summary = "Each recurrent matrix is divided by its largest singular value, so that σ₁ = 1; its form stays."
    rules = ("IN201", "IN205", "IN206", "IN305")

    def apply(self, copy: Copy) -> str:
        """W / σ₁(W) of each block; one that is all zeros stays."""
        largest = list[float]()
        with torch.no_grad():
            for block in trained_blocks(copy.trial.subject.model, copy.held):
                size = float(torch.linalg.matrix_norm(block.double(), ord=2))
                if size:
                    block.copy_((block.double() / size).to(block.dtype))
                    largest.append(size)
        if not largest:
            raise Unsupported("The model has no nn.RNN, nn.GRU or nn.LSTM with recurrent weights that are trained.")
        return f"σ₁ of {counted(len(largest), 'recurrent block')} is 1 (it was {known_range(largest)})"


CURES.register("unit_spectral_norm")(UnitSpectralNorm())
