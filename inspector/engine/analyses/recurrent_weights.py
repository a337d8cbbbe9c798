"""The square matrices through which a recurrent layer feeds its state back to itself, one for each gate."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from inspector.engine.cells.base import Cell
from inspector.engine.cells.gru import GruStep
from inspector.engine.cells.lstm import LstmStep
from inspector.engine.cells.rnn import RnnStep
from inspector.engine.recurrent.traced.cells.replayed import ReplayStep

LSTM = (("input", "U of gate i"), ("forget", "U of gate f"), ("candidate", "U of g"), ("output", "U of gate o"))
GRU = (("reset", "U of gate r"), ("update", "U of gate z"), ("candidate", "U of n"))


@dataclass(frozen=True, slots=True)
class RecurrentWeight:
    """One matrix: `signal` for the channel's name, `symbol` for its title, the matrix (h, h), and γ = max |φ′|.

    `gain` is γ where the condition γσ₁(W) of Pascanu et al. (2013) speaks of the whole step (a plain RNN), else None.
    `step` is the one step that uses it, a layer of a stack; None where every step does.
    """

    signal: str
    symbol: str
    matrix: Tensor
    gain: float | None = None
    step: int | None = None


def recurrent_weights(cell: Cell) -> list[RecurrentWeight]:
    """The recurrent matrices, parametrised ones by their effective value; none where they are not known apart.

    Of a recorded step those that were seen to multiply its state (engine/recurrent/traced/program/state_matrices.py).
    An LSTM with a projection W_hr feeds back U_g W_hr, so those products are given.
    """
    if isinstance(cell, RnnStep):
        return [RecurrentWeight("hidden", "Wₕₕ", cell.w_hh, cell.activation.largest)]
    if isinstance(cell, GruStep):
        return [RecurrentWeight(*names, part) for names, part in zip(GRU, cell.w_hh.chunk(3), strict=True)]
    if isinstance(cell, LstmStep):
        parts = cell.w_hh.chunk(4)
        if cell.w_hr is None:
            return [RecurrentWeight(*names, part) for names, part in zip(LSTM, parts, strict=True)]
        return [
            RecurrentWeight(name, f"{symbol}, times Wₕᵣ", part @ cell.w_hr)
            for (name, symbol), part in zip(LSTM, parts, strict=True)
        ]
    if isinstance(cell, ReplayStep):
        return [RecurrentWeight(one.signal, one.symbol, one.matrix, one.gain, one.step) for one in cell.fed_back]
    return []
