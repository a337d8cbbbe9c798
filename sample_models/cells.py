"""Recurrent cells written by hand, one step a call, as their equations stand in textbooks.

Each is called `h = cell(x_t, h)`, or `h, c = cell(x_t, (h, c))`, on a batch: x_t (b, i), states (b, h). `Unrolled` and
`UnrolledWithMemory` are the loops over time; they are called like nn.RNN(batch_first=True).
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn


def _identity(x: Tensor) -> Tensor:
    """φ of the linear network."""
    return x


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "identity": _identity,
    "tanh": torch.tanh,
    "relu": torch.relu,
    "hardtanh": nn.functional.hardtanh,
    "logistic": torch.sigmoid,
    "softplus": nn.functional.softplus,
}
"""φ of the plain network, by name."""


class ElmanCell(nn.Module):
    """h_t = φ(U x_t + W h_{t−1} + b) with a chosen φ (Elman 1990, there with the logistic function).

    Raises ValueError for an activation that is not among ACTIVATIONS. W starts orthogonal times `gain`.
    """

    def __init__(self, inputs: int, hidden: int, activation: str = "tanh", gain: float = 1.0) -> None:
        super().__init__()
        if activation not in ACTIVATIONS:
            raise ValueError(f"There is no activation {activation!r}; there are {', '.join(ACTIVATIONS)}.")
        self.hidden_size = self.state_size = hidden
        self.activation = ACTIVATIONS[activation]
        self.from_input = nn.Linear(inputs, hidden)
        self.from_state = nn.Linear(hidden, hidden, bias=False)
        nn.init.orthogonal_(self.from_state.weight, gain)

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        """The next state."""
        return self.activation(self.from_input(x) + self.from_state(h))


class SkipThroughTime(nn.Module):
    """h_t = tanh(U x_t + W h_{t−1} + S h_{t−s} + b): a second path through time that jumps over s − 1 steps.

    The state that is handed on is the augmented one, (h_{t−1}, h_{t−2}, …, h_{t−s}) side by side, (b, s · h): with it
    the recurrence looks one step back, and its Jacobian is that of the whole. Reference: Lin et al. (1996), NARX.
    """

    def __init__(self, inputs: int, hidden: int, skip: int) -> None:
        super().__init__()
        self.hidden_size, self.state_size = hidden, skip * hidden
        self.from_input = nn.Linear(inputs, hidden)
        self.from_state = nn.Linear(hidden, hidden, bias=False)
        self.from_skipped = nn.Linear(hidden, hidden, bias=False)
        for layer in (self.from_state, self.from_skipped):
            nn.init.orthogonal_(layer.weight, 0.5)

    def forward(self, x: Tensor, states: Tensor) -> Tensor:
        """The states of the last s steps, the new one first."""
        previous, skipped = states[:, : self.hidden_size], states[:, -self.hidden_size :]
        h = torch.tanh(self.from_input(x) + self.from_state(previous) + self.from_skipped(skipped))
        return torch.cat((h, states[:, : -self.hidden_size]), dim=1)


class SimplifiedGateCell(nn.Module):
    """One gate, 0 keeps the state and 1 updates it: h_t = (1 − u) ⊙ h_{t−1} + u ⊙ h̃, h̃ = tanh(W [x_t; h_{t−1}] + b)."""

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.hidden_size = self.state_size = hidden
        self.update = nn.Linear(inputs + hidden, hidden)
        self.candidate = nn.Linear(inputs + hidden, hidden)

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        """The next state."""
        both = torch.cat((x, h), dim=1)
        update = torch.sigmoid(self.update(both))
        candidate = torch.tanh(self.candidate(both))
        return (1 - update) * h + update * candidate


class HighwayCell(nn.Module):
    """Highway connection through time: h_t = (1 − t) ⊙ h̃ + t ⊙ h_{t−1}; the carry gate t = 1 keeps the state.

    The carry gate's bias starts at 1, so that the state is carried at first (Srivastava, Greff & Schmidhuber 2015).
    """

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.hidden_size = self.state_size = hidden
        self.carry = nn.Linear(inputs + hidden, hidden)
        self.candidate = nn.Linear(inputs + hidden, hidden)
        nn.init.ones_(self.carry.bias)

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        """The next state."""
        both = torch.cat((x, h), dim=1)
        carry = torch.sigmoid(self.carry(both))
        candidate = torch.tanh(self.candidate(both))
        return (1 - carry) * candidate + carry * h


class TextbookGruCell(nn.Module):
    """GRU with the reset inside the product: h̃ = tanh(x W + (r ⊙ h) U + b), h' = z ⊙ h + (1 − z) ⊙ h̃.

    nn.GRUCell computes r ⊙ (h U + b) instead: the two have other states from equal weights.
    Reference: Cho et al. (2014).
    """

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.hidden_size = self.state_size = hidden
        self.reset = nn.Linear(inputs + hidden, hidden)
        self.update = nn.Linear(inputs + hidden, hidden)
        self.candidate = nn.Linear(inputs + hidden, hidden)

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        """The next state."""
        both = torch.cat((x, h), dim=1)
        r = torch.sigmoid(self.reset(both))
        z = torch.sigmoid(self.update(both))
        candidate = torch.tanh(self.candidate(torch.cat((x, r * h), dim=1)))
        return z * h + (1 - z) * candidate


class MixCell(nn.Module):
    """First step of the ladder to the LSTM: c_t = f ⊙ c_{t−1} + (1 − f) ⊙ c̃, a convex mix, and h_t = tanh(c_t).

    The forget gate's bias starts at 1, here and in the next two, so that the cell remembers at first.
    """

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.hidden_size = hidden
        self.forget = nn.Linear(inputs + hidden, hidden)
        self.candidate = nn.Linear(inputs + hidden, hidden)
        nn.init.ones_(self.forget.bias)

    def forward(self, x: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """The next (h, c)."""
        h, c = state
        both = torch.cat((x, h), dim=1)
        forget_gate = torch.sigmoid(self.forget(both))
        candidate = torch.tanh(self.candidate(both))
        c = forget_gate * c + (1 - forget_gate) * candidate
        return torch.tanh(c), c


class TwoGatesCell(MixCell):
    """Second step of the ladder: separate input and forget gates, c_t = f ⊙ c_{t−1} + i ⊙ c̃, and h_t = tanh(c_t)."""

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__(inputs, hidden)
        self.input = nn.Linear(inputs + hidden, hidden)

    def forward(self, x: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """The next (h, c)."""
        h, c = state
        both = torch.cat((x, h), dim=1)
        input_gate = torch.sigmoid(self.input(both))
        forget_gate = torch.sigmoid(self.forget(both))
        candidate = torch.tanh(self.candidate(both))
        c = forget_gate * c + input_gate * candidate
        return torch.tanh(c), c


class TextbookLstmCell(TwoGatesCell):
    """The whole LSTM: as before, and an output gate decides what is shown, h_t = o ⊙ tanh(c_t).

    Reference: Hochreiter & Schmidhuber (1997), with the forget gate of Gers, Schmidhuber & Cummins (2000).
    """

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__(inputs, hidden)
        self.output = nn.Linear(inputs + hidden, hidden)

    def forward(self, x: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """The next (h, c)."""
        h, c = state
        both = torch.cat((x, h), dim=1)
        input_gate = torch.sigmoid(self.input(both))
        forget_gate = torch.sigmoid(self.forget(both))
        output_gate = torch.sigmoid(self.output(both))
        candidate = torch.tanh(self.candidate(both))
        c = forget_gate * c + input_gate * candidate
        return output_gate * torch.tanh(c), c


Cell = ElmanCell | SkipThroughTime | SimplifiedGateCell | HighwayCell | TextbookGruCell
"""A cell that hands on one state."""


class Unrolled(nn.Module):
    """A cell with one state in a loop over time: x (b, t, i) → (states (b, t, h), last state); it starts at zero."""

    def __init__(self, cell: Cell) -> None:
        super().__init__()
        self.cell = cell
        self.hidden_size = cell.hidden_size

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """States of every step, and what would be handed on."""
        h = x.new_zeros(x.shape[0], self.cell.state_size)
        states = []
        for t in range(x.shape[1]):
            h = self.cell(x[:, t], h)
            states.append(h[:, : self.hidden_size])
        return torch.stack(states, dim=1), h


class UnrolledWithMemory(nn.Module):
    """A cell with the states (h, c) in a loop over time: x (b, t, i) → (h of every step (b, t, h), last (h, c))."""

    def __init__(self, cell: MixCell) -> None:
        super().__init__()
        self.cell = cell
        self.hidden_size = cell.hidden_size

    def forward(self, x: Tensor) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """h of every step, and what would be handed on."""
        h = x.new_zeros(x.shape[0], self.hidden_size)
        c = torch.zeros_like(h)
        states = []
        for t in range(x.shape[1]):
            h, c = self.cell(x[:, t], (h, c))
            states.append(h)
        return torch.stack(states, dim=1), (h, c)
