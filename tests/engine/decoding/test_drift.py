"""How far outputs and states drift apart, against their definitions in plain loops."""

from __future__ import annotations

import math

import pytest
import torch

from inspector.engine.decoding.drift import distance, divergence


def test_the_drift_of_the_output_is_the_divergence_of_what_is_said_from_what_is_right() -> None:
    """Σ p ln (p / q), p after the right tokens; the other way round it is another number."""
    random = torch.Generator().manual_seed(2)
    forced, free = (2 * torch.randn(4, 5, generator=random) for _ in range(2))
    free[2] = forced[2] + 3.0  # the same probabilities
    forced[3, 1] = -math.inf
    found = divergence(forced, free)
    for step, (a, b) in enumerate(zip(forced.tolist(), free.tolist(), strict=True)):
        p, q = ([math.exp(x) / sum(map(math.exp, row)) for x in row] for row in (a, b))
        wanted = sum(x * math.log(x / y) for x, y in zip(p, q, strict=True) if x > 0)
        assert float(found[step]) == pytest.approx(wanted, rel=1e-5, abs=1e-12)
    assert float(found[2]) == 0.0
    assert not torch.allclose(found[:2], divergence(free, forced)[:2], rtol=0.1)


def test_what_is_impossible_when_free_running_and_was_right_is_infinitely_far() -> None:
    forced, free = torch.zeros(1, 3), torch.tensor([[0.0, 0.0, -math.inf]])
    assert float(divergence(forced, free)) == math.inf


def test_the_drift_of_the_state_is_relative_to_the_one_after_the_right_tokens() -> None:
    forced = torch.tensor([[3.0, 4.0], [1.0, 0.0], [0.0, 0.0]])
    free = torch.tensor([[3.0, 4.5], [-1.0, 0.0], [1.0, 0.0]])
    found = distance(forced, free).tolist()
    assert found[:2] == pytest.approx([0.5 / 5, 2.0]) and math.isnan(found[2])
