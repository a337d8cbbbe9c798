"""Small models with a fault of structure planted, one fault each, and the same without it."""

from __future__ import annotations

import torch
from torch import Tensor, nn

V, D = 11, 8


class Attending(nn.Module):
    """One layer of self-attention over embedded ids, with learned positions."""

    def __init__(self, mask: float = -torch.inf, causal: bool = True, positions: bool = True) -> None:
        super().__init__()
        self.embed, self.places = nn.Embedding(V, D), nn.Embedding(32, D)
        self.q, self.k, self.v, self.head = (nn.Linear(D, n) for n in (D, D, D, V))
        self.mask, self.causal, self.positions = mask, causal, positions

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embed(ids)
        if self.positions:
            x = x + self.places(torch.arange(ids.shape[1]))
        scores = self.q(x) @ self.k(x).transpose(1, 2) / D**0.5
        if self.causal:
            later = torch.ones(ids.shape[1], ids.shape[1]).triu(1).bool()
            scores = scores.masked_fill(later, self.mask)
        found: Tensor = self.head(x + scores.softmax(-1) @ self.v(x))
        return found


class Recurrent(nn.Module):
    """A GRU over embedded ids; `state` may be handed on, kept, or ignored."""

    def __init__(
        self, batch_first: bool = True, both: bool = False, keeps: bool = False, ignores: bool = False
    ) -> None:
        super().__init__()
        self.embed = nn.Embedding(V, D)
        self.rnn = nn.GRU(D, D, batch_first=batch_first, bidirectional=both)
        self.head = nn.Linear(2 * D if both else D, V)
        self.keeps, self.ignores, self.kept = keeps, ignores, None

    def forward(self, ids: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
        state = None if self.ignores else state
        out, state = self.rnn(self.embed(ids), self.kept if self.keeps else state)
        self.kept = state if self.keeps else None
        return self.head(out), state


class MeanOfBatch(nn.Module):
    """Subtracts the mean over the batch."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.centred, self.head = nn.Embedding(V, D), Centred(), nn.Linear(D, V)

    def forward(self, ids: Tensor) -> Tensor:
        found: Tensor = self.head(self.centred(self.embed(ids).cumsum(1)))
        return found


class Centred(nn.Module):
    """x minus its mean over the batch."""

    def forward(self, x: Tensor) -> Tensor:
        return x - x.mean(0, keepdim=True)


class Query(nn.Module):
    """A decoder's attention with the score W[s; h], with tanh or without."""

    def __init__(self, tanh: bool) -> None:
        super().__init__()
        self.embed, self.rnn, self.cell = nn.Embedding(V, D), nn.GRU(D, D, batch_first=True), nn.GRUCell(D, D)
        self.of_query, self.of_key, self.score = nn.Linear(D, D), nn.Linear(D, D), nn.Linear(D, 1, bias=False)
        self.head, self.tanh = nn.Linear(D, V), tanh

    def forward(self, ids: Tensor) -> Tensor:
        keys, _ = self.rnn(self.embed(ids))
        s, outputs = keys[:, -1], []
        for _ in range(ids.shape[1]):
            both = self.of_query(s)[:, None] + self.of_key(keys)
            weights = self.score(both.tanh() if self.tanh else both).squeeze(-1).softmax(-1)
            s = self.cell((weights[..., None] * keys).sum(1), s)
            outputs.append(self.head(s))
        return torch.stack(outputs, 1)


class Remembering(nn.Module):
    """Causal attention with positions, which hands its keys and values on under a name of its own."""

    def __init__(self, late: int = 0) -> None:
        super().__init__()
        self.embed, self.places = nn.Embedding(V, D), nn.Embedding(32, D)
        self.q, self.k, self.v, self.head = (nn.Linear(D, n) for n in (D, D, D, V))
        self.late = late

    def forward(self, ids: Tensor, past: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        begin = 0 if past is None else past[0].shape[1] - self.late
        x = self.embed(ids) + self.places(torch.arange(ids.shape[1]) + begin)
        k, v = self.k(x), self.v(x)
        if past is not None:
            k, v = torch.cat([past[0], k], 1), torch.cat([past[1], v], 1)
        steps, keys = x.shape[1], k.shape[1]
        may = torch.ones(steps, keys).tril(keys - steps).bool()
        scores = (self.q(x) @ k.transpose(1, 2) / D**0.5).masked_fill(~may, -torch.inf)
        return self.head(x + scores.softmax(-1) @ v), (k, v)


class Normalised(nn.Module):
    """A GRU behind batch normalisation over features, which stand before the steps; `over` normalises them."""

    def __init__(self, over: type[nn.Module] = nn.BatchNorm1d) -> None:
        super().__init__()
        self.embed, self.norm, self.head = nn.Embedding(V, D), over(D), nn.Linear(D, V)
        self.rnn = nn.GRU(D, D, batch_first=True)

    def forward(self, ids: Tensor) -> Tensor:
        found: Tensor = self.head(self.rnn(self.norm(self.embed(ids).mT).mT)[0])
        return found


class Forgetting(nn.Module):
    """A linear loop with a constant decay, which forgets its first state within a sequence; `keeps` it to the next."""

    def __init__(self, keeps: bool = False) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(V, D), nn.Linear(D, V)
        self.decay = nn.Parameter(torch.full((D,), 0.1))
        self.keeps, self.kept = keeps, torch.zeros(())

    def forward(self, ids: Tensor) -> Tensor:
        x, found = self.embed(ids), []
        h = self.kept if self.keeps else torch.zeros_like(x[:, 0])
        for t in range(ids.shape[1]):
            h = self.decay * h + x[:, t]
            found.append(h)
        self.kept = h.detach()
        return self.head(torch.stack(found, 1))  # type: ignore[no-any-return]
