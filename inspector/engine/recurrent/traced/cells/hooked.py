"""What is refused of a hand-written recurrence within whose steps hooks changed, or may have changed, a gradient."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from inspector.engine.recurrent.traced.cells.gradients import Known, Wanted
from inspector.engine.recurrent.traced.cells.graph import GraphStep
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.gradient_hooks import WatchedHook
from inspector.engine.trace.hooked_gradients import NODE_HOOKED, refuse_items


def refuse_hooked(
    recurrence: Known, wanted: Wanted, hooks: Sequence[WatchedHook], nodes: Sequence[tuple[str, Tensor]], emit: Emitter
) -> None:
    """Refuse what is split by the step of the loss, and Jacobians that can only be read off a graph whose nodes have
    hooks. `nodes`: see `Trace.node_hooks`."""
    if wanted.hooked([one.tensor for one in hooks if one.changed]):
        refuse_items(recurrence, emit)
    for code, tensor in nodes:
        if wanted.hooked([tensor]):
            reason = NODE_HOOKED.format(recurrence.place, code)
            refuse_items(recurrence, emit, reason)
            if isinstance(recurrence.cell, GraphStep):
                recurrence.cell.hooked = reason
