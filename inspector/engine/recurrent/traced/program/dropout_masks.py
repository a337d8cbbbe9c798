"""Dropout of a recorded run, with the mask that was drawn in it."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only

from inspector.engine.devices.random_state import drawing_as
from inspector.engine.recurrent.traced.record.operation import Op


def dropped(value: Tensor, scale: Tensor, offset: Tensor | None = None) -> Tensor:
    return value * scale if offset is None else value * scale + offset


def dropped_(value: Tensor, scale: Tensor, offset: Tensor | None = None) -> Tensor:
    return value.copy_(dropped(value, scale, offset))


def masks_of(op: Op) -> list[Tensor]:
    """The mask of dropout, drawn again from the same random state, and the offset that it added, if any.

    Every dropout is a x + b with random a and b (b is 0 except for alpha dropout): from zeros it makes b, from ones a +
    b.
    """
    assert op.random is not None
    found = []
    for like in (torch.zeros_like, torch.ones_like):
        with drawing_as({op.outputs[0].device: op.random}), torch.no_grad():
            args, kwargs = tree_map_only(Tensor, like, (op.args, op.kwargs))
            found.append(op.function(*args, **kwargs))
    offset, both = found
    return [both - offset, offset] if bool(offset.any()) else [both]
