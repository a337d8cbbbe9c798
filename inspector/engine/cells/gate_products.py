"""The inside of all steps of a built-in cell from the fastest matrix product there is, and how exact it can be."""

from __future__ import annotations

import torch
from torch import Tensor

from inspector.engine.cells.base import Cell
from inspector.engine.cells.gru import GruStep
from inspector.engine.cells.linear import linear
from inspector.engine.cells.lstm import LstmStep
from inspector.engine.cells.rnn import RnnStep


def inside(cell: Cell, x: Tensor, before: Tensor) -> tuple[Tensor, ...]:
    """What is between the states of all steps, as `Cell.block` takes it: x (t, b, i), h before (t, b, r).

    LSTM: i, f, g, o. GRU: r, z, n, q = U_n h + b_hn. Plain RNN: h itself, as recomputed. Each (t, b, h).
    """
    t, b, _ = x.shape
    rows, past = x.reshape(t * b, -1), before.reshape(t * b, -1)
    if isinstance(cell, GruStep):
        return tuple(value.view(t, b, -1) for value in _gru(cell, rows, past))
    assert isinstance(cell, (LstmStep, RnnStep))
    a = linear(torch.cat((rows, past), 1), torch.cat((cell.w_ih, cell.w_hh), 1), cell.bias).view(t, b, -1)
    if isinstance(cell, RnnStep):
        return (cell.activation.function(a),)
    n = cell.hidden
    a[..., : 2 * n].sigmoid_()
    a[..., 2 * n : 3 * n].tanh_()
    a[..., 3 * n :].sigmoid_()
    return a.chunk(4, dim=-1)


def _gru(cell: GruStep, rows: Tensor, past: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    h = cell.hidden
    gx, gh = linear(rows, cell.w_ih, cell.b_ih), linear(past, cell.w_hh, cell.b_hh)
    rz = gx[:, : 2 * h].add_(gh[:, : 2 * h]).sigmoid_()
    q = gh[:, 2 * h :]
    n = gx[:, 2 * h :].addcmul_(rz[:, :h], q).tanh_()
    return rz[:, :h], rz[:, h:], n, q


def resolution(dtype: torch.dtype, device: torch.device) -> float:
    """The spacing of numbers around 1 in a module's arithmetic; coarser where torch may round products of float32."""
    if dtype == torch.float32:
        reduced = torch.get_float32_matmul_precision()
        if reduced == "medium":
            return 2.0**-7
        if reduced == "high" or (device.type == "cuda" and torch.backends.cudnn.allow_tf32):
            return 2.0**-10
    return float(torch.finfo(dtype).eps)
