"""The order of units on screen: as they are, by similarity, by variance."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
ORDERS = ("as they are", "by similarity", "by variance")
MOST_CLUSTERED = 512
"""Number of units up to which leaves are ordered optimally; that takes 45 ms at 256 units and seconds beyond 1,000."""


def order_units(values: Array, how: str) -> npt.NDArray[np.intp] | None:
    """Units (columns of (step, unit) values) in the order to be drawn; None for as they are.

    Only finite steps count: a lost step or a NaN is no 0. Units without any come last.
    """
    if how == ORDERS[0] or values.shape[1] < 3 or values.shape[0] < 2:
        return None
    seen = np.isfinite(values)
    known = seen.any(axis=0)
    last = np.flatnonzero(~known)
    finite = np.where(seen, values, 0.0).astype(np.float64)[:, known]
    seen = seen[:, known]
    mean = finite.sum(axis=0) / seen.sum(axis=0)
    centred = np.where(seen, finite - mean, 0.0)
    if how == ORDERS[2]:
        own = np.argsort(-((centred**2).sum(axis=0) / seen.sum(axis=0)), kind="stable")
    else:
        own = _by_similarity(finite, centred, seen)
    return np.concatenate((np.flatnonzero(known)[own], last))


def _by_similarity(finite: Array, centred: Array, seen: npt.NDArray[np.bool_]) -> npt.NDArray[np.intp]:
    """Leaves of an average linkage of units by correlation, of two units over the steps that are known of both.

    The distance is √(2 − 2r), which is the Euclidean one between normalised profiles; without gaps that is used.
    """
    from scipy.cluster.hierarchy import leaves_list, linkage

    units = centred.shape[1]
    if units < 3:
        return np.arange(units)
    if seen.all():
        size = np.linalg.norm(centred, axis=0)
        compared = (centred / np.where(size > 0, size, 1.0)).T
    else:
        compared = _distances(centred, seen)
    leaves: npt.NDArray[np.intp] = leaves_list(linkage(compared, "average", optimal_ordering=units <= MOST_CLUSTERED))
    return leaves


def _distances(centred: Array, seen: npt.NDArray[np.bool_]) -> Array:
    """Distances of all pairs of units, in scipy's condensed form. A unit that is constant where both are known, or
    shares less than two steps with the other, counts as not correlated with it."""
    there = seen.astype(np.float64)
    both = there.T @ there
    sums = centred.T @ there  # (a, b): of a over the steps that are known of both
    squares = (centred**2).T @ there
    count = np.maximum(both, 1.0)
    shared = centred.T @ centred - sums * sums.T / count
    spread = np.maximum(0.0, squares - sums**2 / count)
    size = np.sqrt(spread * spread.T)
    useful = (size > 1e-12 * np.sqrt(squares * squares.T)) & (both > 1)
    correlation = np.where(useful, shared / np.where(useful, size, 1.0), 0.0)
    away = np.sqrt(np.maximum(0.0, 2.0 - 2.0 * np.clip(correlation, -1.0, 1.0)))
    return np.asarray(away[np.triu_indices(len(away), 1)])
