"""Whether a scan runs from the last step to the first: its input was turned around, and its output is turned back.

The turns on the way from the inputs to a scan are counted: where every way has an odd number of them, the scan runs
backwards. A layer above one of both directions is reached forwards by one way and turned twice by the other.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from torch import Tensor

from inspector.engine.recurrent.traced.record.operation import Call, given_to, name_of
from inspector.engine.scans.values import Flow

TURNS = frozenset({"flip", "fliplr", "flipud"})
MOST_CALLS = 4000
"""Operations that are gone through; a scan that is further from the inputs is taken to run forwards."""


def runs_backwards(flow: Flow, tensor: Tensor, steps: int) -> bool:
    """Whether every way from the inputs with so many steps to a tensor turns them around an odd number of times."""
    waiting: deque[tuple[Tensor, int]] = deque([(tensor, 0)])
    done: set[tuple[int, int]] = set()
    found: set[int] = set()
    while waiting and len(done) < MOST_CALLS:
        one, turned = waiting.popleft()
        calls = flow.calls_of(one)
        if not calls and steps in one.shape:
            found.add(turned)
        for n in calls:
            call = flow.table.calls[n]
            after = turned ^ _turns(call, steps)
            if (n, after) not in done:
                done.add((n, after))
                waiting.extend((given, after) for given in given_to(call) if given is not one)
    return found == {1}


def _turns(call: Call, steps: int) -> int:
    """1 where a call turns the axis of the steps around, else 0."""
    name = name_of(call[0])
    if name not in TURNS or not isinstance(call[1][0], Tensor):
        return 0
    source, named = call[1][0], call[2] or {}
    dims: Any = named.get("dims", call[1][1:] if name == "flip" else ((1,) if name == "fliplr" else (0,)))
    dims = dims[0] if len(dims) == 1 and isinstance(dims[0], (tuple, list)) else dims
    return int(any(source.shape[dim] == steps for dim in dims))
