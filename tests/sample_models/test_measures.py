"""What training measured, S6: each checkpoint's numbers again, in float64 and with Jacobians by autograd."""

from __future__ import annotations

import importlib
import json

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from sample_models.base import FOLDER, checkpoints, load

EXAMPLES = {"orthogonal_elman": "a 3", "adding_elman": "30 steps"}


def spectra(rnn: nn.RNN, x: Tensor) -> dict[str, float]:
    """The slow way: torch's cell step by step, its Jacobian by autograd, singular values by numpy."""
    cell = nn.RNNCell(x.shape[1], rnn.hidden_size).double()
    with torch.no_grad():
        for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
            getattr(cell, name).copy_(getattr(rnn, f"{name}_l0"))
    state, found = torch.zeros(rnn.hidden_size, dtype=torch.float64), []
    for x_t in x.double():

        def step(h: Tensor, x_t: Tensor = x_t) -> Tensor:
            after: Tensor = cell(x_t[None], h[None])[0]
            return after

        found.append(np.linalg.svd(torch.autograd.functional.jacobian(step, state).numpy(), compute_uv=False))
        state = step(state).detach()
    weight = cell.weight_hh.detach().numpy()
    own = np.linalg.svd(weight, compute_uv=False)
    return {
        "‖WᵀW − I‖": float(np.linalg.norm(weight.T @ weight - np.eye(len(weight)))),
        "σ(W): largest": float(own.max()), "σ(W): smallest": float(own.min()),
        "σ(Jₜ): largest": float(np.max(found)), "σ(Jₜ): median": float(np.median(found)),
        "σ(Jₜ): smallest": float(np.min(found)),
    }  # fmt: skip


@pytest.mark.parametrize("stem", EXAMPLES)
def test_every_checkpoints_numbers_are_in_the_history(stem: str) -> None:
    measured = json.loads((FOLDER / "checkpoints" / stem / "history.json").read_text(encoding="utf-8"))["measured"]
    assert len(measured["step"]) > 80 and measured["step"] == sorted(set(measured["step"]))
    sample = importlib.import_module(f"sample_models.{stem}").build()
    example = sample.examples[EXAMPLES[stem]]
    x = torch.from_numpy(example[0] if isinstance(example, tuple) else example)
    for path in checkpoints(stem):
        load(sample.model, path)
        at = measured["step"].index(int(path.stem.rpartition("-")[2]))
        for name, value in spectra(sample.model.rnn, x).items():
            assert measured[name][at] == pytest.approx(value, rel=2e-3, abs=1e-5), (path.name, name)


def test_a_parametrised_matrix_stays_orthogonal_and_a_free_one_does_not() -> None:
    histories = {
        stem: json.loads((FOLDER / "checkpoints" / stem / "history.json").read_text(encoding="utf-8"))["measured"]
        for stem in EXAMPLES
    }
    kept, free = histories["orthogonal_elman"], histories["adding_elman"]
    assert max(kept["‖WᵀW − I‖"]) < 1e-4 and max(kept["σ(Jₜ): largest"]) <= 1.0001
    assert free["‖WᵀW − I‖"][0] == pytest.approx((1 - 0.81) * 32**0.5, rel=1e-3) and free["‖WᵀW − I‖"][-1] > 4
    assert free["σ(W): largest"][-1] > 2 > 1 > free["σ(W): smallest"][-1]
