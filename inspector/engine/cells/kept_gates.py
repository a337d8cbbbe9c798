"""The gates that oneDNN's training kernel of nn.LSTM keeps for its backward pass, read instead of computed again.

On the CPU in float32, with gradients on, torch runs every layer and direction of nn.LSTM as one operation, whose node
in autograd's graph holds a workspace. It begins with the activated gates i, f, g, o of all steps, as rows of 4h numbers
that are padded to a multiple of 16 (and by 16 more where that is a multiple of 256). None of that is documented: what
is read is taken only where it agrees with the product of some steps, and with the output that the module gave at every
step (recurrent/fused/layers.py); else the gates are computed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

NODE = "MkldnnRnnLayerBackward0"
MOST_BYTES = 256 << 20
"""A workspace beyond this is not held until the run is over: it has about four times as many numbers as the gates."""
MOST_NODES = 64
"""Nodes between the layers of one module: dropout, joining and flipping two directions."""


@dataclass(frozen=True, slots=True)
class KeptGates:
    """The workspace of one layer in one direction; steps are in processing order."""

    workspace: Tensor
    shape: tuple[int, int, int]

    def gates(self) -> Tensor:
        """(t, b, 4h) a copy of i, f, g, o."""
        t, b, h = self.shape
        row = row_of(h)
        return self.workspace.as_strided((t, b, 4 * h), (b * row, row, 1)).contiguous()


def row_of(hidden: int) -> int:
    """Numbers from one row of gates to the next."""
    padded = -(-4 * hidden // 16) * 16
    return padded + 16 * (padded % 256 == 0)


def kept_gates(output: Tensor, layers: int, directions: int) -> tuple[KeptGates, ...]:
    """Those of every layer and direction, lowest layer first, forward before backward; () where they are not there.

    Nothing is read where hooks on saved tensors are at work: reading would call them, and a checkpointed part would be
    computed again.
    """
    hooked = getattr(torch._C._autograd, "_top_saved_tensors_default_hooks", None)
    if output.dtype != torch.float32 or output.device.type != "cpu" or hooked is None or hooked(False) is not None:
        return ()
    found: list[list[KeptGates]] = []
    above: list[Any] = [output.grad_fn]
    for _ in range(layers):
        nodes = list(_nearest(above))
        row = [one for node in sorted(nodes, key=lambda node: bool(node._saved_reverse)) if (one := _of_node(node))]
        if len(nodes) != directions or len(row) != directions:
            return ()
        found.append(row)
        above = [node.next_functions[0][0] for node in nodes]
    if sum(one.workspace.nbytes for row in found for one in row) > MOST_BYTES:
        return ()
    return tuple(one for row in reversed(found) for one in row)


def _nearest(begin: list[Any]) -> Iterator[Any]:
    """The nodes of the kernel that are reached before any other one of it."""
    waiting, seen = list(begin), set[Any]()
    while waiting and len(seen) < MOST_NODES:
        node = waiting.pop(0)
        if node is None or node in seen:
            continue
        seen.add(node)
        if node.name() == NODE:
            yield node
        else:
            waiting += [before for before, _ in node.next_functions]


def _of_node(node: Any) -> KeptGates | None:
    try:
        workspace, made = node._saved_result3.detach(), node._saved_result0
    except (AttributeError, RuntimeError):  # freed, or another version of torch
        return None
    t, b, h = made.shape
    numbers = workspace.view(torch.float32) if workspace.dtype == torch.uint8 else workspace
    if numbers.dtype != torch.float32 or numbers.numel() < t * b * row_of(h):
        return None
    return KeptGates(numbers, (t, b, h))
