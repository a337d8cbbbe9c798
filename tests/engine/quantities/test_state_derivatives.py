"""dh_t/dθ and its terms against torch.autograd.functional.jacobian, with one copy of the parameter a step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from kept import Kept
from torch import Tensor, nn

from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform

T, WIDTH, HIDDEN = 9, 2, 3


class Written(nn.Module):
    """A cell written by hand with one gate."""

    def __init__(self) -> None:
        super().__init__()
        self.u, self.w, self.v = nn.Linear(WIDTH, HIDDEN), nn.Linear(HIDDEN, HIDDEN), nn.Linear(HIDDEN, HIDDEN)

    def forward(self, x: Tensor) -> Tensor:
        h = x.new_zeros(len(x), HIDDEN)
        out = []
        for t in range(x.shape[1]):
            z = torch.sigmoid(self.v(h))
            h = z * h + (1 - z) * torch.tanh(self.u(x[:, t]) + self.w(h))
            out.append(h)
        return torch.stack(out, 1)


class Fused(nn.Module):
    """One fused layer."""

    def __init__(self, kind: type[Any]) -> None:
        super().__init__()
        self.rnn = kind(WIDTH, HIDDEN, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.rnn(x)[0]
        return out


def elman(p: dict[str, Tensor], x: Tensor, s: Tensor) -> Tensor:
    return torch.tanh(p["weight_ih"] @ x + p["weight_hh"] @ s + p["bias"])


def gru(p: dict[str, Tensor], x: Tensor, s: Tensor) -> Tensor:
    a, b = p["weight_ih"] @ x + p["bias_ih"], p["weight_hh"] @ s + p["bias_hh"]
    (ar, az, an), (br, bz, bn) = a.chunk(3), b.chunk(3)
    z = torch.sigmoid(az + bz)
    return (1 - z) * torch.tanh(an + torch.sigmoid(ar + br) * bn) + z * s


def lstm(p: dict[str, Tensor], x: Tensor, s: Tensor) -> Tensor:
    h, c = s.chunk(2)
    i, f, g, o = (p["weight_ih"] @ x + p["weight_hh"] @ h + p["bias"]).chunk(4)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.cat((torch.sigmoid(o) * torch.tanh(c), c))


def written(p: dict[str, Tensor], x: Tensor, s: Tensor) -> Tensor:
    z = torch.sigmoid(p["v.weight"] @ s + p["v.bias"])
    return z * s + (1 - z) * torch.tanh(p["u.weight"] @ x + p["u.bias"] + p["w.weight"] @ s + p["w.bias"])


def terms(
    step: Callable[..., Tensor], parameters: dict[str, Tensor], name: str, x: Tensor, size: int, at: int
) -> tuple[list[float], float]:
    """(norm of the term of every source step, norm of their sum), by one Jacobian over copies of the parameter."""

    def state(copies: Tensor) -> Tensor:
        s = torch.zeros(size, dtype=torch.float64)
        for t in range(at + 1):
            s = step({**parameters, name: copies[t]}, x[t], s)
        return s[:HIDDEN]

    copies = torch.stack([parameters[name]] * (at + 1))
    jacobian = torch.autograd.functional.jacobian(state, copies)  # (h, t, …)
    return [float(jacobian[:, k].norm()) for k in range(at + 1)], float(jacobian.sum(1).norm())


CASES: dict[str, tuple[Callable[[], nn.Module], Callable[..., Tensor], int]] = {
    "elman": (lambda: Fused(nn.RNN), elman, HIDDEN),
    "gru": (lambda: Fused(nn.GRU), gru, HIDDEN),
    "lstm": (lambda: Fused(nn.LSTM), lstm, 2 * HIDDEN),
    "written": (Written, written, HIDDEN),
}


def parameters_of(model: nn.Module, names: set[str]) -> dict[str, Tensor]:
    """As the reference steps name them; the two biases of an LSTM or RNN are one where the step adds them."""
    found = {n.removeprefix("rnn.").removesuffix("_l0"): v.detach() for n, v in model.named_parameters()}
    if "bias" in names:
        found["bias"] = found["bias_ih"] + found["bias_hh"]
    return found


@pytest.mark.parametrize("case", CASES)
def test_terms_and_their_sum(case: str) -> None:
    torch.manual_seed(4)
    make, step, size = CASES[case]
    model = make().double()
    x = torch.randn(1, T, WIDTH, dtype=torch.float64)
    kept = Kept()
    subject = Subject(model=model, kind="vectors", width=WIDTH)
    perform(subject, Batch(x, torch.tensor([T])), kept, RunOptions(only=("gradient/state_derivatives@4:6", "states")))
    assert not [r for r in kept.refusals() if "derivative" in r.channel]
    channels = {name: c for name, c in kept.channels().items() if ":state_derivative/" in name}
    names = {name.split("state_derivative/")[1].rpartition("/")[0] for name in channels}
    known = parameters_of(model, names)
    assert len(names) >= 2 and len(channels) == 2 * len(names)
    for name in names:
        for at in (4, 5):
            (full,) = [n for n in channels if n.endswith(f"state_derivative/{name}/{at}")]
            norms, whole = terms(step, known, name, x[0], size, at)
            found = kept.array(full)
            assert np.allclose(found[: at + 1], norms, rtol=1e-9) and np.isnan(found[at + 1 :]).all()
            assert kept.scalar(f"{full}/norm") == pytest.approx(whole, rel=1e-9)
            assert kept.scalar(f"{full}/check_error") < 1e-10


def test_the_last_step_is_the_default_and_too_many_are_refused() -> None:
    torch.manual_seed(4)
    subject = Subject(model=Fused(nn.RNN), kind="vectors", width=WIDTH)
    batch = Batch(torch.randn(1, 40, WIDTH), torch.tensor([40]))
    kept = Kept()
    perform(subject, batch, kept, RunOptions(only=("gradient/state_derivatives",)))
    assert {name.rpartition("/")[2] for name in kept.names()} == {"39"}
    kept = Kept()
    perform(subject, batch, kept, RunOptions(only=("gradient/state_derivatives@0:30",)))
    assert not kept.names() and "16 at most" in kept.reasons()[0]


CUT = 4


class Chunks(nn.Module):
    """A module, a cell in a loop or steps by hand, with the state detached before step CUT."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind, self.rnn, self.cell = kind, nn.RNN(WIDTH, HIDDEN, batch_first=True), nn.RNNCell(WIDTH, HIDDEN)
        self.u, self.w = nn.Linear(WIDTH, HIDDEN), nn.Linear(HIDDEN, HIDDEN)

    def forward(self, x: Tensor) -> Tensor:
        if self.kind == "rnn":
            first, h = self.rnn(x[:, :CUT])
            return torch.cat([first, self.rnn(x[:, CUT:], h.detach())[0]], 1)
        h, out = x.new_zeros(len(x), HIDDEN), []
        for t in range(x.shape[1]):
            h = h.detach() if t == CUT else h
            h = self.cell(x[:, t], h) if self.kind == "cell" else torch.tanh(self.u(x[:, t]) + self.w(h))
            out.append(h)
        return torch.stack(out, 1)


@pytest.mark.parametrize(
    ("kind", "name", "own"),
    [
        ("rnn", "weight_hh", "rnn.weight_hh_l0"),
        ("cell", "weight_hh", "cell.weight_hh"),
        ("model", "w.weight", "w.weight"),
    ],
)
def test_the_derivative_of_a_state_ends_where_the_model_detached_it(kind: str, name: str, own: str) -> None:
    torch.manual_seed(5)
    model, x, kept = Chunks(kind).double(), torch.randn(1, T, WIDTH, dtype=torch.float64), Kept()
    subject = Subject(model=model, kind="vectors", width=WIDTH, loss=lambda out, _: out.square().sum(-1))
    perform(subject, Batch(x, torch.tensor([T])), kept, RunOptions(only=("gradient/state_derivatives",)))
    weight = dict(model.named_parameters())[own]
    last = model(x)[0, -1]
    rows = torch.stack([torch.autograd.grad(one, weight, retain_graph=True)[0] for one in last])
    (full,) = [channel for channel in kept.names() if channel.endswith(f"state_derivative/{name}/{T - 1}")]
    assert kept.scalar(f"{full}/norm") == pytest.approx(float(rows.norm()), rel=1e-9)
    assert (kept.array(full)[:CUT] == 0).all() and (kept.array(full)[CUT:] > 0).all()
    assert kept.scalar(f"{full}/check_error") < 1e-10
