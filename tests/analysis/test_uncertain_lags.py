"""The sentence on the influence names the lags that its rule leaves out although their mean is large enough."""

from __future__ import annotations

import numpy as np
import pytest

from inspector.analysis.influence import Past, influence_verdict

GRADIENT = np.array([1, 0.8, 0.6, 0.5, 0.4, 0.3])


@pytest.mark.parametrize("past", [Past(), Past(1.0, 2.0, 0.01)])
def test_a_lag_that_is_large_and_uncertain_is_named(past: Past) -> None:
    influence = np.array([2, 1, 0.5, 0.238, 0.02, np.nan])
    said = influence_verdict(influence, GRADIENT, 0, (2.0, 5.0), past).sentence
    assert "up to 2 steps back" in said and "uncertain at lag 3 (up to 12 % of lag 0" in said


def test_several_are_counted() -> None:
    influence = np.array([2, 1, 0.2, 0.4, 0.02, 0.3])
    said = influence_verdict(influence, GRADIENT, 0, (1.0, 5.0)).sentence
    assert "uncertain at 3 lags from 2 to 5 (up to 20 % of lag 0" in said


@pytest.mark.parametrize("far", [3.0, float("nan")])
def test_nothing_is_said_where_none_is_left_out(far: float) -> None:
    influence = np.array([2, 1, 0.01, 0.4, 0.02, 0.01])
    assert "uncertain" not in influence_verdict(influence, GRADIENT, 0, (far, 5.0)).sentence
