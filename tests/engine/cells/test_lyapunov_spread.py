"""Standard errors of Lyapunov exponents against many runs and many bases, by plain loops that share no code."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from inspector.engine.cells.linear_maps import LinearMaps
from inspector.engine.quantities.dynamics.lyapunov import Estimate, ExponentBudget

D = torch.float64
S, LENGTH = 4, 400


def chain(seed: int, length: int = LENGTH) -> Tensor:
    random = torch.Generator().manual_seed(seed)
    return torch.randn(length, S, S, generator=random, dtype=D) * 0.55


def naive(matrices: Tensor, basis: Tensor, warm: int) -> np.ndarray:
    """Mean of ln |R_ii| over the steps after the warm-up, with a QR at every step."""
    total = torch.zeros(basis.shape[1], dtype=D)
    for t, matrix in enumerate(matrices):
        basis, r = torch.linalg.qr(matrix @ basis)
        total += r.diagonal().abs().log() if t >= warm else 0.0
    return (total / (len(matrices) - warm)).numpy()


def estimate(matrices: Tensor) -> Estimate:
    plan = ExponentBudget(len(matrices), matrices.shape[-1])
    found = Estimate(plan)
    for start in range(0, len(matrices), plan.block_steps):
        found.add(start, LinearMaps.of(matrices[start : start + plan.block_steps]))
    return found


def test_the_error_over_segments_is_the_spread_of_runs_of_the_same_process() -> None:
    runs = np.stack([naive(chain(seed), torch.eye(S, dtype=D), 40) for seed in range(60)])
    expected = runs.std(0, ddof=1)
    shown = np.stack([estimate(chain(seed)).errors()[0].numpy() for seed in range(100, 112)])
    np.testing.assert_allclose(np.sqrt((shown**2).mean(0)), expected, rtol=0.35)


def test_the_error_over_bases_is_the_spread_of_starting_directions() -> None:
    """Two directions that grow alike: what is left of the start after few steps is seen, and none of it after many."""
    turn = torch.linalg.qr(chain(1, 1)[0]).Q
    slow = turn @ torch.diag(torch.tensor([1.0, 0.995, 0.9, 0.5], dtype=D)) @ turn.T
    few, many = (estimate(slow.repeat(n, 1, 1)).errors()[1] for n in (30, 3000))
    bases = [
        torch.linalg.qr(torch.randn(S, S, generator=torch.Generator().manual_seed(n), dtype=D)).Q for n in range(40)
    ]
    expected = np.stack([naive(slow.repeat(30, 1, 1), basis, 3) for basis in bases]).std(0, ddof=1)
    assert float(few[0]) == pytest.approx(float(expected[0]), rel=1.2) and float(few[0]) > 3e-4
    assert float(many[0]) < 0.1 * float(few[0])


def test_a_dimension_near_zero_exponents_is_given_with_its_range() -> None:
    noise = torch.randn(300, 1, 1, dtype=D, generator=torch.Generator().manual_seed(3))
    turning = torch.linalg.qr(chain(2, 300)).Q * torch.exp(0.02 * (noise - noise[30:].mean()))
    found = estimate(turning)
    errors = found.errors()
    low, high = found.spread.dimensions(found.exponents(), errors[-1], True)
    assert low == 0 and high == S, "all exponents are within their errors of 0"
    sure = estimate(chain(4) * 0.01)
    low, high = sure.spread.dimensions(sure.exponents(), sure.errors()[-1], True)
    assert low == high == 0


def test_a_short_run_has_bases_but_no_segments_and_a_dead_state_no_error() -> None:
    errors = estimate(chain(5, 12)).errors()
    assert bool(errors[0].isnan().all()) and bool(errors[1:].isfinite().all())
    dead = estimate(torch.zeros(64, S, S, dtype=D))
    assert bool((dead.errors()[2] == 0).all()) and bool(torch.isneginf(dead.exponents()).all())
