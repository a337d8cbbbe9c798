"""Small models of every kind that is recorded, as subjects: each is run on the CPU and on another device, and compared."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

WIDTH, UNITS = 3, 4
Move = Callable[[nn.Module], nn.Module]


class Fused(nn.Module):
    """Embedded tokens through two layers in both directions, with dropout between them."""

    def __init__(self, kind: type[nn.RNNBase], *, drop: float = 0.0, both: bool = False) -> None:
        super().__init__()
        self.embedding = nn.Embedding(7, WIDTH)
        self.rnn = kind(WIDTH, UNITS, 2, batch_first=True, dropout=drop, bidirectional=both)
        self.read = nn.Linear(UNITS * (2 if both else 1), 7)

    def forward(self, ids: Tensor) -> Tensor:
        made: Tensor = self.read(self.rnn(self.embedding(ids))[0])
        return made


class Written(nn.Module):
    """A gated cell of its own, with dropout on its candidate."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(7, WIDTH)
        self.gate, self.back = nn.Linear(WIDTH, UNITS), nn.Linear(UNITS, UNITS)
        self.new, self.old = nn.Linear(WIDTH, UNITS), nn.Parameter(torch.randn(UNITS, UNITS) / 3)
        self.read = nn.Linear(UNITS, 7)
        self.dropout = nn.Dropout(0.2)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embedding(ids)
        h, made = x.new_zeros(len(x), UNITS), []
        for t in range(x.shape[1]):
            z = torch.sigmoid(self.gate(x[:, t]) + self.back(h))
            candidate = self.dropout(torch.tanh(self.new(x[:, t]) + h @ self.old))
            h = z * h + (1 - z) * candidate
            made.append(h)
        return self.read(torch.stack(made, 1))


class Cells(nn.Module):
    """torch's cell in a loop, with its memory."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.cell, self.read = nn.Embedding(7, WIDTH), nn.LSTMCell(WIDTH, UNITS), nn.Linear(UNITS, 7)

    def forward(self, ids: Tensor) -> Tensor:
        x, made = self.embedding(ids), []
        state = (x.new_zeros(len(x), UNITS), x.new_zeros(len(x), UNITS))
        for t in range(x.shape[1]):
            state = self.cell(x[:, t], state)
            made.append(state[0])
        return self.read(torch.stack(made, 1))


class Attending(nn.Module):
    """Two layers of causal attention."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(7, 8)
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.0)
        self.encoder, self.read = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.Linear(8, 7)

    def forward(self, ids: Tensor) -> Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(ids.shape[1], device=ids.device)
        made: Tensor = self.read(self.encoder(self.embedding(ids), mask=mask, is_causal=True))
        return made


class Scanned(nn.Module):
    """A selective scan by doubling, and a linear loop over complex states."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.step, self.read = nn.Embedding(7, WIDTH), nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 7)
        self.turn = nn.Parameter(torch.linspace(0.1, 1.0, WIDTH))

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embedding(ids)
        decay = torch.sigmoid(self.step(x))
        h, shift = (1 - decay) * x, 1
        while shift < x.shape[1]:
            h = torch.cat([h[:, :shift], h[:, shift:] + decay[:, shift:] * h[:, :-shift]], 1)
            decay = torch.cat([decay[:, :shift], decay[:, shift:] * decay[:, :-shift]], 1)
            shift *= 2
        turn, state, made = torch.polar(torch.full_like(self.turn, 0.8), self.turn), torch.zeros_like(x[:, 0]) * 1j, []
        for t in range(x.shape[1]):
            state = turn * state + h[:, t]
            made.append(state.real)
        scores: Tensor = self.read(torch.stack(made, 1))
        return scores


class Spread(nn.Module):
    """A recurrence whose two parts lie on two devices, and a fused layer on each."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(7, WIDTH)
        self.low, self.high = nn.Linear(WIDTH + UNITS, UNITS), nn.Linear(UNITS + UNITS, UNITS)
        self.first, self.second = nn.GRU(UNITS, UNITS, batch_first=True), nn.GRU(UNITS, UNITS, batch_first=True)
        self.read = nn.Linear(UNITS, 7)

    def forward(self, ids: Tensor) -> Tensor:
        x, made = self.embedding(ids), []
        there = self.high.weight.device
        a, b = x.new_zeros(len(x), UNITS), x.new_zeros(len(x), UNITS).to(there)
        for t in range(x.shape[1]):
            a = torch.tanh(self.low(torch.cat((x[:, t], a), 1)))
            b = torch.tanh(self.high(torch.cat((a.to(there), b), 1)))
            made.append(b)
        below = self.first(torch.stack(made, 1).to(x.device))[0]
        above: Tensor = self.second(below.to(there))[0]
        made_of_it: Tensor = self.read(above)
        return made_of_it


def loss(scores: Tensor, batch: Any) -> Tensor:
    """−ln p(next token), NaN at the last step."""
    wanted = batch.inputs[:, 1:].to(scores.device)
    found = nn.functional.cross_entropy(scores[:, :-1].transpose(1, 2), wanted, reduction="none")
    return nn.functional.pad(found, (0, 1), value=torch.nan)


def spread_over(first: str, second: str) -> Move:
    """Puts what `Spread` has on the second device there."""

    def move(model: nn.Module) -> nn.Module:
        assert isinstance(model, Spread)
        model.to(first)
        for part in (model.high, model.second, model.read):
            part.to(second)
        return model

    return move


CASES: dict[str, Callable[[], nn.Module]] = {
    "lstm": lambda: Fused(nn.LSTM).eval(),
    "gru in both directions": lambda: Fused(nn.GRU, both=True).eval(),
    "lstm with dropout": lambda: Fused(nn.LSTM, drop=0.4).train(),
    "hand-written": lambda: Written().eval(),
    "hand-written with dropout": lambda: Written().train(),
    "cells": lambda: Cells().eval(),
    "attention": lambda: Attending().eval(),
    "scans": lambda: Scanned().eval(),
}


def subject(make: Callable[[], nn.Module], move: Move = lambda model: model) -> SimpleNamespace:
    """The case as a subject, its model moved."""
    torch.manual_seed(5)
    return SimpleNamespace(
        model=move(make()), name="case", kind="tokens", vocabulary="abcdefg", loss=loss, next_token=True
    )


TEXTS = ["abcabcabb", "cbacbabac"]
"""Three letters: each that occurs is an input at which fixed points are sought, which takes longest of all."""
EVERY = (
    "bptt", "truncation", "influence", "fixed_points", "gradient/vectors", "gradient/state_derivatives",
    "depth/parameters", "masks",
)  # fmt: skip
