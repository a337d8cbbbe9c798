"""Fingerprints: distances to within their error, equal for equal numbers in every dtype, and what they cannot tell."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from inspector.engine.analyses import fingerprints
from inspector.engine.analyses.fingerprints import COUNT, SMALL, bits_of, fingerprint, perturbed, projections

SIZES = (1, 3, 4095, 4097, 70_000, 300_001)


@pytest.mark.parametrize("size", SIZES)
def test_the_distance_of_two_tensors_is_right_to_a_factor_of_three(size: int) -> None:
    generator = torch.Generator().manual_seed(size)
    x = torch.randn(size, generator=generator)
    for scale in (1.0, 1e-3, 1e-6):
        y = x + scale * torch.randn(size, generator=generator)
        found = float((projections(x) - projections(y)).square().mean().sqrt())
        true = float((x.double() - y.double()).norm())
        assert true / 3 < found < 3 * true, (size, scale)


def test_both_ways_to_compute_them_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    for size in SIZES:
        x = torch.randn(size, generator=torch.Generator().manual_seed(1))
        small = projections(x)
        monkeypatch.setattr(fingerprints, "SMALL", 0)
        assert torch.allclose(small, projections(x), rtol=1e-12, atol=1e-12)
        monkeypatch.setattr(fingerprints, "SMALL", SMALL)


def test_the_signs_never_change() -> None:
    """Captures of other versions are compared with these."""
    found = projections(torch.arange(1, 5001, dtype=torch.float64))
    assert found.shape == (COUNT,)
    assert [int(n) for n in found[:4]] == PINNED


PINNED = [369622, -339424, -83576, 119484]


def test_numbers_that_are_not_finite_are_counted_and_left_out() -> None:
    x = torch.tensor([1.0, float("nan"), -2.0, float("inf")])
    np.testing.assert_allclose(fingerprint(x)[:5], [2, -1, 5**0.5, 3, 2])


def test_equal_numbers_have_equal_fingerprints_whatever_holds_them() -> None:
    x = torch.arange(24.0).view(4, 6)
    assert np.array_equal(fingerprint(x), fingerprint(x.bfloat16())) and bits_of(x) != bits_of(x.bfloat16())
    assert bits_of(x.T) == bits_of(x.T.contiguous()) != bits_of(x), "by what is read, not by where it lies"
    assert bits_of(x) != bits_of(x.view(-1)) and len(fingerprint(torch.zeros(0))) == 5 + COUNT
    assert np.array_equal(fingerprint(torch.ones(3, dtype=torch.bool))[:3], [0, 3, 3**0.5])


def test_a_moved_copy_is_one_unit_of_rounding_away() -> None:
    x = torch.randn(200, 3)
    moved = perturbed(x, 4)
    share = ((moved - x) / x).abs()
    assert float(share.max()) < 1.5 * 2**-23 and float(share.min()) > 0.4 * 2**-23
    assert 250 < int((moved > x).sum()) < 350 and torch.equal(moved, perturbed(x, 4))
    assert not torch.equal(moved, perturbed(x, 5))
