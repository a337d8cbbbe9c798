"""Gradients that are still there when the passes of a step begin: of a loop that does not set them to zero.

A parameter's gradient is clean where, at the beginning of one of the backward passes since its last step, it is None or
zero. What an optimizer takes of the others is a sum that goes back further than its own step.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.optim import Optimizer

from inspector.engine.watch.gradients import root
from inspector.engine.watch.measure import Measure, Moment
from inspector.engine.watch.sums import squares
from inspector.engine.watch.tables import PLACE, About

KEPT = f"{PLACE}:gradient_kept"
OLD, LOOKS = "squares of gradients that were there", "looks at gradients that were there"
MOST = 4
"""Passes of an iteration at whose beginning gradients that are there are looked at: the others of an accumulation
begin with what the first one left."""


class KeptGradients(Measure):
    """In the order of the loop: a discriminator keeps what its generator's pass adds until its own gradients are set to
    zero, before its next pass; so all passes since a parameter's step count, and the smallest one decides."""

    reads_gradients = True
    tables = (
        About(
            name=KEPT, title="gradient of earlier steps that was kept", scale="log", dtype="float64",
            formula="‖∂L/∂θ‖₂ of what the optimizer's parameters had when the first backward pass since their last "
            "step began; 0 where gradients are set to zero",
            method="exact, with the factor of a GradScaler; of a parameter the smallest of the first passes",
        ),
    )  # fmt: skip

    def backward_begins(self, moment: Moment, roots: Sequence[Tensor]) -> None:
        """Look at gradients that are there, of parameters that had one at each beginning so far."""
        old: dict[int, Tensor | None] = moment.extra.setdefault(OLD, {})
        looks = moment.extra.setdefault(LOOKS, 0)
        if looks >= MOST:
            return
        open_ = [n for n in range(len(self.parameters.tensors)) if old.get(n, ...) is not None]
        numbers, gradients = self.parameters.with_gradient(open_)
        now = dict(zip(numbers, squares(gradients), strict=True)) if gradients else {}
        moment.extra[LOOKS] = looks + bool(gradients)
        for n in open_:
            before, found = old.get(n), now.get(n)
            old[n] = found if before is None or found is None else torch.minimum(before, found.to(before))

    def step_begins(self, moment: Moment, optimizer: Optimizer, columns: Sequence[int]) -> None:
        """What it takes; its next step begins anew."""
        old: dict[int, Tensor | None] = moment.extra.get(OLD, {})
        seen = [n for n in columns if n in old]
        if not seen:
            return  # no backward pass was seen: torch.autograd.grad
        kept = [one for n in seen if (one := old.pop(n)) is not None]
        moment.extra[LOOKS] = 0
        sums: list[Tensor] = moment.extra.setdefault(KEPT, [])
        sums += [torch.stack([one for one in kept if one.device == device]).sum() for device in _devices(kept)]
        total = torch.stack([one.to(sums[0]) for one in sums]).sum() if sums else torch.zeros(1)
        moment.pack.add(KEPT, (0,), total, root)


def _devices(tensors: Sequence[Tensor]) -> list[torch.device]:
    return list(dict.fromkeys(one.device for one in tensors))
