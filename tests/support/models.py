"""Small models that many tests watch."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn


class OnlyOutput(nn.Module):
    """What a recurrent module gives at every step, without its last state."""

    def __init__(self, rnn: nn.Module) -> None:
        super().__init__()
        self.rnn = rnn

    def forward(self, x: Tensor) -> Tensor:
        """The outputs (b, t, h)."""
        out: Tensor = self.rnn(x)[0]
        return out


class GruByHand(nn.Module):
    """PyTorch's GRU as a module that is called once a step: two maps, three chunks each."""

    def __init__(self, i: int = 3, h: int = 4) -> None:
        super().__init__()
        self.w, self.u = nn.Linear(i, 3 * h), nn.Linear(h, 3 * h)

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        """The next state."""
        wr, wz, wn = self.w(x).chunk(3, -1)
        ur, uz, un = self.u(h).chunk(3, -1)
        r = torch.sigmoid(wr + ur)
        z = torch.sigmoid(wz + uz)
        n = torch.tanh(wn + r * un)
        return (1 - z) * n + z * h


class Squash(torch.autograd.Function):
    """tanh as a function of the user's own, which no function mode sees: steps are known through autograd's graph."""

    @staticmethod
    def forward(ctx: Any, a: Tensor) -> Tensor:
        """tanh a."""
        out = torch.tanh(a)
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        """Its derivative, from the result."""
        (out,) = ctx.saved_tensors
        return gradient * (1 - out * out)
