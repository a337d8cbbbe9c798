"""torch's cells as functions that torch.func can vectorise: their kernels have no batching rule."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor

from inspector.engine.cells.family import CellFamily, families
from inspector.engine.recurrent.traced.program.sequence_functions import fused_call, fused_call_carried
from inspector.engine.recurrent.traced.record.operation import Op


@cache
def written_out() -> Mapping[str, Callable[..., Any]]:
    """Name of torch's function → the same in plain operations, as its family defines them."""
    return {name: partial(_step, family, name) for _, family in families() for name in family.operations}


@cache
def sequences_written_out() -> Mapping[str, Callable[..., Any]]:
    """The same of torch's functions for whole sequences."""
    return {name: partial(fused_call, family, name) for _, family in families() for name in family.kernels}


@cache
def carried() -> Mapping[str, Callable[..., Any]]:
    """The same functions, with a derivative along the direct path only: of the state by its factor (f of an LSTM on c,
    z of a GRU on h), everything else held fixed."""
    return {
        **{name: partial(_carried, family, name) for _, family in families() for name in family.operations},
        **{name: partial(fused_call_carried, family, name) for _, family in families() for name in family.kernels},
    }


@cache
def at_memory(device: torch.device) -> Mapping[str, Callable[..., Any]]:
    """The functions whose outputs depend on each other (an LSTM's h on its c), with that output given first.

    Only where autograd's gradient of that output has the path to the other one on that device (`Cell.feeds_parts`).
    """
    weights = torch.ones(4, 1, device=device), torch.ones(4, 1, device=device)
    return {
        name: partial(_at_memory, family, name)
        for _, family in families()
        for name in family.operations
        if name == "lstm_cell" and family.make(name, [*weights, None, None, None], live=True).feeds_parts()
    }


def memory_of(op: Op) -> Tensor | None:
    """The output of a recorded cell from which another of its outputs is computed: c of an LSTM.

    None for other operations, and where one kernel computes h and c, as on a GPU: c's gradient has no path to h there.
    """
    if op.name != "lstm_cell" or op.name not in at_memory(op.outputs[1].device):
        return None
    return op.outputs[1]


def _at_memory(family: CellFamily, name: str, memory: Tensor, x: Tensor, state: Any, *weights: Any) -> Any:
    cell = family.make(name, [*weights, *[None] * (5 - len(weights))], live=True)
    return cell.shown(x, memory, *state)


def _carried(family: CellFamily, name: str, x: Tensor, state: Any, *weights: Any) -> Any:
    several = isinstance(state, (tuple, list))
    parts = tuple(state) if several else (state,)
    fixed = tuple(part.detach() for part in parts)
    given = [None if one is None else one.detach() for one in (*weights, *[None] * (5 - len(weights)))]
    cell = family.make(name, given, live=True)
    after = cell.eager_step(x.detach(), *fixed)
    factors = cell.carry(x.detach(), *fixed)
    moved = tuple(
        new if factor is None else new + factor * (part - old)
        for new, factor, part, old in zip(after, factors, parts, fixed, strict=True)
    )
    return moved if several else moved[0]


def _step(family: CellFamily, name: str, x: Tensor, state: Any, *weights: Any) -> Any:
    """The result of torch.lstm_cell and similar functions:
    x (b, i), state h or (h, c), then the weights → the new state."""
    several = isinstance(state, (tuple, list))
    cell = family.make(name, [*weights, *[None] * (5 - len(weights))], live=True)
    after = cell.eager_step(x, *(state if several else (state,)))
    return after if several else after[0]
