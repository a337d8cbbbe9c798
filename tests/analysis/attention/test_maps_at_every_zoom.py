"""Levels of detail of a map: every cell is the maximum and the mean of the weights that it covers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from inspector.analysis.attention.map_pyramid import MapPyramid, base_for, built


class Given:
    """Weights in memory; notes how many rows were read at once."""

    def __init__(self, weights: np.ndarray, *, narrow: bool = False) -> None:
        self.weights, self.shape, self.narrow = weights.astype(np.float32), weights.shape, narrow
        self.most = 0

    def rows(self, first: int, stop: int) -> Any:
        self.most = max(self.most, stop - first)
        return self.weights[first:stop]


def reference(weights: np.ndarray, factor: int) -> tuple[np.ndarray, np.ndarray]:
    """(maxima, means) of cells, one after the other, in double precision."""
    rows, columns = (-(-n // factor) for n in weights.shape)
    largest, mean = np.zeros((rows, columns)), np.zeros((rows, columns))
    for i in range(rows):
        for j in range(columns):
            cell = weights[i * factor : (i + 1) * factor, j * factor : (j + 1) * factor].astype(np.float64).ravel()
            counted = [value for value in cell if value != -np.inf]
            largest[i, j] = np.nan if np.isnan(cell).any() else max(counted, default=-np.inf)
            mean[i, j] = np.nan if np.isnan(cell).any() else (sum(counted) / len(counted) if counted else -np.inf)
    return largest, mean


@pytest.mark.parametrize("shape", [(1, 1), (7, 5), (130, 70), (65, 129)])
def test_cells_are_maxima_and_means_of_what_they_cover(shape: tuple[int, int]) -> None:
    random = np.random.default_rng(0)
    weights = random.random(shape).astype(np.float32)
    weights[np.triu_indices(shape[0], 1, shape[1])] = -np.inf
    if shape[0] > 6:
        weights[5] = np.nan
    pyramid = built(Given(weights))
    assert pyramid.complete
    for level in pyramid.levels:
        largest, mean = reference(weights, level.factor)
        np.testing.assert_array_equal(level.largest, largest.astype(np.float32))
        np.testing.assert_allclose(level.mean, mean, rtol=1e-6)


def test_of_differences_the_one_farther_from_zero_is_drawn() -> None:
    weights = np.zeros((256, 256), np.float32)
    weights[10, 10], weights[11, 11], weights[200, 3] = -3.0, 2.0, np.nan
    pyramid = built(Given(weights), signed=True)
    top = pyramid.levels[-1]
    assert top.largest[10 // top.factor, 10 // top.factor] == -3.0
    assert np.isnan(top.largest[200 // top.factor, 3 // top.factor])


def test_a_long_map_is_read_in_blocks_and_stored_in_coarser_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inspector.analysis.attention.map_pyramid.MOST_CELLS", 1 << 12)
    monkeypatch.setattr("inspector.analysis.attention.map_pyramid.BLOCK_CELLS", 1 << 12)
    weights = np.random.default_rng(1).random((250, 250)).astype(np.float16)
    source = Given(weights, narrow=True)
    assert base_for(source.shape) == 4
    pyramid = built(source)
    assert source.most < 100 and pyramid.nbytes < weights.nbytes
    largest, mean = reference(weights, 4)
    np.testing.assert_array_equal(pyramid.levels[0].largest, largest.astype(np.float16))
    np.testing.assert_allclose(pyramid.levels[0].mean.astype(float), mean, atol=1e-3)


def test_in_view_no_cell_is_smaller_than_a_pixel_and_all_that_is_seen_is_covered() -> None:
    weights = np.random.default_rng(2).random((500, 300)).astype(np.float32)
    pyramid = built(Given(weights))
    for seen in ((-0.0, 0.0, 300.0, 500.0), (13.2, 77.7, 40.5, 60.1), (290.0, 480.0, 30.0, 40.0), (5.0, 5.0, 1.0, 1.0)):
        cells, (left, top, across, down) = pyramid.cells(seen, (100, 100), "maximum")
        factor = across / cells.shape[1]
        assert factor == down / cells.shape[0] and factor >= min(seen[2], seen[3]) / 100 * (1 - 1e-9)
        assert left <= seen[0] and top <= seen[1]
        assert left + across >= min(300, seen[0] + seen[2]) and top + down >= min(500, seen[1] + seen[3])
        part = weights[int(top) : int(top + down), int(left) : int(left + across)]
        assert cells.max() == part.max()


def test_a_part_is_a_pyramid_of_its_own_in_its_place() -> None:
    weights = np.random.default_rng(3).random((200, 200)).astype(np.float32)
    part = MapPyramid((50, 40), narrow=False, base=1)
    part.corner = (100, 20)
    for _ in part.build(Given(weights), columns=(20, 60), first=100):
        pass
    assert part.covers((25.0, 110.0, 10.0, 10.0)) and not part.covers((5.0, 110.0, 30.0, 10.0))
    cells, rect = part.cells((25.0, 110.0, 10.0, 10.0), (500, 500), "mean")
    assert rect == (25, 110, 10, 10)
    np.testing.assert_array_equal(cells, weights[110:120, 25:35])


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("shape", [(1, 1), (130, 70), (9, 0)])
def test_sums_by_key_and_by_query_are_of_every_weight_that_counts(shape: tuple[int, int], signed: bool) -> None:
    weights = np.random.default_rng(3).normal(size=shape).astype(np.float32)
    weights[np.triu_indices(shape[0], 1, shape[1])] = -np.inf
    if shape[0] > 100:
        weights[5] = np.nan
    pyramid = MapPyramid(shape, narrow=False, signed=signed)
    for _ in pyramid.build(Given(weights)):
        pass
    for key in range(shape[1]):
        column = [float(value) for value in weights[:, key] if np.isfinite(value)]
        assert pyramid.mean_by_key[key] == pytest.approx(np.mean(column) if column else np.nan, nan_ok=True, abs=1e-6)
    for query in range(shape[0] if shape[1] else 0):
        row = weights[query].astype(np.float64)
        counted = row[row != -np.inf]
        far = np.nan if np.isnan(row).any() else counted[np.abs(counted).argmax()] if signed else counted.max()
        assert pyramid.largest_by_query[query] == pytest.approx(far, nan_ok=True)
