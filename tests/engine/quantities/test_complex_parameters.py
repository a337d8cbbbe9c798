"""Numbers of models with complex parameters: both parts count, against autograd on the model as it is."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import inspector

WIDTH, UNITS = 3, 4
ALSO = ("depth/parameters", "trial/first_step", "trial/learning_rate")


class Rotating(nn.Module):
    """h = λh + Bx with complex λ and B."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.log = nn.Parameter(torch.complex(-torch.rand(UNITS), 3 * torch.rand(UNITS)))
        self.into = nn.Parameter(torch.randn(WIDTH, UNITS, dtype=torch.complex64))
        self.out = nn.Linear(2 * UNITS, 2)

    def forward(self, x: Tensor) -> Tensor:
        h, rows = torch.zeros(x.shape[0], UNITS, dtype=torch.complex64), []
        for t in range(x.shape[1]):
            h = self.log.exp() * h + x[:, t].to(torch.complex64) @ self.into
            rows.append(self.out(torch.cat([h.real, h.imag], -1)))
        return torch.stack(rows, 1)


def loss(output: Tensor, batch: Any) -> Tensor:
    late = torch.arange(output.shape[1])[None] >= batch.lengths[:, None]
    return output.square().mean(-1).masked_fill(late, torch.nan)


def test_both_parts_of_complex_parameters_count() -> None:
    model, x = Rotating(), torch.randn(9, WIDTH)
    known = torch.autograd.grad(model(x[None]).square().mean(), list(model.parameters()))
    norms = [float(torch.cat([one.real.flatten(), one.imag.flatten()]).norm() if one.is_complex() else one.norm())
             for one in known]  # fmt: skip
    subject = SimpleNamespace(model=model, kind="vectors", width=WIDTH, loss=loss)
    with inspector.run(subject, x.numpy(), also=ALSO) as capture:
        assert capture.array("parameters:clipping/norms")[0] == pytest.approx(norms, rel=1e-5)
        assert capture.array("model:trial/first_step")[0] == pytest.approx(norms, rel=1e-5)
        total = float(np.linalg.norm(norms))
        assert np.linalg.norm(capture.array("layers:parameter/gradient")[1]) == pytest.approx(9 * total, rel=1e-5)
        assert capture.array("parameters:health/gradient").sum() == 2 * (UNITS + WIDTH * UNITS) + 18 - 1
        direction = [
            one.sgn() if not one.is_complex() else torch.complex(one.real.sgn(), one.imag.sgn()) for one in known
        ]
        rate, said = capture.array("model:trial/learning_rate/adam")[:, 3]
        with torch.no_grad():
            for one, step in zip(model.parameters(), direction, strict=True):
                one -= float(rate) * step
            assert float(model(x[None]).square().mean()) == pytest.approx(float(said), rel=1e-5)


def test_gradient_norms_of_many_sequences_have_both_parts() -> None:
    model = Rotating()
    data = [torch.randn(n, WIDTH) for n in (6, 6, 4)]
    known = [
        float(torch.cat([torch.view_as_real(g).flatten() if g.is_complex() else g.flatten() for g in torch.autograd.grad(
            model(x[None]).square().mean(), list(model.parameters()))]).norm())
        for x in data
    ]  # fmt: skip
    subject = SimpleNamespace(model=model, kind="vectors", width=WIDTH, loss=loss)
    with inspector.run(subject, data=[x.numpy() for x in data]) as capture:
        assert capture.array("sequences:gradient_norm") == pytest.approx(known, rel=1e-5)
