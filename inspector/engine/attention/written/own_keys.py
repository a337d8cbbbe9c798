"""Attention in which each query has keys of its own: the nearest of a memory, neighbours by an index.

Weights (b, a, q, k) and values (b, a, q, k, d) then have the axis of the queries in common, as they have that of heads.
Of these two it is the queries where it is as long as the sequence.
"""

from __future__ import annotations

from dataclasses import replace

from inspector.engine.attention.selected_sample import SelectedSample
from inspector.engine.attention.written.layout import Layout

NOTE = "each query has {} keys of its own: key n of one query need not be key n of another"
OWN_KEY = "key of its own"
"""Label domain of keys that are others for each query."""


def with_own_keys(selected: SelectedSample, layout: Layout) -> Layout | None:
    """The layout with the queries that both operands have, None where each query has the same keys.

    Counter-example, taken for heads: as many keys as steps, since a head may pool over the steps.
    """
    if layout.queries or layout.count(layout.roles.keys) in (selected.padded, selected.length):
        return None
    steps = [axis for axis in layout.heads if layout.contraction.left.size(axis) == selected.padded > 1]
    if len(steps) != 1:
        return None
    return replace(layout, heads=layout.heads.replace(steps[0], ""), queries=steps[0])
