"""Where the nodes of a tree are drawn: by depth from left to right, leaves below each other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
NOWHERE = -1


def tree_layout(parents: Sequence[int], worth: Sequence[float]) -> tuple[Array, Array]:
    """(n,) x and y of n nodes, parents before their children (−1: none).

    x is the depth, from 1 on; y the row, 0 at the top: a leaf has a row of its own, a node the row of its best child,
    so that the best way through the tree is straight. `worth`: larger ones stand above their siblings.
    """
    count = len(parents)
    children: list[list[int]] = [[] for _ in range(count)]
    roots: list[int] = []
    x = np.zeros(count)
    for node, parent in enumerate(parents):
        (roots if parent == NOWHERE else children[parent]).append(node)
        x[node] = 1.0 if parent == NOWHERE else x[parent] + 1.0
    for below in (roots, *children):
        below.sort(key=lambda node: -worth[node])
    y = np.zeros(count)
    row, waiting = 0, list(reversed(roots))
    while waiting:
        node = waiting.pop()
        y[node] = row
        if not children[node]:
            row += 1
        waiting += reversed(children[node])
    return x, y
