"""Models that are exported, scripted and traced: recurrent layers, a loop by hand, attention."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

STEPS, WIDTH, TOKENS = 9, 3, 11
LAYERS: dict[str, Any] = {
    "lstm": lambda: nn.LSTM(WIDTH, 5, 2, batch_first=True),
    "gru": lambda: nn.GRU(WIDTH, 5, batch_first=True, bidirectional=True),
    "tanh": lambda: nn.RNN(WIDTH, 5, batch_first=True, bias=False),
    "relu": lambda: nn.RNN(WIDTH, 5, batch_first=True, nonlinearity="relu"),
    "projected": lambda: nn.LSTM(WIDTH, 6, proj_size=2, batch_first=True),
}


class Tagger(nn.Module):
    """A recurrent layer and a linear one."""

    def __init__(self, layer: str) -> None:
        super().__init__()
        self.rnn = LAYERS[layer]()
        out = (getattr(self.rnn, "proj_size", 0) or self.rnn.hidden_size) * (2 if self.rnn.bidirectional else 1)
        self.head = nn.Linear(out, 4)

    def forward(self, x: Tensor) -> Tensor:
        """(b, t, i) → (b, t, 4)."""
        return self.head(self.rnn(x)[0])  # type: ignore[no-any-return]


class ByHand(nn.Module):
    """A gated cell in a loop."""

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.inner, self.back = nn.Linear(WIDTH + 5, 5), nn.Linear(WIDTH, 5), nn.Linear(5, 5)

    def forward(self, x: Tensor) -> Tensor:
        """(b, t, i) → (b, t, 5)."""
        h, rows = x.new_zeros(x.shape[0], 5), []
        for t in range(x.shape[1]):
            z = torch.sigmoid(self.gate(torch.cat([x[:, t], h], -1)))
            c = torch.tanh(self.inner(x[:, t]) + self.back(h))
            h = z * h + (1 - z) * c
            rows.append(h)
        return torch.stack(rows, 1)


class Attends(nn.Module):
    """Attention by matrix products, and by torch's function."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.query, self.key = nn.Embedding(TOKENS, 8), nn.Linear(8, 8), nn.Linear(8, 8)
        self.head = nn.Linear(8, TOKENS)

    def forward(self, ids: Tensor) -> Tensor:
        """(b, t) → (b, t, v)."""
        x = self.table(ids)
        q, k = self.query(x), self.key(x)
        x = torch.softmax(q @ k.transpose(1, 2) / 8**0.5, -1) @ x
        x = nn.functional.scaled_dot_product_attention(q[:, None], k[:, None], x[:, None], is_causal=True)[:, 0]
        return self.head(x)  # type: ignore[no-any-return]


def numbers(dtype: torch.dtype = torch.float32) -> Tensor:
    """(1, t, i)"""
    return torch.randn(1, STEPS, WIDTH, generator=torch.Generator().manual_seed(2)).to(dtype)


def ids() -> Tensor:
    """(1, t)"""
    return torch.randint(TOKENS, (1, STEPS), generator=torch.Generator().manual_seed(2))


def made(model: nn.Module, seed: int = 1) -> nn.Module:
    """A model with weights that do not vanish, in evaluation mode."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for value in model.parameters():
            value.copy_(torch.randn(value.shape, generator=generator) * 0.5)
    return model.eval()


def exported(model: nn.Module, x: Tensor, path: Path, **more: Any) -> Path:
    """The .pt2 of a model."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.export.save(torch.export.export(model, (x,), **more), path)
    return path


def scripted(model: nn.Module, path: Path, x: Tensor | None = None) -> Path:
    """The TorchScript archive of a model: scripted, or traced on x."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.save(torch.jit.script(model) if x is None else torch.jit.trace(model, x), path)
    return path
