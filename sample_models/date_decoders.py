"""Recurrent encoder–decoders for dates, with a fixed context and with attention; one file beside this one for each.

All decoders are loops that say one symbol a step, fed with the symbol before: the right one (teacher forcing, Williams
& Zipser 1989), and the likeliest one by their own scores where none is given. What is fixed or attended to is a
`Source`: the encoder's states, where they are real, and its last state.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

import torch
from torch import Tensor, nn

from sample_models import dates
from sample_models.base import Batch, Sample, Training
from sample_models.readers import with_lengths
from sample_models.tasks import IGNORED

EMBEDDED = 12
HIDDEN, STEPS = 40, 1600
"""Units of a decoder, and of an encoder's two directions together; steps of training."""


Read = TypeVar("Read")
"""What a decoder is given: a Source, or several."""


@dataclass(slots=True)
class Source:
    """What an encoder gives: states (b, t, k), (b, t) true at real steps, the last state (b, k)."""

    states: Tensor
    real: Tensor
    last: Tensor

    def repeated(self, many: int) -> Source:
        """One source for `many` answers that are tried on it."""
        return Source(*(one.expand(many, *one.shape[1:]) for one in (self.states, self.real, self.last)))


class Encoder(nn.Module):
    """ids (b, t), right-padded → a Source of `hidden` numbers a step, from one direction or half from each."""

    def __init__(self, hidden: int = HIDDEN, both: bool = True) -> None:
        super().__init__()
        self.embedding = nn.Embedding(len(dates.LETTERS), EMBEDDED)
        self.rnn = nn.GRU(EMBEDDED, hidden // 2 if both else hidden, batch_first=True, bidirectional=both)

    def forward(self, ids: Tensor, lengths: Tensor) -> Source:
        """Padding is not read."""
        given = nn.utils.rnn.pack_padded_sequence(self.embedding(ids), lengths, batch_first=True, enforce_sorted=False)
        packed, last = self.rnn(given)
        states, _ = nn.utils.rnn.pad_packed_sequence(packed, batch_first=True, total_length=ids.shape[1])
        real = torch.arange(ids.shape[1], device=ids.device)[None] < lengths.to(ids.device)[:, None]
        return Source(states, real, torch.cat(tuple(last), dim=-1))


class Decoder(nn.Module, Generic[Read]):
    """What decoders share: the loop. `begin` gives the first state, `step` the scores and state of each step.

    `read`: numbers that enter a step beside the symbol; `heard`: numbers from which scores are made.
    """

    def __init__(self, read: int, hidden: int = HIDDEN, heard: int = HIDDEN) -> None:
        super().__init__()
        self.embedding = nn.Embedding(len(dates.SAID), EMBEDDED)
        self.cell = nn.GRUCell(EMBEDDED + read, hidden)
        self.head = nn.Linear(heard, len(dates.SAID))

    def forward(self, source: Read, said: Tensor) -> Tensor:
        """Scores (b, l, 12), the symbols said (b, l) fed one step late; its own likeliest ones where IGNORED."""
        state = self.begin(source)
        symbol = said.new_full((len(said),), dates.BORDER)
        scores = []
        for t in range(said.shape[1]):
            found, state = self.step(source, self.embedding(symbol), state)
            scores.append(found)
            symbol = said[:, t]
            if bool((symbol == IGNORED).any()):
                symbol = torch.where(symbol == IGNORED, found.argmax(-1), symbol)
        return torch.stack(scores, dim=1)

    def begin(self, source: Read) -> Tensor:
        """The state (b, h) before the first step."""
        raise NotImplementedError

    def step(self, source: Read, symbol: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Scores (b, 12) and the next state, from the symbol before (b, e) and the state before."""
        raise NotImplementedError


class FromLast(Decoder[Source]):
    """A decoder that begins with the encoder's last state."""

    def begin(self, source: Source) -> Tensor:
        """s_0."""
        return source.last


class FixedState(FromLast):
    """s_t = GRU(y_{t-1}, s_{t-1}), s_0 the encoder's last state; nothing else is known of the source."""

    def __init__(self, hidden: int) -> None:
        super().__init__(0, hidden, hidden)

    def step(self, source: Source, symbol: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """One step without a look at the source."""
        state = self.cell(symbol, state)
        return self.head(state), state


class FixedEveryStep(Decoder[Source]):
    """s_t = GRU([y_{t-1}; c], s_{t-1}), s_0 = 0: the encoder's last state c enters at every step instead."""

    def __init__(self) -> None:
        super().__init__(HIDDEN)

    def begin(self, source: Source) -> Tensor:
        """Zeros."""
        return torch.zeros_like(source.last)

    def step(self, source: Source, symbol: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """One step, the same context beside each symbol."""
        state = self.cell(torch.cat((symbol, source.last), dim=-1), state)
        return self.head(state), state


class Attention(nn.Module):
    """c = Σ_i α_i h_i with α = softmax of a score of the query s and each state h_i; padding has no weight."""

    def forward(self, query: Tensor, source: Source) -> Tensor:
        """Contexts (b, k) of queries (b, h)."""
        scores = self.scores(query, source.states).masked_fill(~source.real, -torch.inf)
        weights = torch.softmax(scores, dim=-1)
        return torch.bmm(weights[:, None], source.states)[:, 0]

    def scores(self, query: Tensor, states: Tensor) -> Tensor:
        """(b, t) of queries (b, h) and states (b, t, k)."""
        raise NotImplementedError


class Dot(Attention):
    """h·s (Luong, Pham & Manning 2015)."""

    def scores(self, query: Tensor, states: Tensor) -> Tensor:
        """Products over all units."""
        return torch.bmm(states, query[:, :, None])[..., 0]


class Bilinear(Attention):
    """sᵀWh (Luong, Pham & Manning 2015)."""

    def __init__(self) -> None:
        super().__init__()
        self.matrix = nn.Linear(HIDDEN, HIDDEN, bias=False)

    def scores(self, query: Tensor, states: Tensor) -> Tensor:
        """Products with the states after a matrix."""
        return torch.bmm(self.matrix(states), query[:, :, None])[..., 0]


class Additive(Attention):
    """vᵀ tanh(W[s; h]) (Bahdanau, Cho & Bengio 2015)."""

    def __init__(self, width: int = HIDDEN) -> None:
        super().__init__()
        self.matrix = nn.Linear(2 * width, width // 2)
        self.vector = nn.Linear(width // 2, 1, bias=False)

    def scores(self, query: Tensor, states: Tensor) -> Tensor:
        """A small network on each pair."""
        pairs = torch.cat((query[:, None].expand(-1, states.shape[1], -1), states), dim=-1)
        found: Tensor = self.vector(torch.tanh(self.matrix(pairs)))
        return found[..., 0]


class LinearScore(Attention):
    """W[s; h] = w_s·s + w_h·h: the first summand is the same for every state, so it cancels in the softmax."""

    def __init__(self) -> None:
        super().__init__()
        self.matrix = nn.Linear(2 * HIDDEN, 1, bias=False)

    def scores(self, query: Tensor, states: Tensor) -> Tensor:
        """A linear map of each pair."""
        pairs = torch.cat((query[:, None].expand(-1, states.shape[1], -1), states), dim=-1)
        found: Tensor = self.matrix(pairs)
        return found[..., 0]


class QueryBefore(FromLast):
    """c_t from s_{t-1}, s_t = GRU([y_{t-1}; c_t], s_{t-1}), scores of [s_t; c_t] (Bahdanau, Cho & Bengio 2015)."""

    def __init__(self, attention: Attention) -> None:
        super().__init__(HIDDEN, heard=2 * HIDDEN)
        self.attention = attention

    def step(self, source: Source, symbol: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Look, then move."""
        context = self.attention(state, source)
        state = self.cell(torch.cat((symbol, context), dim=-1), state)
        return self.head(torch.cat((state, context), dim=-1)), state


class QueryAfter(FromLast):
    """s_t = GRU(y_{t-1}, s_{t-1}), c_t from s_t, scores of [s_t; c_t] (Luong, Pham & Manning 2015)."""

    def __init__(self, attention: Attention) -> None:
        super().__init__(0, heard=2 * HIDDEN)
        self.attention = attention

    def step(self, source: Source, symbol: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Move, then look."""
        state = self.cell(symbol, state)
        context = self.attention(state, source)
        return self.head(torch.cat((state, context), dim=-1)), state


class DateModel(nn.Module):
    """An encoder and a decoder: ids (b, t) → scores (b, 11, 12) of the date in ISO's form."""

    def __init__(self, encoder: Encoder, decoder: Decoder[Source]) -> None:
        super().__init__()
        self.encoder, self.decoder = encoder, decoder

    def forward(self, ids: Tensor, lengths: Tensor) -> Tensor:
        """Scores of the symbols of the answer, each after the right ones before it, if the text is a date."""
        scores: Tensor = self.decoder(self.encoder(ids, lengths), dates.wanted(ids, lengths))
        return scores


def next_logits(model: nn.Module, batch: Batch, prefixes: Tensor) -> Tensor:
    """Scores (n, l + 1, 12) after each beginning of the answers (n, l) that are tried on one text."""
    assert isinstance(model, DateModel)
    source = model.encoder(batch.inputs, batch.lengths).repeated(len(prefixes))
    scores: Tensor = model.decoder(source, nn.functional.pad(prefixes, (0, 1), value=dates.BORDER))
    return scores


def date_sample(name: str, model: DateModel, *, steps: int = STEPS) -> Sample:
    """The model with what dates need."""
    return Sample(
        model=model, name=name, kind="tokens", vocabulary=dates.LETTERS, labels=dates.SAID, encode=dates.encode,
        forward=with_lengths, loss=dates.loss, answer=dates.answer, decoder="decoder", next_logits=next_logits,
        end_token=dates.BORDER, training=Training(dates.draw, rate=5e-3, steps=steps), examples=dates.EXAMPLES,
        data=dates.unseen,
    )  # fmt: skip
