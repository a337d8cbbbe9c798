"""Attention against the gradient at the inputs, on the same model written out in float64."""

from __future__ import annotations

import attended_models as models
import numpy as np
import pytest
import torch
from attended_models import HEADS, LAYERS, STEPS, WAYS, made, place, reference
from scipy import stats
from torch import Tensor

from inspector.engine.attention.rows import Rows
from inspector.records import Log

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize("way", WAYS)
def test_rank_correlation_of_every_head(way: str) -> None:
    model = made(way)
    sink, known = models.run(model, "attention/against_gradient"), reference(model, models.batch().inputs[1])
    slopes = torch.zeros(STEPS, STEPS, dtype=torch.float64)
    for t in range(STEPS):
        (slope,) = torch.autograd.grad(known.logits[t].max(), known.stream[0], retain_graph=True)
        slopes[t] = slope.norm(dim=1)
    np.testing.assert_allclose(sink.array("output:sensitivity"), slopes, rtol=1e-9, atol=1e-12)
    flow = torch.eye(STEPS, dtype=torch.float64)
    for layer in range(LAYERS):
        maps, found = known.maps[layer].detach(), sink.array(f"{place(layer)}:attention/against_gradient").T
        for head in range(HEADS):
            check(found[:, head], maps[head], slopes)
        flow = (maps.mean(0) + torch.eye(STEPS)) @ flow / 2
    check(sink.array("layers:attention/rollout_against_gradient"), flow, slopes)
    assert any("only 4 queries have a rank correlation" in log.text for log in sink.of(Log))


def check(found: np.ndarray, weights: Tensor, slopes: Tensor) -> None:
    rho = [stats.spearmanr(weights[t, : t + 1], slopes[t, : t + 1]).statistic for t in range(2, STEPS)]
    tau = [stats.kendalltau(weights[t, : t + 1], slopes[t, : t + 1]).statistic for t in range(2, STEPS)]
    assert found[0] == pytest.approx(np.mean(rho), abs=1e-6) and found[3] == pytest.approx(np.mean(tau), abs=1e-6)
    assert found[6] == STEPS - 2 and found[1] <= found[0] <= found[2]


def test_a_row_is_computed_once_for_all_heads(monkeypatch: pytest.MonkeyPatch) -> None:
    computed: list[int] = []
    block = Rows.block
    monkeypatch.setattr(
        "inspector.engine.quantities.attention.attention_explains.Rows.block",
        lambda rows, q0, q1, *more: (computed.append(q1 - q0), block(rows, q0, q1, *more))[1],
    )
    models.run(made("fused"), "attention/against_gradient")
    assert computed.count(1) == LAYERS * STEPS
