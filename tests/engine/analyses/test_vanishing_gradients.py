"""A weight whose gradient is 0 although it is used: the bias of an attention score, which softmax does not see."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from kept import Kept
from torch import Tensor, nn

from inspector.engine.analyses.own_gradients import differing, floor_of
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform

T = 8


class Attending(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell, self.keys, self.score = nn.GRUCell(4, 4), nn.Linear(3, 4), nn.Linear(4, 1)

    def forward(self, x: Tensor) -> Tensor:
        keys, h, out = self.keys(x), x.new_zeros(len(x), 4), []
        for _ in range(x.shape[1]):
            a = torch.softmax(self.score(torch.tanh(keys + h[:, None])).squeeze(-1), -1)
            h = self.cell((a[..., None] * keys).sum(1), h)
            out.append(h.square().sum(-1))
        return torch.stack(out, 1)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_items_of_a_gradient_that_vanishes_are_shown(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    model, x, kept = Attending().to(dtype), torch.randn(1, T, 3, dtype=dtype), Kept()
    subject = Subject(model=model, kind="vectors", width=3, loss=lambda out, batch: out)
    keys = ("bptt", "truncation", "gradient/state_derivatives")
    perform(subject, Batch(x, torch.tensor([T])), kept, RunOptions(also=keys))
    refused = {
        one.channel: one.reason
        for one in kept.refusals()
        if one.channel.startswith(("model:bptt", "model:trunc", "model:state"))
    }
    assert set(refused) <= {"model:bptt/computed_ahead", "model:truncation/computed_ahead"}, refused
    assert all(said.startswith("keys is computed before the loop from keys.") for said in refused.values())
    gradients = dict(zip(
        (name for name, _ in model.named_parameters()),
        torch.autograd.grad(model(x).sum(), list(model.parameters())), strict=True,
    ))  # fmt: skip
    for name in ("score.bias", "score.weight", "cell.weight_hh"):
        total = kept.scalar(f"model:bptt/{name}/total_norm")
        assert total == pytest.approx(
            float(gradients[name].norm()), rel=1e-4, abs=1e-5 if dtype is torch.float32 else 1e-14
        )
    assert np.isfinite(kept.array("model:truncation/all")).any()


def test_a_difference_counts_where_either_gradient_is_above_rounding() -> None:
    floor = floor_of([1.0, 0.5], torch.float64)
    nothing, something = torch.full((3,), 1e-16, dtype=torch.float64), torch.full((3,), 1e-9, dtype=torch.float64)
    assert differing(nothing, -nothing, floor) == 0
    assert differing(something, nothing, floor) > 1e5 and differing(nothing, something, floor) == pytest.approx(1)
    assert differing(nothing, -nothing) == pytest.approx(2)
    assert floor_of([1.0, float("inf")], torch.float64) == 0
