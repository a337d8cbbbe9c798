"""Autograd's graph without the tensors that its nodes keep for a backward pass: to look at, at next to no memory."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef


@dataclass(slots=True)
class WithoutValues:
    """Inside, autograd's graph is made and large tensors of floating point are not kept for it: it is only looked at.

    In their place are a few numbers, the same for the same memory as long as that lives.
    """

    most: int = 1 << 12
    _numbers: dict[int, tuple[StorageWeakRef, int]] = field(default_factory=dict)
    _count: int = 0

    def hooks(self) -> torch.autograd.graph.saved_tensors_hooks:
        """What makes it so."""
        return torch.autograd.graph.saved_tensors_hooks(self._kept, lambda kept: kept)

    def _kept(self, tensor: Tensor) -> Tensor:
        if tensor.numel() <= self.most or not tensor.is_floating_point():
            return tensor
        storage = tensor.untyped_storage()
        known = self._numbers.get(storage._cdata)
        if known is None or known[0].expired():
            self._count += 1
            known = self._numbers[storage._cdata] = StorageWeakRef(storage), self._count
        where = [known[1], int(tensor.storage_offset()), tensor.numel()]
        return torch.tensor(where, dtype=torch.float64)
