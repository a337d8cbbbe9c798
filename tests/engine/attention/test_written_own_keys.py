"""Attention in which each query has keys of its own: the nearest of a memory, neighbours by an index."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from written_attention import QUANTITIES, SAMPLE, D, T, Written, inputs, plain_softmax, ran

pytestmark = pytest.mark.usefixtures("one_thread")

NEAREST = 3
MEMORY = torch.linspace(-1, 1, 11 * D, dtype=torch.float64).sin().mul(7).cos().reshape(11, D)


def nearest(x: Tensor) -> Tensor:
    """(b, t, d) the weighted sum of the three entries of a memory that each query likes best."""
    top, index = (x @ MEMORY.T).topk(NEAREST, -1)
    return (top.softmax(-1)[..., None] * MEMORY[index]).sum(-2)


def test_the_nearest_of_a_memory_are_keys_of_each_query_and_queries_are_no_heads() -> None:
    x = inputs()
    seen = ran(Written(nearest).eval(), x, quantities=(*QUANTITIES, "attention/largest_logit"))
    rows = [sorted((float(q @ entry) for entry in MEMORY), reverse=True)[:NEAREST] for q in x[SAMPLE]]
    expected = plain_softmax(torch.tensor(rows, dtype=torch.float64))[None]
    assert seen.map.shape == (1, T, NEAREST)
    torch.testing.assert_close(seen.map, expected, atol=1e-6, rtol=2**-10)
    assert "keys of its own" in seen.method
    channel = seen.sink.channel(f"{seen.place}:attention")
    assert channel.domains["key"] == "key of its own" and channel.domains["query"] == "step"
    largest = torch.as_tensor(seen.sink.array(f"{seen.place}:attention/largest_logit"))
    torch.testing.assert_close(largest.double(), torch.tensor(rows).double().amax(-1)[None], atol=1e-5, rtol=1e-5)


def test_heads_that_pool_over_as_many_steps_stay_heads() -> None:
    """(b, a, t) with as many heads as steps: keys are the steps, and there is one query."""
    x = inputs()
    pooled = ran(Written(lambda x: ((x @ x.mT).softmax(-1)[..., None] * x[:, None].expand(-1, T, -1, -1)).sum(2)), x)
    assert pooled.map.shape[-1] == T
