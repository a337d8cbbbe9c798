"""Divergence of heads against the definition, pair by pair."""

from __future__ import annotations

import math

import attended_models as models
import numpy as np
import pytest
import torch
from attended_models import HEADS, LAYERS, STEPS, WAYS, made, place, reference

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize("way", WAYS)
def test_divergence_of_every_pair(way: str) -> None:
    model = made(way)
    sink, known = models.run(model, "attention/redundancy"), reference(model, models.batch().inputs[1])
    for layer in range(LAYERS):
        maps, expected = known.maps[layer].detach(), torch.zeros(HEADS, HEADS, dtype=torch.float64)
        for a in range(HEADS):
            for b in range(HEADS):
                for q in range(STEPS):
                    for k in range(q + 1):
                        one, two = float(maps[a, q, k]), float(maps[b, q, k])
                        middle = (one + two) / 2
                        expected[a, b] += (one * math.log(one / middle) + two * math.log(two / middle)) / 2 / STEPS
        found = sink.array(f"{place(layer)}:attention/redundancy")
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)
        assert (np.diag(found) == 0).all() and 0 < found[0, 1] < math.log(2)
