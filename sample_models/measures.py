"""What training measures of a network beside its loss, for `history.json`."""

from __future__ import annotations

import torch
from torch import Tensor, nn


def orthogonality(rnn: nn.RNN, x: Tensor) -> dict[str, float]:
    """How orthogonal W = W_hh of a tanh layer is, and its step Jacobians J_t = diag(1 − h_t²) W over x (t, i).

    ‖WᵀW − I‖_F, and the singular values of W and of all J_t together; those of an orthogonal matrix are all 1.
    By name; what stands before a colon belongs into one picture.
    """
    with torch.no_grad():
        weight = rnn.weight_hh_l0  # of a parametrised one its value
        assert isinstance(weight, Tensor)
        states = rnn(x[None])[0][0]
        jacobians = (1 - states.square())[:, :, None] * weight
        of_weight, of_steps = torch.linalg.svdvals(weight), torch.linalg.svdvals(jacobians)
        defect = (weight.T @ weight - torch.eye(len(weight))).norm()
    return {
        "‖WᵀW − I‖": float(defect),
        "σ(W): largest": float(of_weight.max()), "σ(W): smallest": float(of_weight.min()),
        "σ(Jₜ): largest": float(of_steps.max()), "σ(Jₜ): median": float(of_steps.median()),
        "σ(Jₜ): smallest": float(of_steps.min()),
    }  # fmt: skip
