"""The operators by which torch runs an LSTM or GRU step on an accelerator, which the CPU has not: written out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor


def lstm_cell(ig: Tensor, hg: Tensor, cx: Tensor, ib: Any = None, hb: Any = None) -> tuple[Tensor, Tensor, Tensor]:
    """(h', c', the activated gates i f g o)."""
    gates = ig + hg if ib is None else ig + ib + hg + hb
    i, f, g, o = gates.chunk(4, 1)
    i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
    cy = f * cx + i * g
    return o * cy.tanh(), cy, torch.cat((i, f, g, o), 1)


def lstm_backward(gh: Any, gc: Any, cx: Tensor, cy: Tensor, saved: Tensor, has_bias: bool) -> tuple[Any, Any, Any]:
    i, f, g, o = saved.chunk(4, 1)
    gh = torch.zeros_like(cx) if gh is None else gh
    inner = gh * o * (1 - cy.tanh() ** 2) + (0 if gc is None else gc)
    parts = (inner * g * i * (1 - i), inner * cx * f * (1 - f), inner * i * (1 - g * g), gh * cy.tanh() * o * (1 - o))
    grads = torch.cat(parts, 1)
    return grads, inner * f, grads.sum(0) if has_bias else None


def gru_cell(ig: Tensor, hg: Tensor, hx: Tensor, ib: Any = None, hb: Any = None) -> tuple[Tensor, Tensor]:
    """(h', r z n h and the recurrent half of n)."""
    ir, iz, i_n = (ig if ib is None else ig + ib).chunk(3, 1)
    hr, hz, hn = (hg if hb is None else hg + hb).chunk(3, 1)
    r, z = (ir + hr).sigmoid(), (iz + hz).sigmoid()
    n = (i_n + r * hn).tanh()
    return n + z * (hx - n), torch.cat((r, z, n, hx, hn), 1)


def gru_backward(gh: Tensor, saved: Tensor, has_bias: bool) -> tuple[Any, ...]:
    r, z, n, hx, hn = saved.chunk(5, 1)
    to_n = gh * (1 - z) * (1 - n * n)
    to_z, to_r = gh * (hx - n) * z * (1 - z), to_n * hn * r * (1 - r)
    ig, hg = torch.cat((to_r, to_z, to_n), 1), torch.cat((to_r, to_z, to_n * r), 1)
    return ig, hg, gh * z, ig.sum(0) if has_bias else None, hg.sum(0) if has_bias else None


FUSED: Mapping[str, Callable[..., Any]] = {
    "aten::_thnn_fused_lstm_cell": lstm_cell,
    "aten::_thnn_fused_lstm_cell_backward_impl": lstm_backward,
    "aten::_thnn_fused_gru_cell": gru_cell,
    "aten::_thnn_fused_gru_cell_backward": gru_backward,
}
