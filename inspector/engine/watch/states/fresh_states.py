"""Whether a loop over steps hands its state on: of modules that are called step after step within one call of the
model, what state they are given, and whether what they give depends on what they gave before."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from inspector.engine.cells.family import sequence_family, step_family
from inspector.engine.model.tensors_within import tensors_within
from inspector.engine.watch.measure import Measure, Moment
from inspector.engine.watch.parameters import Parameters
from inspector.engine.watch.tables import About

FRESH = "modules:state/fresh"
FEWEST_CALLS = 3
"""Of a module within one call of the model: a loop over steps."""
TIMES = 6
"""Calls of the model that are read: how a loop is written does not change."""
MOST_NODES = 3000
"""Nodes of autograd's graph between two calls of one module that are gone through."""


@dataclass(slots=True)
class Calls:
    """Of one module: how many; whether each is one of a state that is given or left out; whether any was other than 0;
    and the nodes of the outputs of the last two."""

    recurrent: bool
    count: int = 0
    stateless: bool = True
    other: Tensor | None = None
    nodes: deque[set[Any]] = field(default_factory=lambda: deque(maxlen=2))
    long: bool = False


class FreshStates(Measure):
    """Cells of torch's families that are given zeros, or no state, at every step of a loop; and layers that are given
    zeros without a gradient at every step, in a model in which nothing depends on an earlier step."""

    tables = (
        About(
            name=FRESH, title="state begins anew at each step", column=("module", "module"), limits=(0, 1),
            formula="1 where each of its calls within one of the model is given a state of zeros, or none",
            method=f"of modules that are called at least {FEWEST_CALLS} times, {TIMES} times at most",
        ),
    )  # fmt: skip

    def __init__(self, parameters: Parameters) -> None:
        super().__init__(parameters)
        self._calls: dict[str, Calls] = {}
        self._made = 0
        self._reads = False

    def reads(self, module: nn.Module) -> bool:
        """All that have parameters."""
        return any(True for _ in module.parameters(recurse=False))

    def forward_begins(self, moment: Moment, model: nn.Module, args: Any, kwargs: Any) -> None:
        """Begin anew."""
        self._calls = {}
        self._reads = self._made < TIMES

    def called(self, moment: Moment, place: str, module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        """Look at one call."""
        if not self._reads:
            return
        calls = self._calls.get(place)
        if calls is None:
            calls = self._calls[place] = Calls(_family(module) is not None)
        calls.count += 1
        given = _states(module, args, kwargs, calls)
        if any(one.requires_grad for one in given):
            calls.stateless = False
        elif given and calls.stateless:
            other = torch.stack([(one != 0).any() for one in given])
            calls.other = _either(calls.other, other.any() if calls.recurrent else other.all())
        elif not calls.recurrent:
            calls.stateless = False
        calls.nodes.append({one.grad_fn for one in tensors_within(output) if one.grad_fn is not None})

    def forward_ended(self, moment: Moment, model: nn.Module, output: Any) -> None:
        """Judge, where something was called in a loop."""
        calls, self._calls = self._calls, {}
        looped = {place: one for place, one in calls.items() if one.count >= FEWEST_CALLS}
        if not self._reads or not looped or output is None:
            return
        self._made += 1
        fresh = {place: one for place, one in looped.items() if one.stateless and not one.long}
        fresh = {place: one for place, one in fresh.items() if one.other is None or not bool(one.other)}
        linked = {place for place, one in (looped if fresh else {}).items() if _depends(one.nodes)}
        carries = bool(linked) or any(one.long for one in calls.values())
        for place, one in looped.items():
            if one.recurrent or place in fresh:
                found = place in fresh and place not in linked and (one.recurrent or not carries)
                moment.put(FRESH, self.column("module", place), float(found))

    def over(self) -> None:
        """Hold nothing of a graph."""
        self._calls = {}


def _family(module: nn.Module) -> Any:
    return step_family(module) or sequence_family(module)


def _states(module: nn.Module, args: Any, kwargs: Any, calls: Calls) -> Sequence[Tensor]:
    """What may be a state among what a module is given: of a recurrent one the parts of the state, else all numbers."""
    family = _family(module)
    if family is None:
        return [one for one in tensors_within((*args, *kwargs.values())) if one.is_floating_point() and one.dim() > 1]
    given, parts = family.arguments(module, args, kwargs)
    if step_family(module) is None and isinstance(given, Tensor):
        steps = given.shape[1 if family.stack(module).batch_first else 0] if given.dim() == 3 else len(given)
        calls.long = calls.long or steps > 1
    return [one for one in parts if isinstance(one, Tensor)]


def _either(before: Tensor | None, now: Tensor) -> Tensor:
    return now if before is None else before | now


def _depends(nodes: Sequence[set[Any]]) -> bool:
    """Whether the last call's output was computed from that of the one before, as far as a gradient tells."""
    if len(nodes) < 2:
        return False
    before, waiting, seen = nodes[0], deque(nodes[1]), set[Any]()
    while waiting and len(seen) < MOST_NODES:
        node = waiting.popleft()
        if node in before and node not in nodes[1]:
            return True
        if node not in seen:
            seen.add(node)
            waiting.extend(one for one, _ in node.next_functions if one is not None)
    return bool(waiting)  # a graph too large to be gone through: nothing is said
