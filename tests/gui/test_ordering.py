"""The order of units: by what is known of them alone."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.cluster.hierarchy import leaves_list, linkage

from inspector.gui.widgets.ordering import ORDERS, order_units

AS_THEY_ARE, SIMILARITY, VARIANCE = ORDERS


def waves(steps: int = 60) -> np.ndarray:
    """Two pairs of units that go together, one constant, one of small variance."""
    t = np.arange(steps)
    return np.stack((np.sin(t), 5 + np.cos(t), np.sin(t) * 2, 5 + np.cos(t) * 3, np.full(steps, 7.0), t * 1e-3), -1)


def test_without_gaps_units_are_ordered_by_their_profiles() -> None:
    random = np.random.default_rng(0).normal(size=(50, 20))
    centred = random - random.mean(0)
    profiles = (centred / np.linalg.norm(centred, axis=0)).T
    expected = leaves_list(linkage(profiles, "average", optimal_ordering=True))
    np.testing.assert_array_equal(order_units(random, SIMILARITY), expected)
    np.testing.assert_array_equal(order_units(random, VARIANCE), np.argsort(-random.var(0)))
    assert order_units(random, AS_THEY_ARE) is None


@pytest.mark.parametrize("hole", [np.nan, np.inf])
def test_a_lost_step_is_no_0(hole: float) -> None:
    """As 0 it would give the constant unit at 7 the largest variance, and make the units around 5 alike."""
    values = waves()
    values[20:40, 4] = values[20:30, 1] = hole
    order = order_units(values, VARIANCE)
    assert order is not None and order.tolist() == [3, 2, 1, 0, 5, 4]
    values[20:30, 5] = hole
    order = order_units(values, SIMILARITY)
    assert order is not None and sorted(order.tolist()) == list(range(6))
    place = {unit: i for i, unit in enumerate(order.tolist())}
    assert abs(place[0] - place[2]) == 1 and abs(place[1] - place[3]) == 1


@pytest.mark.parametrize("how", [SIMILARITY, VARIANCE])
def test_a_unit_of_which_nothing_is_known_is_last(how: str) -> None:
    values = waves()
    values[:, [0, 3]] = np.nan
    order = order_units(values, how)
    assert order is not None and order[-2:].tolist() == [0, 3] and sorted(order.tolist()) == list(range(6))
    order = order_units(np.full((9, 4), np.nan), how)
    assert order is not None and order.tolist() == [0, 1, 2, 3]
