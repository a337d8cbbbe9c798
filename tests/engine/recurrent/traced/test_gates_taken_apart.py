"""Several gates computed as one tensor and taken apart in the ways that torch has: every one is shown, by its name."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from watched import seen

D = torch.float64
IN, H, T = 3, 4, 6


class Gated(nn.Module):
    """h' = f h + i tanh(o h + 1), with (f, i, o) from one product; `order`: of the columns of that product."""

    names: tuple[str, ...] = ("f", "i", "o")

    def __init__(self) -> None:
        super().__init__()
        self.map = nn.Linear(IN + H, 3 * H)

    def gates(self, z: Tensor) -> tuple[Tensor, ...]:
        raise NotImplementedError

    def take(self, g: Tensor) -> Tensor:
        """(b, 3, h) of (b, 3 h), for the reference."""
        return g.view(-1, 3, H)

    def step(self, z: Tensor, h: Tensor) -> Tensor:
        f, i, o = self.gates(z)
        return f * h + i * torch.tanh(o * h + 1)

    def forward(self, x: Tensor) -> Tensor:
        h, out = x.new_zeros(len(x), H), []
        for row in x.unbind(1):
            h = self.step(self.map(torch.cat((row, h), -1)), h)
            out.append(h)
        return torch.stack(out, 1)


class IndexSelect(Gated):
    def gates(self, z: Tensor) -> tuple[Tensor, ...]:
        g, n = torch.sigmoid(z), torch.arange(H)
        f = g.index_select(1, n)
        i = g.index_select(1, n + H)
        o = torch.index_select(g, 1, n + 2 * H)
        return f, i, o


class ThirdWithoutAName(Gated):
    """Two have names; the third one is used where it is selected."""

    names = ("f", "i", "g.2")

    def step(self, z: Tensor, h: Tensor) -> Tensor:
        g = torch.sigmoid(z)
        f = g[:, :H]
        i = g.narrow(1, H, H)
        return f * h + i * torch.tanh(g.index_select(1, torch.arange(2 * H, 3 * H)) * h + 1)


class Gather(Gated):
    def gates(self, z: Tensor) -> tuple[Tensor, ...]:
        g, n = torch.sigmoid(z), torch.arange(H).expand(len(z), H)
        f = g.gather(1, n)
        i = torch.take_along_dim(g, n + H, 1)
        o = torch.gather(g, 1, n + 2 * H)
        return f, i, o


class Take(Gated):
    def gates(self, z: Tensor) -> tuple[Tensor, ...]:
        g, n = torch.sigmoid(z), torch.arange(H) + 3 * H * torch.arange(len(z))[:, None]
        f = torch.take(g, n)
        i = g.take(n + H)
        o = g.take(n + 2 * H)
        return f, i, o


class Advanced(Gated):
    def gates(self, z: Tensor) -> tuple[Tensor, ...]:
        g, n = torch.sigmoid(z), torch.arange(H)
        f = g[:, n]
        i = g[:, (n + H).tolist()]
        o = g[..., n + 2 * H]
        return f, i, o


class Sizes(Gated):
    def gates(self, z: Tensor) -> tuple[Tensor, ...]:
        f, i, o = torch.sigmoid(z).split([H, H, H], dim=-1)
        return f, i, o


class TwoLevels(Gated):
    """A piece that is taken apart itself is shown by its own pieces."""

    names = ("o", "f", "i")

    def gates(self, z: Tensor) -> tuple[Tensor, ...]:
        both, o = torch.sigmoid(z).split([2 * H, H], 1)
        f, i = both.chunk(2, 1)
        return f, i, o


class Copied(Gated):
    """`contiguous` returns what it is given where that is contiguous already."""

    def gates(self, z: Tensor) -> tuple[Tensor, ...]:
        g = torch.sigmoid(z)
        f = g[:, :H].contiguous()
        i = g.narrow(1, H, H).clone()
        o = g[:, None, 2 * H :].squeeze(1)
        return f, i, o


class Unpacked(Gated):
    """Einops' "b (h k) -> k b h", unpacked like a tuple."""

    def take(self, g: Tensor) -> Tensor:
        return g.view(-1, H, 3).mT

    def gates(self, z: Tensor) -> tuple[Tensor, ...]:
        together = torch.sigmoid(z).reshape(len(z), H, 3).permute(2, 0, 1)
        f, i, o = together
        return f, i, o


class Reshaped(Unpacked):
    def gates(self, z: Tensor) -> tuple[Tensor, ...]:
        g = torch.sigmoid(z).unflatten(-1, (H, 3))
        f = g[:, :, 0]
        i = g.select(-1, 1)
        o = g[..., 2]
        return f, i, o


class Parts(Gated):
    def gates(self, z: Tensor) -> tuple[Tensor, ...]:
        f, i, o = torch.tensor_split(torch.sigmoid(z), 3, dim=1)
        return f, i, o


KINDS = [*Gated.__subclasses__(), Reshaped]


@pytest.mark.filterwarnings("ignore:There is a performance drop")  # torch has no batched `take`
@pytest.mark.parametrize("b", [1, 2])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_gate_is_shown_by_its_name(kind: type[Gated], b: int) -> None:
    torch.manual_seed(b)
    model, x = kind().to(D), torch.randn(b, T, IN, dtype=D)
    (found,), kept, _ = seen(model, x, quantities=("states", "gates"))
    assert not kept.reasons()
    assert found.cell.gate_names == (*(f"gate/{name}" for name in model.names), "tanh")
    h = torch.zeros(H, dtype=D)
    for t in range(T):
        g = torch.sigmoid(model.map.weight @ torch.cat((x[0, t], h)) + model.map.bias)
        f, i, o = model.take(g[None])[0]
        for name in model.names:
            expected = {"f": f, "i": i, "o": o, "g.2": o}[name].detach()
            np.testing.assert_allclose(kept.array(f"model:gate/{name}")[t], expected, rtol=1e-12)
        h = f * h + i * torch.tanh(o * h + 1)
