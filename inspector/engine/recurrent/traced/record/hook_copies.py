"""Copies that torch makes of what goes into and comes out of a module with a backward hook.

torch makes them by `value.view_as(value)` in a function whose derivative is the identity, but for what the hook does.
What reads a copy is taken to read the original; the copies are no operations of a step.
"""

from __future__ import annotations

from torch import Tensor
from torch.utils._pytree import tree_map_only

from inspector.engine.recurrent.traced.record.op_table import Given, Table


def without_copies(table: Table) -> Table:
    """The calls without those copies; the same table where there are none.

    They are made with autograd off. Counter-example: `h.view_as(h)` under no_grad in the user's own code is left out,
    too; nothing is computed by it.
    """
    same: dict[int, Tensor] = {}
    kept: dict[int, Given] = {}
    for n, call in enumerate(table.calls):
        function, args, kwargs = call[0], call[1], call[2] or {}
        copies = function is Tensor.view_as and len(args) == 2 and args[0] is args[1] and table.off(n)
        if copies:
            original: Tensor = args[0]
            same[id(call[3])] = same.get(id(original), original)
        elif same:
            kept[n] = tree_map_only(Tensor, lambda one: same.get(id(one), one), (args, kwargs))
        else:
            kept[n] = args, kwargs
    return table.replaced(kept) if same else table
