"""Layers that one loop runs step by step, whose values inside a step are read by the next layer: every parameter is
itemised once, and a derivative that lacks paths through a lower layer's own steps is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from kept import Kept
from torch import Tensor, nn

from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform

D = torch.float64
N, T = 4, 7
States = tuple[Tensor, Tensor]


class Layers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.i, self.a, self.b, self.p = nn.Linear(3, N), nn.Linear(N, N), nn.Linear(N, N), nn.Linear(N, N)

    def advance(self, row: Tensor, h: Tensor, k: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The new states, and what the loss reads."""
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        h = k = x.new_zeros(len(x), N)
        out = []
        for row in x.unbind(1):
            h, k, y = self.advance(row, h, k)
            out.append(y)
        return torch.stack(out, 1)


class Stacked(Layers):
    """The upper layer reads what the lower one makes before it decays."""

    def advance(self, row: Tensor, h: Tensor, k: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        u = torch.tanh(self.i(row) + self.a(h))
        v = torch.tanh(self.p(u) + self.b(k))
        return 0.9 * u, 0.8 * v, v


class Residual(Layers):
    def advance(self, row: Tensor, h: Tensor, k: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        y = self.i(row)
        u = torch.tanh(y + self.a(h))
        v = torch.tanh(self.p(y + u) + self.b(k))
        return 0.9 * u, 0.8 * v, y + u + v


class Crossed(Layers):
    """The lower one in the code reads the other's old state, through a layer that both share."""

    def advance(self, row: Tensor, h: Tensor, k: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        z = self.p(k)
        h = torch.tanh(z + self.a(h))
        return h, torch.tanh(z + self.b(k) + self.i(row)), h


class Tied(Layers):
    """Both layers have the same recurrent weights."""

    def advance(self, row: Tensor, h: Tensor, k: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        h = torch.tanh(self.i(row) + self.a(h))
        k = torch.tanh(self.p(h) + self.a(k))
        return h, k, k


class Fused(Layers):
    """Two fused modules, one row at a time, with a residual path and a decay."""

    def __init__(self) -> None:
        super().__init__()
        self.rs = nn.ModuleList([nn.GRU(N, N) for _ in range(2)])

    def advance(self, row: Tensor, h: Tensor, k: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        y = self.i(row)[None]
        u, h = self.rs[0](y, h[None])
        v, k = self.rs[1](y + u, k[None])
        return 0.9 * h[0], 0.9 * k[0], (y + u + v)[0]


class BelowACell(Layers):
    def __init__(self) -> None:
        super().__init__()
        self.c = nn.GRUCell(N, N)

    def advance(self, row: Tensor, h: Tensor, k: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        y = self.i(row)
        h = self.c(y, h)
        k = torch.tanh(self.p(h) + self.b(k) + y)
        return h, k, k


def captured(model: nn.Module, x: Tensor, only: tuple[str, ...]) -> tuple[Kept, Any]:
    kept = Kept()
    subject = Subject(model=model, kind="vectors", width=3, loss=lambda out, batch: out.square().sum(-1))
    trace = perform(subject, Batch(x, torch.tensor([x.shape[1]])), kept, RunOptions(only=only))
    return kept, trace


def one_copy_a_step(model: Layers, x: Tensor, name: str) -> tuple[list[Tensor], list[States], Tensor]:
    """(a copy of the parameter for every step, the states after each, the loss), by the model's own step."""
    whole = dict(model.named_parameters())
    copies = [whole[name].detach().clone().requires_grad_() for _ in range(T)]
    h = k = torch.zeros(1, N, dtype=D)
    states, loss = [], torch.zeros((), dtype=D)

    class Step(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, *given: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            return model.advance(*given)

    for t in range(T):
        h, k, y = torch.func.functional_call(Step(), {f"model.{name}": copies[t]}, (x[:, t], h, k))
        states.append((h, k))
        loss = loss + y.square().sum()
    return copies, states, loss


@pytest.mark.parametrize("kind", [Stacked, Residual, Crossed, Fused], ids=lambda kind: kind.__name__)
def test_every_parameter_is_itemised_once(kind: Callable[[], Layers]) -> None:
    """The items of a source step, over all losses, have the norm of autograd's gradient by that step's own copy."""
    torch.manual_seed(0)
    model, x = kind().to(D), torch.randn(1, T, 3, dtype=D)
    kept, _ = captured(model, x, ("states", "bptt"))
    assert not [reason for reason in kept.reasons() if "items" in reason]
    used = [name for name, one in model.named_parameters() if _used(model, x, one)]
    for name in used:
        (key,) = (key for key in kept.names() if key.endswith(f":bptt/{name}"))
        copies, _, loss = one_copy_a_step(model, x, name)
        (last,) = torch.autograd.grad(loss, copies[-1], allow_unused=True, materialize_grads=True)
        assert float(kept.array(key)[T - 1, T - 1]) == pytest.approx(float(last.norm()), rel=1e-6)


def _used(model: nn.Module, x: Tensor, one: Tensor) -> bool:
    return torch.autograd.grad(model(x).sum(), one, allow_unused=True)[0] is not None


@pytest.mark.parametrize("kind", [Stacked, Residual, Fused, Tied, BelowACell, Crossed], ids=lambda kind: kind.__name__)
def test_derivatives_of_states_are_right_or_refused(kind: Callable[[], Layers]) -> None:
    """‖∂h_T/∂θ by source step‖ against autograd with a copy of θ for every step, through all that the loop carries."""
    torch.manual_seed(1)
    model, x = kind().to(D), torch.randn(1, T, 3, dtype=D)
    kept, trace = captured(model, x, ("states", "gradient/state_derivatives"))
    at = T - 1
    places = {one.place: one for one in trace.recurrences}
    compared = 0
    for name in dict(model.named_parameters()):
        copies, states, _ = one_copy_a_step(model, x, name)
        for place, one in places.items():
            own = name.removeprefix("c.") if place == "c" else name
            key = f"{place}:state_derivative/{own}/{at}"
            last = one.states[-1, 0]
            which = min((0, 1), key=lambda n: float((states[-1][n][0].detach() - last).abs().max()))
            rows = [torch.autograd.grad(states[-1][which][0, n], copies, retain_graph=True, allow_unused=True)
                    if states[-1][which].requires_grad else (None,) * T for n in range(N)]  # fmt: skip
            size = [sum(0.0 if row[t] is None else float(row[t].square().sum()) for row in rows) ** 0.5
                    for t in range(T)]  # fmt: skip
            if key in kept.names():
                compared += 1
                torch.testing.assert_close(torch.tensor(kept.array(key)), torch.tensor(size, dtype=D))
            elif any(size) and place != "c":  # the cell has no other parameters than its own
                assert any(f"/∂{own} of {place} is not shown" in reason for reason in kept.reasons()), key
    assert compared


def test_a_module_that_reads_its_own_outputs_in_a_second_pass() -> None:
    """The first pass is right; of the second, the paths through the first are not known."""

    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rnn = nn.GRU(3, 3, batch_first=True)

        def forward(self, x: Tensor) -> Tensor:
            return self.rnn(self.rnn(x)[0])[0]

    class Apart(Twice):
        def forward(self, x: Tensor) -> Tensor:
            return self.rnn(x)[0] + self.rnn(x.flip(1))[0]

    for kind, count in ((Twice, 4), (Apart, 0)):
        kept, _ = captured(kind().to(D), torch.randn(1, T, 3, dtype=D), ("states", "gradient/state_derivatives"))
        refused = [reason for reason in kept.reasons() if "rnn.l0 uses it too" in reason]
        assert len(refused) == count
        assert sum("state_derivative" in key for key in kept.names()) == 8 - count
