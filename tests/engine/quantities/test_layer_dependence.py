"""Value zeroing and sensitivity by layer against the same model written out in float64."""

from __future__ import annotations

import attended_models as models
import numpy as np
import pytest
import torch
from attended_models import LAYERS, STEPS, WAYS, WIDTH, made, place, reference
from listed import Listed
from torch import Tensor, nn

from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize("way", WAYS)
def test_a_layer_without_the_value_of_one_key(way: str) -> None:
    """The change is made in one layer, and its own output is looked at."""
    model, ids = made(way), models.batch().inputs[1]
    sink, known = models.run(model, "attention/value_zeroing"), reference(made(way), ids)
    for layer in range(LAYERS):
        expected = torch.zeros(STEPS, STEPS, dtype=torch.float64)
        for key in range(STEPS):

            def change(
                at: int, maps: Tensor, values: Tensor, z: Tensor, key: int = key, layer: int = layer
            ) -> tuple[Tensor, Tensor]:
                without = values.clone()
                without[:, key] = 0.0
                return maps, maps @ without if at == layer else z

            moved = reference(model, ids, change).stream[layer + 1].detach()
            plain = known.stream[layer + 1].detach()
            for i in range(STEPS):
                expected[i, key] = 1 - moved[i] @ plain[i] / moved[i].norm() / plain[i].norm()
        expected /= expected.sum(1, keepdim=True)
        np.testing.assert_allclose(
            sink.array(f"{place(layer)}:attention/value_zeroing"), expected, rtol=1e-4, atol=1e-7
        )


def test_torch_layers_that_would_run_fused() -> None:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True).eval()
    model, sink, x = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval(), Listed(), torch.randn(1, 5, 8)
    perform(Subject(model=model, kind="vectors", width=8), Batch(x, torch.tensor([5])), sink,
            RunOptions(only=("attention/value_zeroing",)))  # fmt: skip
    values = sink.array("layers.0.self_attn:attention/value_zeroing")
    np.testing.assert_allclose(values.sum(1), 1.0, rtol=1e-5)
    assert torch.backends.mha.get_fastpath_enabled() and not sink.refusals()


@pytest.mark.parametrize("way", WAYS)
def test_sensitivity_by_layer(way: str) -> None:
    model = made(way)
    known = reference(model, models.batch().inputs[1])
    sink = models.run(model, f"residual/sensitivity@directions={WIDTH}")
    found = sink.array("blocks:residual/sensitivity")
    for layer in range(LAYERS):
        expected = torch.zeros(STEPS, STEPS, dtype=torch.float64)
        for t in range(STEPS):
            for unit in range(WIDTH):
                (slope,) = torch.autograd.grad(known.stream[layer + 1][t, unit], known.stream[0], retain_graph=True)
                expected[t] += slope.square().sum(1) / WIDTH
        np.testing.assert_allclose(found[layer], expected.sqrt(), rtol=1e-6, atol=1e-12)


def test_random_directions_say_their_error() -> None:
    model = made("fused")
    exact = models.run(model, f"residual/sensitivity@directions={WIDTH}").array("blocks:residual/sensitivity")
    sink = models.run(model, "residual/sensitivity@queries=2@directions=7")
    found, said = sink.array("blocks:residual/sensitivity"), sink.channel("blocks:residual/sensitivity").method
    assert "2 evenly spaced steps" in said and "about 53%" in said
    assert np.isnan(found[:, 1 : STEPS - 1]).all()
    np.testing.assert_allclose(found[1, -1].sum(), exact[1, -1].sum(), rtol=0.6)
