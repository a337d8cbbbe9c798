"""Deep feed-forward layers of equal width, S8: depth stands where time stands elsewhere, h_n from h_{n−1}.

A whole image is one step of input, (b, 1, 64), so that depth is the only way a gradient has to go. More steps are more
images, each for itself.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from sample_models.base import Sample, seeded
from sample_models.digits import NAMES, digits_sample

WIDTH, DEPTH = 16, 12


class PlainLayer(nn.Module):
    """h_n = tanh(W h_{n−1} + b)."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)

    def forward(self, h: Tensor) -> Tensor:
        """The next layer's state."""
        return torch.tanh(self.linear(h))


class SkipLayer(PlainLayer):
    """Additive skip connection: h_n = ½ tanh(W h_{n−1} + b) + ½ h_{n−1}."""

    def forward(self, h: Tensor) -> Tensor:
        """The next layer's state."""
        candidate = torch.tanh(self.linear(h))
        return 0.5 * candidate + 0.5 * h


class DynamicSkipLayer(PlainLayer):
    """Dynamic skip connection: h_n = (1 − t) tanh(W h_{n−1} + b) + t h_{n−1}, with one t = σ(v · h_{n−1} + a)."""

    def __init__(self, gates: int = 1) -> None:
        super().__init__()
        self.carry = nn.Linear(WIDTH, gates)
        nn.init.ones_(self.carry.bias)

    def forward(self, h: Tensor) -> Tensor:
        """The next layer's state."""
        carry = torch.sigmoid(self.carry(h))
        candidate = torch.tanh(self.linear(h))
        return (1 - carry) * candidate + carry * h


class HardSkipLayer(DynamicSkipLayer):
    """The same with a hard gate, t = 1 where σ(v · h_{n−1} + a) > ½ and else 0: a layer is used or passed by.

    The step has no slope, so the gate learns by that of σ (straight-through: Bengio, Léonard & Courville 2013).
    """

    def __init__(self) -> None:
        super().__init__()
        nn.init.zeros_(self.carry.bias)

    def forward(self, h: Tensor) -> Tensor:
        """The next layer's state."""
        soft = torch.sigmoid(self.carry(h))
        carry = (soft > 0.5).to(soft.dtype) + soft - soft.detach()
        candidate = torch.tanh(self.linear(h))
        return (1 - carry) * candidate + carry * h


class HighwayLayer(DynamicSkipLayer):
    """Highway layer: the same with one t a unit, t = σ(V h_{n−1} + a) (Srivastava, Greff & Schmidhuber 2015)."""

    def __init__(self) -> None:
        super().__init__(gates=WIDTH)


class DeepNet(nn.Module):
    """Images (b, t, 64) → scores (b, t, 10): into the width, DEPTH layers, out of it; every step for itself."""

    def __init__(self, layer: Callable[[], nn.Module]) -> None:
        super().__init__()
        self.read_in = nn.Linear(64, WIDTH)
        self.layers = nn.ModuleList(layer() for _ in range(DEPTH))
        self.head = nn.Linear(WIDTH, len(NAMES))

    def forward(self, x: Tensor) -> Tensor:
        """Scores of the ten digits."""
        h = torch.tanh(self.read_in(x))
        for layer in self.layers:
            h = layer(h)
        scores: Tensor = self.head(h)
        return scores


def deep_sample(name: str, layer: Callable[[], nn.Module]) -> Sample:
    """A deep net of one kind of layer as a Sample."""
    with seeded():
        model = DeepNet(layer)
    return digits_sample(name, model, (1, 64), rate=3e-3, steps=3200)
