"""What stands around a recurrence: an embedding before it, a read-out after it, at every step or at the end."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from sample_models.cells import Unrolled, UnrolledWithMemory

Recurrent = nn.RNNBase | Unrolled | UnrolledWithMemory
"""Anything called like nn.RNN(batch_first=True)."""


class Transducer(nn.Module):
    """Many to many: x (b, t, i) → (b, t, o), one answer a step."""

    def __init__(self, rnn: Recurrent, outputs: int) -> None:
        super().__init__()
        self.rnn = rnn
        self.head = nn.Linear(rnn.hidden_size, outputs)

    def forward(self, x: Tensor) -> Tensor:
        """The read-out of every state."""
        states, _ = self.rnn(x)
        answers: Tensor = self.head(states)
        return answers


class TokenTransducer(nn.Module):
    """Many to many on tokens: embedding, a recurrence, a read-out: ids (b, t) → scores (b, t, o)."""

    def __init__(self, rnn: Recurrent, embedded: int, tokens: int, outputs: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(tokens, embedded)
        self.rnn = rnn
        self.head = nn.Linear(rnn.hidden_size, outputs)

    def forward(self, ids: Tensor) -> Tensor:
        """Scores at every step."""
        states, _ = self.rnn(self.embedding(ids))
        scores: Tensor = self.head(states)
        return scores


class Acceptor(nn.Module):
    """Many to one: x (b, t, i), right-padded → (b, 1, o), the read-out of the state after the last real step."""

    def __init__(self, rnn: Recurrent, outputs: int) -> None:
        super().__init__()
        self.rnn = rnn
        self.head = nn.Linear(rnn.hidden_size, outputs)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """One answer a sequence; what is padded is not seen."""
        states, _ = self.rnn(x)
        last = states[torch.arange(len(x), device=x.device), lengths.to(x.device) - 1]
        answer: Tensor = self.head(last)[:, None]
        return answer


def with_lengths(model: nn.Module, inputs: Tensor, lengths: Tensor) -> Tensor:
    """How a model is called that must know where its sequences end."""
    answer: Tensor = model(inputs, lengths)
    return answer
