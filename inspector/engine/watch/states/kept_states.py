"""States that a model itself keeps from call to call, in attributes and buffers of its modules."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any

from torch import Tensor, nn

from inspector.engine.watch.parameters import plain_name

DEPTH = 3
MOST = 2_000
"""Entries of lists and tables that are looked at, in all modules together."""
_OF_TORCH = frozenset(vars(nn.Module()))


def kept_states(model: nn.Module, data: Tensor) -> dict[str, Tensor]:
    """By place ("model.h", "cell.state[0]"), what may be a state of the rows of `data` (b, t, …): numbers (b, n),
    (layers, b, n) or (b, …). The tensors themselves."""
    left = [MOST]
    found: dict[str, Tensor] = {}
    for name, part in model.named_modules():
        if type(part).__module__.startswith("torch.nn."):
            continue
        own = {key: value for key, value in vars(part).items() if key not in _OF_TORCH}
        for key, value in {**own, **part._buffers}.items():
            for place, one in _tensors(value, f"{plain_name(name) or 'model'}.{key}", DEPTH, left):
                if may_be_state(one, data):
                    found[place] = one
    return found


def may_be_state(value: Tensor, data: Tensor) -> bool:
    """Numbers by rows of the data, and no parameter."""
    if not value.is_floating_point() or value.dim() not in (2, 3, 4) or isinstance(value, nn.Parameter):
        return False
    return value.numel() > 0 and any(one in data.shape[:2] for one in (value.shape[0], value.shape[-2]))


def by_rows(state: Tensor, data: Tensor | None) -> Tensor:
    """A state as (…, b, n), with all that is of one row in the last axis: of a memory (b, t, n) beside data (b, t), and
    of states (b, d, s) and (b, heads, d, s), all numbers of a row."""
    if data is None or state.dim() < 3:
        return state
    memory = state.shape[:2] == data.shape[:2]
    first = state.shape[0] in data.shape[:2] and state.shape[-2] not in data.shape[:2]
    return state.flatten(1) if memory or first or state.dim() > 3 else state


def rows_left(left: Tensor, state: Tensor, data: Tensor) -> Tensor:
    """(b,) of what is known of all axes of a state but the last, whether any number of a row was left."""
    first = by_rows(state, data).dim() < state.dim()
    return left.flatten(1).any(1) if first and left.dim() > 1 else left.reshape(-1, left.shape[-1]).any(0)


def _tensors(value: Any, place: str, depth: int, left: list[int]) -> Iterator[tuple[str, Tensor]]:
    left[0] -= 1
    if left[0] < 0:
        return
    if isinstance(value, Tensor):
        yield place, value
    elif depth and isinstance(value, Mapping):
        for key, one in value.items():
            yield from _tensors(one, f"{place}[{key!r}]"[:200], depth - 1, left)
    elif depth and isinstance(value, (list, tuple)):
        for n, one in enumerate(value):
            yield from _tensors(one, f"{place}[{n}]", depth - 1, left)
    elif depth and (isinstance(value, SimpleNamespace) or _is_record(value)):
        for key, one in vars(value).items():
            yield from _tensors(one, f"{place}.{key}", depth - 1, left)


def _is_record(value: Any) -> bool:
    return dataclasses.is_dataclass(value) and not isinstance(value, type) and hasattr(value, "__dict__")
