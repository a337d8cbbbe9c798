"""Statistics of units over all steps of all sequences; values are never in memory together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from inspector.engine.analyses.saturated import Saturated
from inspector.engine.analyses.unit_statistics import Moments
from inspector.engine.cells.base import StepBlock
from inspector.engine.trace.trace import Recurrence


@dataclass(slots=True)
class PooledLayer:
    """One layer: the moments of its main state of `steps` steps, and sums of saturated values by signal, (3, h), of as
    many steps as compute that signal."""

    main: str
    module: str
    moments: Moments | None = None
    saturated: dict[str, Tensor] = field(default_factory=dict)
    saturated_steps: Counter[str] = field(default_factory=Counter)
    steps: int = 0
    sequences: int = 0
    lost: int = 0
    """Steps with a state that is not finite, which are left out of the moments."""


@dataclass(slots=True)
class Pooled:
    """Every layer, by place."""

    layers: dict[str, PooledLayer] = field(default_factory=dict)

    def visit(self, recurrence: Recurrence, block: StepBlock, real: Tensor, counts: Mapping[str, Saturated]) -> None:
        """Add the real steps of a block; `real` is (t, b), `counts` are its saturated values by signal."""
        cell = recurrence.cell
        layer = self.layers.setdefault(recurrence.place, PooledLayer(cell.main, recurrence.module))
        part = block.following[..., cell.parts[cell.main]]
        values = part.flatten(0, 1) if bool(real.all()) else part[real]
        layer.steps += len(values)
        if not bool(values.sum(dtype=torch.float64).isfinite()):
            finite = values.isfinite().all(-1)
            layer.lost += int((~finite).sum())
            values = values[finite]
        if len(values):
            own = Moments.of(values)
            layer.moments = own if layer.moments is None else layer.moments.joined(own)
        for signal, one in counts.items():
            before = layer.saturated.get(signal)
            layer.saturated[signal] = one.by_unit if before is None else before + one.by_unit
            layer.saturated_steps[signal] += one.steps

    def count(self, places: set[str], sequences: int) -> None:
        """So many more sequences went through some layers."""
        for place in places & set(self.layers):
            self.layers[place].sequences += sequences
