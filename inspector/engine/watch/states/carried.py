"""Over how many steps a loss is propagated back where a loop hands states on without their gradient (truncated
backpropagation through time)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from inspector.engine.cells.family import sequence_family
from inspector.engine.watch.measure import Measure, Moment
from inspector.engine.watch.tables import About

CARRIED = "modules:carried/steps"


@dataclass(slots=True)
class Window:
    """The calls of one module in an iteration: steps since a state came without a gradient, the most of these, and
    whether such a state was ever other than 0, ()."""

    steps: int = 0
    most: int = 0
    carried: Tensor | None = None


class CarriedSteps(Measure):
    """Fused recurrent modules that are given a state without a gradient: the steps of the call, and of those after it
    whose states do have one."""

    tables = (
        About(
            name=CARRIED, title="steps that a loss is propagated back", unit="step", column=("module", "module"),
            formula="steps from a state that was handed in without its gradient to the next such state",
            source="Williams & Peng 1990 (truncated backpropagation through time)",
            method="of modules that were given a state other than 0 that has no gradient; NaN where it is 0",
        ),
    )  # fmt: skip

    def reads(self, module: nn.Module) -> bool:
        """Fused recurrent modules."""
        family = sequence_family(module)
        return family is not None and family.opaque

    def called(self, moment: Moment, place: str, module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        """Count the steps of a call."""
        family = sequence_family(module)
        if family is None or not family.opaque:
            return
        given, initial = family.arguments(module, args, kwargs)
        if not isinstance(given, Tensor) or given.dim() != 3:
            return
        window = moment.extra.setdefault(f"{CARRIED} {place}", Window())
        steps = given.shape[1 if family.stack(module).batch_first else 0]
        linked = any(one.requires_grad for one in initial)
        window.steps = window.steps + steps if linked else steps
        window.most = max(window.most, window.steps)
        if initial and not linked:
            seen = torch.stack([(one.detach() != 0).any() for one in initial]).any()
            window.carried = seen if window.carried is None else window.carried | seen
        if window.carried is not None:
            held = window.carried.to(torch.float32)
            value = torch.where(window.carried, held * window.most, torch.full_like(held, torch.nan))
            moment.pack.add(CARRIED, [self.column("module", place)], value)
