"""What the keys of an attention were put together from: `stack` and `cat` of states, buffers that were filled.

Which step a key is follows from it: a list of states may begin with the state before the first step
(`trace/initial_keys.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from inspector.engine.attention.selected_sample import SelectedSample
from inspector.engine.trace.trace import KeyEnds


def of_parts(selected: SelectedSample, parts: Sequence[Tensor], dim: int, stacked: bool, out: Tensor) -> KeyEnds | None:
    """Of a `stack` or `cat` of `parts` along `dim` that may be keys; None where it cannot be."""
    first = parts[0]
    if out.dim() < 2 + (selected.batch > 1) or not out.is_floating_point() or out.is_meta:
        return None
    alone = stacked or first.shape[dim] == 1
    fixed = alone and not first.requires_grad and not bool(first.detach().any())
    return of_keys(selected, out, dim, fixed)


def of_keys(selected: SelectedSample, keys: Tensor, dim: int, fixed: bool = False) -> KeyEnds | None:
    """Of a tensor with an axis `dim` of keys and one of the batch, every other one an axis of features."""
    each = keys.detach().movedim(dim, 0)
    count = len(each)
    if count < 2 or each[0].numel() == 0:
        return None
    rows = torch.stack([each[0], each[1], each[count - 1]])
    if selected.batch > 1:
        if rows.shape[1] != selected.batch:
            return None
        rows = rows[:, selected.sample]
    return KeyEnds(rows.reshape(3, -1), count, fixed and bool(rows[1].any()))
