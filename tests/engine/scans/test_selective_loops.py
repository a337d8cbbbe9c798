"""Mamba's selective recurrence written out as a loop in many orders: its map is y_t = Σ_s M[t, s] x_s with Δ in it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from listed import Listed
from torch import Tensor, nn

from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform
from inspector.records import Log

pytestmark = pytest.mark.usefixtures("one_thread")
WIDTH, STATES, STEPS, SAMPLE = 3, 4, 7, 1
Step = Callable[..., tuple[Tensor, Tensor]]


def zoh_of_b(h: Tensor, x: Tensor, delta: Tensor, a: Tensor, b: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """B̄ = Δ B, as in the paper's algorithm."""
    h = torch.exp(delta[:, :, None] * a) * h + (delta[:, :, None] * b[:, None, :]) * x[:, :, None]
    return h, (h * c[:, None, :]).sum(-1)


def input_first(h: Tensor, x: Tensor, delta: Tensor, a: Tensor, b: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """(Δ x) B: the token is weighed by Δ before B."""
    h = torch.exp(delta.unsqueeze(-1) * a) * h + (delta * x).unsqueeze(-1) * b.unsqueeze(1)
    return h, torch.einsum("bdn,bn->bd", h, c)


def by_einsum(h: Tensor, x: Tensor, delta: Tensor, a: Tensor, b: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    h = torch.exp(torch.einsum("bd,dn->bdn", delta, a)) * h + torch.einsum("bd,bn,bd->bdn", delta, b, x)
    return h, torch.einsum("bdn,bn->bd", h, c)


def by_einsum_of_product(h: Tensor, x: Tensor, delta: Tensor, a: Tensor, b: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    h = torch.exp(torch.einsum("bd,dn->bdn", delta, a)) * h + torch.einsum("bd,bn->bdn", delta * x, b)
    return h, (h @ c[..., None])[..., 0]


def outer(h: Tensor, x: Tensor, delta: Tensor, a: Tensor, b: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    u = x * delta
    h = h * torch.exp(delta[..., None] * a) + u[..., None] @ b[:, None]
    return h, torch.bmm(h, c[..., None]).squeeze(-1)


def token_last(h: Tensor, x: Tensor, delta: Tensor, a: Tensor, b: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    weighed = b[:, None] * x[..., None]
    h = torch.exp(delta[..., None] * a).mul(h).add(weighed * delta[..., None])
    return h, (h * c[:, None]).sum(dim=-1)


def in_place(h: Tensor, x: Tensor, delta: Tensor, a: Tensor, b: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    added = delta[..., None] * x[..., None]
    added = added * b[:, None]
    return torch.addcmul(added, h, (delta[..., None] * a).exp()), torch.zeros(0)


def true_zoh(h: Tensor, x: Tensor, delta: Tensor, a: Tensor, b: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """B̄ = (exp(Δ A) − 1) / A · B."""
    decay = torch.exp(delta[..., None] * a)
    h = decay * h + (decay - 1) / a * b[:, None] * x[..., None]
    return h, (h * c[:, None]).sum(-1)


def euler(h: Tensor, x: Tensor, delta: Tensor, a: Tensor, b: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """h + Δ (A h + B x)."""
    h = h + delta[..., None] * (a * h + b[:, None] * x[..., None])
    return h, (h * c[:, None]).sum(-1)


WAYS = [zoh_of_b, input_first, by_einsum, by_einsum_of_product, outer, token_last, in_place, true_zoh]
GAINS = {true_zoh: lambda delta, a: (torch.exp(delta[:, None] * a) - 1) / a}


class Selective(nn.Module):
    def __init__(self, step: Step, before: bool, skip: bool) -> None:
        super().__init__()
        self.step, self.before, self.skip = step, before, skip
        self.of_x, self.rate = nn.Linear(WIDTH, 2 * STATES + 1), nn.Linear(1, WIDTH)
        self.a, self.d = nn.Parameter(torch.rand(WIDTH, STATES)), nn.Parameter(torch.rand(WIDTH))

    def parts(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        low, b, c = self.of_x(x).split([1, STATES, STATES], -1)
        return F.softplus(self.rate(low)), -torch.exp(self.a), b, c

    def forward(self, x: Tensor) -> Tensor:
        delta, a, b, c = self.parts(x)
        h, ys = x.new_zeros(len(x), WIDTH, STATES), []
        for t in range(x.shape[1]):
            own = (x[:, t], delta[:, t], a, b[:, t], c[:, t])
            h, y = self.step(h, *own)
            if not y.numel():
                y = (h * c[:, t, None]).sum(-1)
            ys.append(y + self.d * x[:, t] if self.skip else y)
        return torch.stack(ys, 1)


class AtOnce(nn.Module):
    """Decays and inputs of all steps before the loop."""

    def __init__(self, order: str) -> None:
        super().__init__()
        self.inner, self.order = Selective(zoh_of_b, True, False), order

    def forward(self, x: Tensor) -> Tensor:
        delta, a, b, c = self.inner.parts(x)
        decay = torch.exp(torch.einsum("bld,dn->bldn", delta, a))
        given = {
            "three": lambda: torch.einsum("bld,bln,bld->bldn", delta, b, x),
            "token": lambda: (delta * x).unsqueeze(-1) * b.unsqueeze(2),
            "weight": lambda: delta.unsqueeze(-1) * b.unsqueeze(2) * x.unsqueeze(-1),
            "einsum of a product": lambda: torch.einsum("bld,bln->bldn", delta * x, b),
        }[self.order]()
        h, ys = x.new_zeros(len(x), WIDTH, STATES), []
        for t in range(x.shape[1]):
            h = decay[:, t] * h + given[:, t]
            ys.append(torch.einsum("bdn,bn->bd", h, c[:, t]))
        return torch.stack(ys, 1)


def written(model: Selective, x: Tensor, step: Step) -> Tensor:
    """M (d, t, s) in plain loops, in float64."""
    delta, a, b, c = model.parts(x)
    found = torch.zeros(WIDTH, len(x), len(x), dtype=torch.float64)
    for t in range(len(x)):
        for s in range(t + 1):
            gain = GAINS[step](delta[s], a) if step in GAINS else delta[s, :, None]
            left = gain * b[s]
            for j in range(s + 1, t + 1):
                left = left * torch.exp(delta[j, :, None] * a)
            found[:, t, s] = (left * c[t]).sum(-1)
    return found


def run(model: nn.Module, x: Tensor) -> Listed:
    sink = Listed()
    batch = Batch(x, torch.full((len(x),), x.shape[1]), look_at=SAMPLE)
    perform(
        Subject(model=model, kind="vectors", width=WIDTH), batch, sink, RunOptions(only=("states", "attention/maps"))
    )
    return sink


def check(model: nn.Module, inner: Selective, step: Step) -> None:
    x = torch.randn(2, STEPS, WIDTH, generator=torch.Generator().manual_seed(4)).double()
    sink = run(model, x)
    names = [one for one in sink.names() if one.endswith(":attention")]
    assert names, sink.refusals()
    expected = written(inner, x[SAMPLE], step).detach()
    found = sink.array(names[0]).astype(float)
    y = torch.einsum("dts,sd->td", expected, x[SAMPLE])
    plain = model(x)[SAMPLE] - (inner.d * x[SAMPLE] if inner.skip else 0)
    np.testing.assert_allclose(y, plain.detach(), atol=1e-9)  # the reference is the model's
    np.testing.assert_allclose(found, expected, atol=1e-3 * float(expected.abs().max()))


@pytest.mark.parametrize("skip", [False, True])
@pytest.mark.parametrize("step", WAYS)
def test_the_map_takes_tokens_to_outputs_however_the_step_is_written(step: Step, skip: bool) -> None:
    torch.manual_seed(2)
    model = Selective(step, False, skip).double()
    check(model, model, step)


@pytest.mark.parametrize("order", ["three", "token", "weight", "einsum of a product"])
def test_the_map_takes_tokens_to_outputs_where_all_is_made_before_the_loop(order: str) -> None:
    torch.manual_seed(2)
    model = AtOnce(order).double()
    check(model, model.inner, zoh_of_b)


def test_a_step_without_a_decay_of_its_own_is_said_to_have_no_map() -> None:
    torch.manual_seed(2)
    model = Selective(euler, False, False).double()
    sink = run(model, torch.randn(2, STEPS, WIDTH, dtype=torch.float64))
    assert not [one for one in sink.names() if one.endswith(":attention")]
    assert any("no tensor of the run was found that is its decay" in one.text for one in sink.of(Log))


class MadeInside(Selective):
    """Δ, B and C are made of each token in the loop."""

    def forward(self, x: Tensor) -> Tensor:
        h, ys = x.new_zeros(len(x), WIDTH, STATES), []
        for t in range(x.shape[1]):
            delta, a, b, c = self.parts(x[:, t])
            h = h * torch.exp(torch.einsum("bd,dn->bdn", delta, a)) + x[:, t, :, None] * torch.einsum(
                "bd,bn->bdn", delta, b
            )
            ys.append(torch.einsum("bdn,bn->bd", h, c))
        return torch.stack(ys, 1)


def test_the_map_takes_tokens_to_outputs_where_all_is_made_in_the_loop() -> None:
    torch.manual_seed(2)
    model = MadeInside(zoh_of_b, False, False).double()
    check(model, model, zoh_of_b)


UNITS, VALUES = 5, 3
READ: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "multiply and sum": lambda q, s: (q[..., None] * s).sum(-2),
    "einsum": lambda q, s: torch.einsum("...d,...de->...e", q, s),
    "matmul": lambda q, s: (q[..., None, :] @ s)[..., 0, :],
    "transposed": lambda q, s: (s.mT @ q[..., None]).squeeze(-1),
}
UPDATE: dict[str, Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]] = {
    "multiply": lambda s, g, k, v: g[..., None] * s + k[..., None] * v[..., None, :],
    "matmul": lambda s, g, k, v: s * g.unsqueeze(-1) + k[..., None] @ v[..., None, :],
    "einsum": lambda s, g, k, v: torch.einsum("bd,bde->bde", g, s) + torch.einsum("bd,be->bde", k, v),
    "einsum with dots": lambda s, g, k, v: (
        torch.einsum("...d,...de->...de", g, s) + torch.einsum("...d,...e->...de", k, v)
    ),
}


class Gated(nn.Module):
    """Linear attention with a gate for each unit of the keys (Yang et al. 2024), its states read in or after the loop."""

    def __init__(self, update: str, read: str, after: bool, values: int) -> None:
        super().__init__()
        self.q, self.k, self.g = (nn.Linear(WIDTH, UNITS) for _ in range(3))
        self.v, self.update, self.read, self.after = nn.Linear(WIDTH, values), UPDATE[update], READ[read], after

    def forward(self, x: Tensor) -> Tensor:
        q, k, v, g = self.q(x), self.k(x), self.v(x), self.g(x).sigmoid()
        s, states, out = x.new_zeros(len(x), UNITS, v.shape[-1]), [], []
        for t in range(x.shape[1]):
            s = self.update(s, g[:, t], k[:, t], v[:, t])
            states.append(s)
            if not self.after:
                out.append(self.read(q[:, t], s))
        return self.read(q, torch.stack(states, 1)) if self.after else torch.stack(out, 1)


@pytest.mark.parametrize("values", [VALUES, 1])
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("read", READ)
@pytest.mark.parametrize("update", UPDATE)
def test_a_gate_for_each_unit_of_the_keys_is_one_map(update: str, read: str, after: bool, values: int) -> None:
    torch.manual_seed(3)
    model = Gated(update, read, after, values).double()
    x = torch.randn(2, STEPS, WIDTH, generator=torch.Generator().manual_seed(4)).double()
    q, k, g = (part(x[SAMPLE]).detach() for part in (model.q, model.k, model.g))
    expected = torch.zeros(1, STEPS, STEPS, dtype=torch.float64)
    for t in range(STEPS):
        for s in range(t + 1):
            expected[0, t, s] = (q[t] * g[s + 1 : t + 1].sigmoid().prod(0) * k[s]).sum()
    np.testing.assert_allclose(expected[0] @ model.v(x[SAMPLE]).detach(), model(x)[SAMPLE].detach(), atol=1e-9)
    sink = run(model, x)
    found = sink.array("model:attention").astype(float)
    np.testing.assert_allclose(found, expected, atol=1e-3 * float(expected.abs().max()))
