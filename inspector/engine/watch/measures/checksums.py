"""Whether weights come back to what they were: a number of some of their entries, before a step and after it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import torch
from torch import Tensor
from torch.optim import Optimizer

from inspector.engine.watch.measure import Measure, Moment
from inspector.engine.watch.parameters import local
from inspector.engine.watch.tables import PLACE, About

BEFORE, AFTER = f"{PLACE}:weights/before", f"{PLACE}:weights/after"
MOST_TENSORS, ENTRIES = 16, 64
_SUM = f"Σ c_i θ_i over up to {ENTRIES} entries of up to {MOST_TENSORS} parameters of the optimizer, c_i fixed numbers"
_METHOD = "float64: equal weights, equal numbers; of the first optimizer that makes a step in an iteration"


class Checksums(Measure):
    """Of the same entries at each recorded iteration."""

    tables = (
        About(name=BEFORE, title="checksum of weights before the step", dtype="float64", formula=_SUM, method=_METHOD),
        About(name=AFTER, title="checksum of weights after the step", dtype="float64", formula=_SUM, method=_METHOD),
    )

    def step_begins(self, moment: Moment, optimizer: Optimizer, columns: Sequence[int]) -> None:
        """The first optimizer's."""
        if moment.extra.setdefault(BEFORE, id(optimizer)) == id(optimizer):
            self._put(moment, BEFORE, columns)

    def step_ended(self, moment: Moment, optimizer: Optimizer, columns: Sequence[int]) -> None:
        """The same."""
        if moment.extra.get(BEFORE) == id(optimizer):
            self._put(moment, AFTER, columns)

    def _put(self, moment: Moment, table: str, columns: Sequence[int]) -> None:
        tensors = [local(self.parameters.tensors[n]).detach() for n in columns]
        chosen = tensors[:: max(1, -(-len(tensors) // MOST_TENSORS))]
        if chosen:
            moment.pack.add(table, (0,), checksum(chosen))


def checksum(tensors: Sequence[Tensor]) -> Tensor:
    """(1,) float64 of evenly spaced entries, on the device of the first (float32 where there is no float64)."""
    device = tensors[0].device
    flat = torch.cat([_some(one).to(device, torch.float32) for one in tensors])
    wide = flat if device.type == "mps" else flat.double()
    return (wide * _factors(len(wide), device, wide.dtype)).sum().reshape(1)


def _some(tensor: Tensor) -> Tensor:
    """(≤ ENTRIES,) evenly spaced entries: of what is contiguous by one operation, as each has its cost."""
    real = torch.view_as_real(tensor) if tensor.is_complex() else tensor
    count = real.numel()
    apart = max(1, count // ENTRIES)
    if real.is_contiguous() and not real.is_conj() and not real.is_neg():
        return real.as_strided((min(ENTRIES, -(-count // apart)),), (apart,))
    return real.reshape(-1)[::apart][:ENTRIES]


@lru_cache(maxsize=4)
def _factors(count: int, device: torch.device, dtype: torch.dtype) -> Tensor:
    return torch.arange(1, count + 1, device=device, dtype=dtype).sqrt()
