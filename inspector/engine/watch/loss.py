"""The loss of an iteration: what backward was called on, or what the user gave."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from inspector.engine.watch.backward_calls import Scaled
from inspector.engine.watch.measure import Found, Moment
from inspector.engine.watch.tables import PLACE, About

LOSS = f"{PLACE}:loss"
PASSES = f"{PLACE}:backward_passes"
_GIVEN = "loss given"


class Losses:
    """Finds the loss where backward begins."""

    tables = (
        About(
            name=LOSS, title="loss", dtype="float64",
            formula="sum of the scalars that backward was called on since the step before, which is the function whose "
            "gradient the optimizer gets (without passes whose gradients were set to zero before it); or log(loss=…)",
            method="exact, in the precision of the loss, before a GradScaler's factor; of several processes the mean",
        ),
        About(
            name=PASSES, title="backward passes of a step", dtype="float64", unit="passes",
            formula="calls of backward since the step before: more than one where gradients are accumulated",
        ),
    )  # fmt: skip

    def found(self, moment: Moment, roots: Sequence[Tensor], scaled: Scaled | None) -> None:
        """A backward pass ended: add its loss. One that began at a tensor of several numbers has none."""
        root = roots[0] if scaled is None else scaled.loss
        moment.put(PASSES, 0, moment.passes)
        if len(roots) != 1 or not isinstance(root, Tensor) or root.numel() != 1:
            return
        value = root.detach().reshape(1).double().clone() if root.device.type != "mps" else root.detach().reshape(1)
        before = moment.extra.get(LOSS)
        moment.extra[LOSS] = value if before is None else before + value.to(before.device)
        moment.pack.add(LOSS, (0,), moment.extra[LOSS])

    def forget(self, moment: Moment) -> None:
        """The gradients of the passes so far were dropped, so their losses count no more."""
        moment.passes = 0
        moment.extra.pop(LOSS, None)
        moment.pack.parts.pop((LOSS, (0,)), None)

    def given(self, moment: Moment, loss: Any) -> None:
        """The user's own number counts instead."""
        moment.extra[_GIVEN] = loss.detach().clone() if isinstance(loss, Tensor) else float(loss)

    def derive(self, moment: Moment, found: Found) -> None:
        """The loss that was given, if there is one."""
        loss = moment.extra.get(_GIVEN)
        if loss is not None:
            found[LOSS] = {0: float(loss.float().mean()) if isinstance(loss, torch.Tensor) else loss}
