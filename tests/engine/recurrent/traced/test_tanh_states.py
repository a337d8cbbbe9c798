"""States of hand-written cells that are a tanh have its bound, others none; shares against numpy loops in float64."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
import torch
import torch.nn.functional as F
from kept import Kept
from tanh_cells import IN, OTHERS, TANH, Cell, H, Squash, T
from torch import Tensor, nn

from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform
from inspector.records import UNBOUNDED, Labels

B = 3
Array = npt.NDArray[np.float64]


def ran(model: nn.Module, x: Tensor, lengths: Tensor | None = None) -> Kept:
    sink = Kept()
    lengths = torch.full((len(x),), x.shape[1]) if lengths is None else lengths
    perform(Subject(model), Batch(x, lengths, ()), sink, RunOptions(only=("states", "gates", "saturation")))
    return sink


def large(cell: nn.Module) -> nn.Module:
    for parameter in cell.parameters():
        if parameter.dim() == 2:
            nn.init.normal_(parameter, std=1.2)
    return cell


def why(sink: Kept) -> dict[str, str]:
    return {
        one.domain.removeprefix(UNBOUNDED): one.names[0] for one in sink.of(Labels) if one.domain.startswith(UNBOUNDED)
    }


def states_by_hand(cell: Cell, x: Array) -> Array:
    """(b, t, h) of an Elman network, entry by entry."""
    w, u, bias = (
        p.detach().double().numpy() for p in (cell.w.weight, cell.u.weight, cell.w.bias + cell.u.bias)
    )  # fmt: skip
    found = np.zeros((len(x), x.shape[1], H))
    for b in range(len(x)):
        before = np.zeros(H)
        for t in range(x.shape[1]):
            a = [sum(w[k, i] * x[b, t, i] for i in range(IN)) + sum(u[k, g] * before[g] for g in range(H)) + bias[k]
                 for k in range(H)]  # fmt: skip
            before = np.array([(1 - np.exp(-2 * v)) / (1 + np.exp(-2 * v)) for v in a])
            found[b, t] = before
    return found


def shares(states: Array, lengths: list[int]) -> Array:
    """(2, h): of all real steps, below −0.97 and above 0.97."""
    rows = np.concatenate([states[b, :n] for b, n in enumerate(lengths)])
    return np.stack(((rows < -0.97).mean(0), (rows > 0.97).mean(0)))


@pytest.mark.parametrize("name", TANH)
def test_a_state_that_is_a_tanh_has_its_bound(name: str) -> None:
    torch.manual_seed(7)
    squash, grad = TANH[name]
    model, x = large(Cell(squash, grad=grad)).double(), torch.randn(B, T, IN, dtype=torch.float64)
    assert isinstance(model, Cell)
    sink = ran(model, x)
    assert not why(sink)
    found = sink.array("model:h/saturation")
    if name in ("norm before", "torch's cell", "cast"):  # other equations, or other numbers; against what it returned
        states = model(x).detach().numpy()
    else:
        states = states_by_hand(model, x.numpy())
    expected = shares(states, [T] * B)
    assert 0.1 < expected.sum(0).mean() < 0.9
    np.testing.assert_allclose(found[:2], expected, atol=1e-12)
    np.testing.assert_allclose(found[2], (1 - states**2).mean((0, 1)), atol=1e-6)


@pytest.mark.parametrize("name", OTHERS)
def test_a_state_that_is_something_else_has_none_and_says_why(name: str) -> None:
    torch.manual_seed(7)
    squash, reason = OTHERS[name]
    sink = ran(large(Cell(squash)).double(), torch.randn(B, T, IN, dtype=torch.float64))
    assert [channel for channel in sink.names() if channel.endswith(":h")] or name == "scripted"
    assert not [channel for channel in sink.names() if channel.endswith(":h/saturation")]
    if reason:
        assert reason in why(sink)["model:h"]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_low_precision_has_the_same_bound(dtype: torch.dtype) -> None:
    torch.manual_seed(3)
    model, x = large(Cell(lambda c, a, h: torch.tanh(a))).to(dtype), torch.randn(B, T, IN).to(dtype)
    sink = ran(model, x)
    states = model(x).detach().double().numpy()
    np.testing.assert_allclose(sink.array("model:h/saturation")[:2], shares(states, [T] * B), atol=1e-12)


def masked(cell: Cell, a: Tensor, h: Tensor) -> Tensor:
    return torch.where((cell.t < cell.lengths)[:, None], torch.tanh(a), h)


def masked_by_numbers(cell: Cell, a: Tensor, h: Tensor) -> Tensor:
    m = (cell.t < cell.lengths)[:, None].to(a.dtype)
    return m * torch.tanh(a) + (1 - m) * h


@pytest.mark.parametrize("squash", [masked, masked_by_numbers])
def test_a_mask_beyond_the_end_of_a_sequence_keeps_the_bound(squash: Squash) -> None:
    """Steps that are padding count neither for the mark nor in the shares."""
    torch.manual_seed(5)
    model, x, lengths = Cell(squash), torch.randn(B, T, IN, dtype=torch.float64), [T, 5, 8]
    large(model).double()
    model.lengths = torch.tensor(lengths)  # type: ignore[assignment]
    sink = ran(model, x, torch.tensor(lengths))
    expected = shares(states_by_hand(model, x.numpy()), lengths)
    np.testing.assert_allclose(sink.array("model:h/saturation")[:2], expected, atol=1e-12)
    again = ran(model, x)  # the same mask, of sequences that go on: steps without a tanh
    assert "model:h/saturation" not in again.names()
    assert "step 5" in why(again)["model:h"]


class Lstm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.l = nn.Linear(IN + H, 4 * H)

    def forward(self, x: Tensor) -> Tensor:
        h = c = x.new_zeros(len(x), H)
        out = []
        for row in x.unbind(1):
            i, f, g, o = self.l(torch.cat((row, h), -1)).chunk(4, -1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
            out.append(h)
        return torch.stack(out, 1)


class TwoInOne(nn.Module):
    """A tanh and a running mean in one tensor, or as two."""

    def __init__(self, *, joined: bool) -> None:
        super().__init__()
        self.l, self.joined = nn.Linear(IN + 2 * H, H), joined

    def forward(self, x: Tensor) -> Tensor:
        h = s = x.new_zeros(len(x), H)
        both, out = torch.cat((h, s), -1), []
        for row in x.unbind(1):
            if self.joined:
                h, s = both.split(H, -1)
            h = torch.tanh(self.l(torch.cat((row, h, s), -1)))
            s = 0.9 * s + 0.1 * h
            both = torch.cat((h, s), -1)
            out.append(both)
        return torch.stack(out, 1)


class TwoWays(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.forth, self.back = Cell(lambda c, a, h: torch.tanh(a)), Cell(lambda c, a, h: F.softsign(a))

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat((self.forth(x), self.back(x.flip(1)).flip(1)), -1)


def test_the_product_of_an_lstm_has_none_as_torchs() -> None:
    sink = ran(Lstm().double(), torch.randn(B, T, IN, dtype=torch.float64))
    assert {"model:h", "model:c"} <= sink.names()
    assert not {"model:h/saturation", "model:c/saturation"} & sink.names()
    told = why(sink)
    assert "a product (mul)" in told["model:h"] and "a sum (add)" in told["model:c"]


def test_of_two_variables_the_one_that_is_a_tanh_has_it() -> None:
    apart = ran(TwoInOne(joined=False).double(), torch.randn(B, T, IN, dtype=torch.float64))
    assert {"model:h/saturation"} == {
        name for name in apart.names() if name in ("model:h/saturation", "model:s/saturation")
    }
    assert "a sum" in why(apart)["model:s"]
    together = ran(TwoInOne(joined=True).double(), torch.randn(B, T, IN, dtype=torch.float64))
    assert not [name for name in together.names() if name.endswith("both/saturation")]
    assert "a part of it is a sum" in why(together)["model:both"]


def test_of_two_directions_each_has_its_own() -> None:
    sink = ran(TwoWays().double(), torch.randn(B, T, IN, dtype=torch.float64))
    assert "forth:h/saturation" in sink.names() and "back:h/saturation" not in sink.names()
    assert "softsign" in why(sink)["back:h"]


@pytest.mark.parametrize("squash", [torch.tanh, F.softsign, F.hardtanh], ids=["tanh", "softsign", "hardtanh"])
def test_a_candidate_that_is_no_tanh_is_not_measured_as_one(squash: Callable[[Tensor], Tensor]) -> None:
    def mix(cell: Cell, a: Tensor, h: Tensor) -> Tensor:
        z = torch.sigmoid(cell.z(cell.x))
        n = squash(a)
        return z * h + (1 - z) * n

    sink = ran(Cell(mix).double(), torch.randn(B, T, IN, dtype=torch.float64))
    assert {"model:n", "model:gate/z/saturation"} <= sink.names()
    assert ("model:n/saturation" in sink.names()) == (squash is torch.tanh)


def test_a_step_that_bends_again_and_again_is_looked_at_once_an_operation() -> None:
    """40 maps whose argument stands three times in each: asked anew for each, its function would never be known."""

    def maps(_cell: Cell, a: Tensor, _h: Tensor) -> Tensor:
        v = torch.tanh(a)
        for _ in range(40):
            v = v + 0.1 * (v - v * v * v)
        return v

    sink = ran(Cell(maps).double(), torch.randn(B, T, IN, dtype=torch.float64))
    assert "model:h" in sink.names() and "model:h/saturation" not in sink.names()
    assert "a sum" in why(sink)["model:h"]
