"""Weights and what a step really changed: norms, the ratio of the update to the weight, updates lost to rounding."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from weakref import WeakKeyDictionary

import torch
from torch import Tensor
from torch.optim import Optimizer

from inspector.engine.watch.gradients import BY_PARAMETER, root
from inspector.engine.watch.measure import Found, Measure, Moment
from inspector.engine.watch.measures.in_cache import differences, fits
from inspector.engine.watch.parameters import Parameters, local
from inspector.engine.watch.sums import HALF, TINY, corrected, squares
from inspector.engine.watch.tables import About

WEIGHT = "parameters:weight/norm"
UPDATE = "parameters:update/norm"
RATIO = "parameters:update/ratio"
LOST = "parameters:update/lost"
_UNMOVED, _PUSHED = "update/unmoved", "update/pushed"


class Updates(Measure):
    """From a copy of the weights before the step: the real difference, whatever the optimizer does."""

    summed = (WEIGHT, UPDATE, _UNMOVED, _PUSHED)
    finishing = MappingProxyType({WEIGHT: root, UPDATE: root})
    tables = (
        About(
            name=WEIGHT, title="weight norm", formula="‖θ‖₂ after the step", scale="log", column=BY_PARAMETER,
        ),
        About(
            name=UPDATE, title="update norm", formula="‖θ after − θ before‖₂, the real difference", scale="log",
            column=BY_PARAMETER,
        ),
        About(
            name=RATIO, title="update / weight", formula="‖θ after − θ before‖ / ‖θ after‖", scale="log",
            column=BY_PARAMETER, source="about 1e-3 in healthy training: Karpathy, makemore part 3",
        ),
        About(
            name=LOST, title="updates lost to rounding", limits=(0, 1), column=BY_PARAMETER,
            formula="share of entries with a gradient other than 0 whose weight did not change",
            method="exact; of parameters in half precision",
        ),
    )  # fmt: skip

    def __init__(self, parameters: Parameters) -> None:
        super().__init__(parameters)
        self._before: WeakKeyDictionary[Optimizer, list[Tensor]] = WeakKeyDictionary()

    def step_begins(self, moment: Moment, optimizer: Optimizer, columns: Sequence[int]) -> None:
        """Copy the weights."""
        weights = self._weights(columns)
        held = self._before.get(optimizer)
        if held is None or [(one.shape, one.dtype, one.device) for one in held] != [
            (one.shape, one.dtype, one.device) for one in weights
        ]:
            held = self._before[optimizer] = [torch.empty_like(one) for one in weights]
        torch._foreach_copy_(held, weights)
        moment.extra[f"{UPDATE} {id(optimizer)}"] = True

    def before(self, optimizer: Optimizer) -> list[Tensor]:
        """The weights before the step that is being made, in the order of the columns."""
        return self._before.get(optimizer, [])

    def step_ended(self, moment: Moment, optimizer: Optimizer, columns: Sequence[int]) -> None:
        """Compare."""
        held, weights = self._before.get(optimizer), self._weights(columns)
        if not moment.extra.pop(f"{UPDATE} {id(optimizer)}", False) or held is None or len(held) != len(weights):
            return
        if not weights:
            return
        if fits(held, weights):
            moved, sizes = differences(held, weights)
            moment.pack.add(UPDATE, columns, self._exact(moved, held, weights), root)
            moment.pack.add(WEIGHT, columns, corrected(sizes, weights), root)
            return
        moment.pack.add(WEIGHT, columns, squares(weights), root)
        change = torch._foreach_sub(held, weights)
        moment.pack.add(UPDATE, columns, squares(change), root)
        self._lost(moment, columns, change)

    @staticmethod
    def _exact(sums: Tensor, held: Sequence[Tensor], weights: Sequence[Tensor]) -> Tensor:
        """Those whose squares float32 cannot hold again, in float64."""
        for n in (~(sums.isfinite() & (sums > TINY * TINY))).nonzero().flatten().tolist():
            sums[n] = corrected(sums[n : n + 1], [held[n] - weights[n]])[0]
        return sums

    def _lost(self, moment: Moment, columns: Sequence[int], moved: Sequence[Tensor]) -> None:
        pairs = []
        for column, difference in zip(columns, moved, strict=True):
            gradient = self.parameters.tensors[column].grad
            if difference.dtype in HALF and gradient is not None and not gradient.is_sparse:
                pairs.append((column, difference, local(gradient) != 0))
        if pairs:
            which = [column for column, _, _ in pairs]
            pushed = torch.stack([torch.count_nonzero(mask) for _, _, mask in pairs])
            stayed = torch.stack([torch.count_nonzero(mask & (moved_ == 0)) for _, moved_, mask in pairs])
            moment.pack.add(_PUSHED, which, pushed)
            moment.pack.add(_UNMOVED, which, stayed)

    def _weights(self, columns: Sequence[int]) -> list[Tensor]:
        return [local(self.parameters.tensors[column]) for column in columns]

    def derive(self, moment: Moment, found: Found) -> None:
        """Ratios; none of a weight that is zero (a bias before its first step)."""
        weights = found.get(WEIGHT, {})
        ratios = {c: u / weights[c] for c, u in found.get(UPDATE, {}).items() if weights.get(c)}
        found[RATIO] = ratios
        pushed, stayed = found.pop(_PUSHED, {}), found.pop(_UNMOVED, {})
        found[LOST] = {c: stayed[c] / n for c, n in pushed.items() if n}
