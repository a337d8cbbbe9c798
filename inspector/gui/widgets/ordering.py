"""The order of units on screen: as they are, by similarity, by variance."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

ORDERS = ("as they are", "by similarity", "by variance")
MOST_CLUSTERED = 512
"""Number of units up to which leaves are ordered optimally; that takes 45 ms at 256 units and seconds beyond 1,000."""


def order_units(values: npt.NDArray[Any], how: str) -> npt.NDArray[np.intp] | None:
    """Units (columns of (step, unit) values) in the order to be drawn; None for as they are."""
    if how == ORDERS[0] or values.shape[1] < 3 or values.shape[0] < 2:
        return None
    finite = np.nan_to_num(values.astype(np.float64), nan=0.0, posinf=0.0, neginf=0.0)
    if how == ORDERS[2]:
        return np.argsort(-finite.var(axis=0), kind="stable")
    from scipy.cluster.hierarchy import leaves_list, linkage

    centred = finite - finite.mean(axis=0)
    size = np.linalg.norm(centred, axis=0)
    profiles = (centred / np.where(size > 0, size, 1.0)).T
    optimal = values.shape[1] <= MOST_CLUSTERED
    order: npt.NDArray[np.intp] = leaves_list(linkage(profiles, "average", optimal_ordering=optimal))
    return order
