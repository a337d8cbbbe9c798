"""Directions that products of Jacobians are carried along: all of them, or random orthonormal ones."""

from __future__ import annotations

import math

import pytest
import torch

from inspector.engine.analyses.directions import frobenius_norms, orthonormal

D = torch.float64


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_all_directions_are_the_unit_vectors_and_some_are_random_and_orthonormal(dtype: torch.dtype) -> None:
    assert torch.equal(orthonormal(5, 5, dtype, seed=1), torch.eye(5, dtype=dtype))
    before = torch.get_rng_state()
    some = orthonormal(30, 4, dtype, seed=1)
    assert some.shape == (30, 4) and some.dtype == dtype
    torch.testing.assert_close(some.T @ some, torch.eye(4, dtype=dtype), atol=1e-6, rtol=0)
    assert torch.equal(some, orthonormal(30, 4, dtype, seed=1)) and not torch.equal(
        some, orthonormal(30, 4, dtype, seed=2)
    )
    assert torch.equal(before, torch.get_rng_state()), "the user's random numbers are left alone"


def test_random_directions_give_the_frobenius_norm_on_average() -> None:
    torch.manual_seed(0)
    matrix = torch.randn(20, 20, dtype=D)
    found = [float((matrix @ orthonormal(20, 3, D, seed=n)).norm()) ** 2 / 3 for n in range(400)]
    assert sum(found) / len(found) == pytest.approx(float(matrix.norm()) ** 2 / 20, rel=0.03)


@pytest.mark.parametrize(("dtype", "power"), [(torch.float32, 30), (torch.float64, 200)])
def test_norms_whose_squares_would_vanish_or_overflow(dtype: torch.dtype, power: int) -> None:
    small, large = torch.full((2, 3, 4), 10.0**-power, dtype=dtype), torch.full((2, 3, 4), 10.0**power, dtype=dtype)
    assert frobenius_norms(small, (1, 2)).tolist() == pytest.approx([float(small[0, 0, 0]) * math.sqrt(12)] * 2)
    assert frobenius_norms(large, (0, 2)).tolist() == pytest.approx([float(large[0, 0, 0]) * math.sqrt(8)] * 3)
    assert frobenius_norms(torch.zeros(2, 3, 4, dtype=dtype), (1, 2)).tolist() == [0.0, 0.0]
    ordinary = torch.randn(2, 3, 4).to(dtype)
    torch.testing.assert_close(frobenius_norms(ordinary, (1, 2)), ordinary.double().flatten(1).norm(dim=1))
    assert frobenius_norms(ordinary, (1, 2)).dtype == torch.float64
    ordinary[0, 0, 0] = math.inf
    ordinary[1, 0, 0] = math.nan
    infinite, unknown = frobenius_norms(ordinary, (1, 2)).tolist()
    assert infinite == math.inf and math.isnan(unknown)
