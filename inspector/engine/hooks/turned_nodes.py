"""Rotary turns in autograd's graph: a sum of what was given times cosines and what was given, turned, times sines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from inspector.engine.hooks.loss_nodes import SHAPES, beneath, operation

UNIT = 1e-2
"""How far cosine² + sine² may be from 1: half precision."""
MOST_NUMBERS = 4096
"""Of a table of angles that are looked at; a table that is larger is looked at in its first rows."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn: cosines and sines (complex numbers for both), and the node that it turns."""

    cosine: Tensor
    sine: Tensor | None
    given: Any

    def same(self, other: Turn) -> bool:
        """Whether both turn by the same angles, at every step."""
        if (self.sine is None) != (other.sine is None) or self.cosine.shape != other.cosine.shape:
            return False
        pairs = ((self.cosine, other.cosine), (self.sine, other.sine))
        return all(a is None or b is None or torch.equal(_some(a), _some(b)) for a, b in pairs)


def turn_of(node: Any) -> Turn | None:
    """The turn that a node ends; None where it is none."""
    name = operation(node)
    if name == "Mul":
        return _complex(node)
    if name not in ("Add", "Sub"):
        return None
    sides = [_behind_moves(one) for one, _ in node.next_functions[:2]]
    if len(sides) != 2 or any(one is None or operation(one) != "Mul" for one in sides):
        return None
    tables = [_table(one) for one in sides]
    first, second = tables
    if first is None or second is None or not _circle(first, second):
        return None
    return Turn(first, second, _behind_moves(sides[0].next_functions[0][0]))


def _complex(node: Any) -> Turn | None:
    table = _table(node)
    if table is None or not torch.is_complex(table):
        return None
    size = _some(table).abs()
    if not bool((size - 1).abs().max() < UNIT) or not bool(_some(table).imag.any()):
        return None
    return Turn(table, None, _behind_moves(node.next_functions[0][0]))


def _table(node: Any) -> Tensor | None:
    """What a product multiplies by, where that is several numbers without a graph."""
    if node.next_functions[0][0] is None or any(one is not None for one, _ in node.next_functions[1:]):
        return None
    table = node._saved_other
    return table.detach() if isinstance(table, Tensor) and table.numel() > 1 else None


def _circle(first: Tensor, second: Tensor) -> bool:
    if first.shape != second.shape or torch.is_complex(first) or not first.is_floating_point():
        return False
    a, b = _some(first).float(), _some(second).float()
    return bool((a.square() + b.square() - 1).abs().max() < UNIT) and bool(b.any()) and bool(a.any())


def _some(table: Tensor) -> Tensor:
    return table.detach().reshape(-1)[:MOST_NUMBERS]


def _behind_moves(node: Any) -> Any:
    """The first node that computes, behind those that only move numbers."""
    return beneath(node) if node is not None and operation(node) in SHAPES else node
