"""The map of a loop over complex states, M[t, s] = (Π a) B_s, is complex: its magnitude is shown, and said to be it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from listed import Listed
from torch import Tensor, nn

from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform

pytestmark = pytest.mark.usefixtures("one_thread")
WIDTH, STATES, STEPS = 3, 4, 7


class Diagonal(nn.Module):
    """z' = exp(Δ A) z + Δ (B x), y = Re(C z) times a gate; `turning`: A has an imaginary part."""

    def __init__(self, *, turning: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.turning, self.rate = turning, nn.Parameter(torch.linspace(0.3, 1.0, STATES))
        self.b = nn.Parameter(torch.randn(STATES, WIDTH, dtype=torch.cfloat))
        self.c = nn.Parameter(torch.randn(2, STATES, dtype=torch.cfloat))
        self.step, self.gate = nn.Linear(WIDTH, STATES), nn.Linear(WIDTH, 2)

    def a(self) -> Tensor:
        return torch.complex(-self.rate, torch.linspace(0.2, 2.5, STATES)) if self.turning else -self.rate

    def forward(self, x: Tensor) -> Tensor:
        b, c = (self.b, self.c) if self.turning else (self.b.real, self.c.real)
        z, found = torch.zeros(len(x), STATES, dtype=b.dtype), []
        for t in range(x.shape[1]):
            delta = F.softplus(self.step(x[:, t]))
            z = torch.exp(delta * self.a()) * z + delta * (x[:, t].to(b.dtype) @ b.T)
            y = z @ c.T
            found.append((y.real if self.turning else y) * F.silu(self.gate(x[:, t])))
        return torch.stack(found, 1)


@pytest.mark.parametrize("turning", [False, True])
def test_a_complex_map_says_that_its_magnitude_is_shown(turning: bool) -> None:
    model, sink, x = Diagonal(turning=turning), Listed(), torch.randn(1, STEPS, WIDTH)
    perform(Subject(model=model), Batch(x, torch.tensor([STEPS])), sink, RunOptions(only=("attention/maps",)))
    formula = sink.channel("model:attention").formula
    assert formula.startswith("|M[t, s]|") is turning and "M[t, s] = " in formula
    with torch.no_grad():
        delta = F.softplus(model.step(x[0])).double()
        decay = torch.exp(delta * model.a())
    for n in range(STATES):
        wanted = np.zeros((STEPS, STEPS))
        for t in range(STEPS):
            for s in range(t + 1):
                wanted[t, s] = float((decay[s + 1 : t + 1, n].prod() * delta[s, n]).abs())
        np.testing.assert_allclose(sink.array("model:attention")[n], wanted, rtol=1e-4, atol=1e-6)
