"""What the values of attention that a model computes itself were put together from."""

from __future__ import annotations

from collections.abc import Sequence

from inspector.engine.attention.put_together import of_keys
from inspector.engine.attention.selected_sample import SelectedSample
from inspector.engine.attention.written.facts import FactTable
from inspector.engine.attention.written.layout import Layout
from inspector.engine.trace.trace import KeyEnds


def ends_of_values(
    selected: SelectedSample, facts: FactTable, layout: Layout, of_itself: Sequence[KeyEnds]
) -> KeyEnds | None:
    """What the values were put together from; the first and last ones themselves where that was not seen. None where
    queries and keys are both put together so (`of_itself`)."""
    known = facts.of(layout.contraction.right.tensor)
    if known is not None and known.ends is not None:
        return None if any(one is known.ends for one in of_itself) else known.ends
    right = layout.contraction.right
    axes = [axis for axis in right.axes if axis not in layout.roles.keys]
    if len(layout.roles.keys) != 1 or (layout.batch and layout.batch not in axes):
        return None
    batch = layout.batch if layout.batch in axes else ""
    ordered = right.ordered(batch + layout.roles.keys + "".join(axis for axis in axes if axis != batch))
    return of_keys(selected, ordered, 1 if batch else 0) if batch or selected.batch == 1 else None
