"""Which entries of a sharded parameter this process holds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from inspector.engine.watch.parameters import local


@dataclass(frozen=True, slots=True)
class Block:
    """A rectangular part of a tensor: sizes of the whole and of the part along each axis, and where it begins."""

    whole: tuple[int, ...]
    shape: tuple[int, ...]
    offset: tuple[int, ...]

    @property
    def start(self) -> int | None:
        """The place of its first entry, where all its entries follow each other in the order of memory; else None."""
        cut = next((n for n, (part, of) in enumerate(zip(self.shape, self.whole, strict=True)) if part != of), None)
        if cut is not None and (math.prod(self.whole[:cut]) != 1 or self.shape[cut + 1 :] != self.whole[cut + 1 :]):
            return None
        return sum(begin * math.prod(self.whole[n + 1 :]) for n, begin in enumerate(self.offset))

    def positions(self, first: int, last: int, device: torch.device) -> Tensor:
        """(last − first,) places in the whole, in the order of memory, of some entries of the part."""
        left = torch.arange(first, last, device=device)
        found = torch.zeros_like(left)
        for n in reversed(range(len(self.shape))):
            found += (left % self.shape[n] + self.offset[n]) * math.prod(self.whole[n + 1 :])
            left = left.div(self.shape[n], rounding_mode="floor")
        return found


def block_of(tensor: Any) -> Block | None:
    """The part of a tensor of torch.distributed.tensor that this process holds; None where it cannot be told.

    Processes along one axis of the mesh hold pieces as torch.chunk cuts them, along the next one pieces of these. Other
    ways of placing (partial sums, the interleaved pieces of two kinds of sharding together) are not known here.
    """
    mesh = getattr(tensor, "device_mesh", None)
    at = None if mesh is None else mesh.get_coordinate()
    if mesh is None or at is None:
        return None
    shape, offset = list(tensor.shape), [0] * tensor.dim()
    for n, placement in enumerate(tensor.placements):
        if placement.is_replicate():
            continue
        if type(placement).__name__ != "Shard":
            return None
        size, dim = shape[placement.dim], placement.dim
        piece = -(-size // mesh.size(n))
        begin = min(size, piece * at[n])
        offset[dim] += begin
        shape[dim] = min(size, begin + piece) - begin
    held, whole = local(tensor), tuple(tensor.shape)
    if tensor.is_complex():  # its parts lie beside each other
        whole, shape, offset = (*whole, 2), [*shape, 2], [*offset, 0]
    return Block(whole, tuple(shape), tuple(offset)) if tuple(shape) == tuple(held.shape) else None
