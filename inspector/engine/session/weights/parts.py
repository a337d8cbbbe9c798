"""What is listed of one checkpoint or two: every tensor, and the gates of those that have some."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from inspector.engine.opening.weights_alone.gate_blocks import Block, gate_blocks

Tensors = Mapping[str, Tensor]


@dataclass(frozen=True, slots=True)
class Part:
    """A tensor, or one gate of it. `tensor`: the number of the part that is the tensor as a whole."""

    name: str
    tensor: int
    block: Block | None = None

    def of(self, tensors: Tensors) -> Tensor | None:
        """Its elements; None where a file has no such tensor, or none that has this gate."""
        found = tensors.get(self.name)
        if found is None or self.block is None:
            return found
        if found.dim() <= self.block.axis or found.shape[self.block.axis] < self.block.stop:
            return None
        return found.narrow(self.block.axis, self.block.start, self.block.stop - self.block.start)


def parts_of(first: Tensors, second: Tensors | None) -> list[Part]:
    """The parts of the first file in its order, then those that only the second one has."""
    both = {**(second or {}), **first}
    blocks = {**gate_blocks(second or {}), **gate_blocks(first)}
    parts: list[Part] = []
    for name in [*first, *(name for name in second or {} if name not in first)]:
        whole = len(parts)
        parts.append(Part(name, whole))
        same = second is None or name not in first or name not in second or first[name].shape == second[name].shape
        if both[name].numel() and same:  # the gates of two shapes are no gates of each other
            parts += [Part(name, whole, block) for block in blocks.get(name, ())]
    return parts
