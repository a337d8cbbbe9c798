"""Saturation of the gates of fused recurrent modules, computed again for one sample of the batch.

Index letters: t step, i input, s state entry.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from inspector.analysis.saturation import GATE_HIGH, GATE_LOW
from inspector.engine.cells.family import CellFamily, sequence_family
from inspector.engine.watch.measure import Measure, Moment
from inspector.engine.watch.measures.activations import layer_name
from inspector.engine.watch.parameters import Parameters
from inspector.engine.watch.sums import HALF
from inspector.engine.watch.tables import About

SATURATED = "modules:gate/saturated"
EVERY = 10
"""Recorded iterations, at least, from one in which modules of several layers are read to the next: their lower layers
have to be run again, step by step, which for one sample takes as long as for many."""


class Gates(Measure):
    """Of the first sample of the first call of each module."""

    tables = (
        About(
            name=SATURATED, title="saturated gates", limits=(0, 1), column=("gate", "gate"),
            formula=f"low = share of gates below {GATE_LOW}, high = share above {GATE_HIGH}, over all steps and units",
            source="Karpathy, Johnson & Fei-Fei 2015",
            method="of the first sample of the batch, computed again; in layers above the first without the dropout "
            f"between layers, and {EVERY} recorded iterations apart or more",
        ),
    )  # fmt: skip

    def __init__(self, parameters: Parameters) -> None:
        super().__init__(parameters)
        self._count, self._last = 0, -EVERY

    def ends(self, moment: Moment) -> None:
        """Count recorded iterations."""
        self._count += 1

    def reads(self, module: nn.Module) -> bool:
        """Fused recurrent modules."""
        family = sequence_family(module)
        return family is not None and family.opaque

    def called(self, moment: Moment, place: str, module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        """Layer by layer: all gates of all steps in one product, from inputs and the states before."""
        family = sequence_family(module)
        if family is None or not family.opaque or moment.extra.get(name := f"{SATURATED} {place}"):
            return
        moment.extra[name] = True
        given, initial = family.arguments(module, args, kwargs)
        results = family.results(module, output)
        if not isinstance(given, Tensor) or given.dim() != 3 or results is None:
            return
        stack = family.stack(module)
        if stack.layers > 1:
            if self._last < self._count < self._last + EVERY:
                return
            self._last = self._count
        made = results[0]
        axis = 0 if stack.batch_first else 1
        x, top = (one.detach().select(axis, 0)[:, None] for one in (given, made))
        with torch.autocast(given.device.type, enabled=False):
            self._layers(moment, place, module, family, x, top, [one.detach()[:, :1] for one in initial])

    def _layers(
        self, moment: Moment, place: str, module: nn.Module, family: CellFamily, x: Tensor, top: Tensor,
        initial: list[Tensor],
    ) -> None:  # fmt: skip
        stack, weights = family.stack(module), family.weights(module)
        weights = {name: one.float() if one.dtype in HALF else one for name, one in weights.items()}
        for layer in range(stack.layers):
            outputs = []
            for direction in range(stack.directions):
                number = layer * stack.directions + direction
                cell = family.from_module(module, weights, layer, direction)
                x = x.to(cell.dtype)
                own = x.flip(0) if direction else x
                parts = list(cell.parts.values())
                start = [one[number].to(cell.dtype) for one in initial]
                start = start or [x.new_zeros(1, part.stop - part.start) for part in parts]
                if layer < stack.layers - 1:
                    out = family.run(module, cell, family.layer_weights(weights, layer, direction), own, start)[0]
                else:
                    out = top.to(cell.dtype).chunk(stack.directions, -1)[direction]
                    out = out.flip(0) if direction else out
                before = x.new_zeros(len(x), 1, cell.state_size)
                before[0, :, cell.parts[cell.main]] = start[list(cell.parts).index(cell.main)]
                before[1:, :, cell.parts[cell.main]] = out[:-1]
                self._put(moment, f"{place}.{layer_name(number, stack.directions)}", cell.gates(own, before))
                outputs.append(out.flip(0) if direction else out)
            x = torch.cat(outputs, -1)

    def _put(self, moment: Moment, place: str, gates: dict[str, Tensor]) -> None:
        for signal, values in gates.items():
            if not signal.startswith("gate/"):
                continue
            short = signal.removeprefix("gate/")
            columns = [self.column("gate", f"{place} {short} {side}") for side in ("low", "high")]
            shares = torch.stack([(values < GATE_LOW).float().mean(), (values > GATE_HIGH).float().mean()])
            moment.pack.add(SATURATED, columns, shares)
