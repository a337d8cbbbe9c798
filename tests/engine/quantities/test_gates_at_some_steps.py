"""Statistics of gates of a recurrence that pauses at some steps: those of the steps that compute them, by plain loops."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from kept import Kept
from torch import Tensor, nn

from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform

T, IN, H = 14, 3, 4
QUANTITIES = ("states", "gates", "saturation", "timescale", "memory", "health", "openers")
NAME = "model:gate/z"


class Pausing(nn.Module):
    """A gated step at two of three steps."""

    def __init__(self) -> None:
        super().__init__()
        self.w, self.z = nn.Linear(IN + H, H), nn.Linear(IN + H, H)
        self.double()
        with torch.no_grad():
            self.z.bias.copy_(torch.tensor([4.0, -4.0, 0.0, 5.0]))
        self.gates: list[Tensor] = []

    def forward(self, x: Tensor) -> Tensor:
        h, out, self.gates = x.new_zeros(len(x), H), [], []
        for t in range(x.shape[1]):
            both = torch.cat((x[:, t], h), -1)
            if t % 3 != 1:
                z = torch.sigmoid(self.z(both))
                h = z * h + (1 - z) * torch.tanh(self.w(both))
                self.gates.append(z.detach()[0])
            else:
                h = self.pause(h, x[:, t])
            out.append(h)
        return torch.stack(out, 1)

    def pause(self, h: Tensor, _: Tensor) -> Tensor:
        return h


class Adding(Pausing):
    """At the other steps the input is added to the state, so that every step reads its own."""

    def pause(self, h: Tensor, x: Tensor) -> Tensor:
        return h + 0.1 * x.sum(-1, keepdim=True)


def run(model: Pausing) -> tuple[Kept, Tensor, Tensor]:
    """What was shown, the gate at the steps that compute it, and the input."""
    torch.manual_seed(3)
    x, kept = torch.randn(1, T, IN, dtype=torch.float64), Kept()
    perform(Subject(model), Batch(x, torch.tensor([T])), kept, RunOptions(only=QUANTITIES))
    model(x)
    return kept, torch.stack(model.gates), x[0]


@pytest.fixture(scope="module")
def ran() -> tuple[Kept, Tensor, Tensor]:
    torch.manual_seed(3)
    return run(Pausing())


def test_saturation_is_of_the_steps_that_compute_the_gate(ran: tuple[Kept, Tensor, Tensor]) -> None:
    kept, z, _ = ran
    expected = [(z < 0.1).double().mean(0), (z > 0.9).double().mean(0), (4 * z * (1 - z)).mean(0)]
    np.testing.assert_allclose(kept.array(f"{NAME}/saturation"), torch.stack(expected), rtol=1e-12, atol=1e-12)


def test_a_pause_keeps_the_state(ran: tuple[Kept, Tensor, Tensor]) -> None:
    kept, z, _ = ran
    np.testing.assert_allclose(kept.array(f"{NAME}/timescale"), -T / z.log().sum(0), rtol=1e-12)
    assert kept.array("model:gate/memory").all(0).tolist() == [True, False, False, True]


def test_what_was_not_computed_is_no_nan_of_the_model(ran: tuple[Kept, Tensor, Tensor]) -> None:
    kept, z, _ = ran
    assert np.isnan(kept.array(NAME)).sum() == (T - len(z)) * H
    assert kept.array("model:health/gate/z").tolist() == [0, 0, 0, z.numel(), 0, 0, -1]


def test_features_are_correlated_over_the_steps_that_compute_the_gate() -> None:
    kept, z, x = run(Adding())
    there = x[[t for t in range(T) if t % 3 != 1]]
    both = np.corrcoef(there.numpy().T, z.numpy().T)
    np.testing.assert_allclose(kept.array(f"{NAME}/by_feature"), both[:IN, IN:], rtol=1e-9)


def test_what_a_pause_keeps_of_a_state_that_it_changes_is_not_known() -> None:
    kept, _, _ = run(Adding())
    assert np.isnan(kept.array(f"{NAME}/timescale")).all()
    assert not kept.array("model:gate/memory").any()
