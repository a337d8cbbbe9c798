"""Scores, a decay and values in one einsum of three and four operands, against loops in float64."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from listed import Listed
from torch import Tensor, nn

from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform

pytestmark = pytest.mark.usefixtures("one_thread")
WIDTH, STEPS, SAMPLE = 4, 6, 1
LATER = torch.arange(STEPS)[:, None] >= torch.arange(STEPS)
DECAY = 0.8 ** (torch.arange(STEPS)[:, None] - torch.arange(STEPS)).double() * LATER
Way = Callable[[Tensor, Tensor, Tensor], Tensor]

WAYS: dict[str, tuple[Way, Tensor]] = {
    "decay": (lambda q, k, v: torch.einsum("btd,bsd,ts,bsv->btv", q, k, DECAY, v), DECAY),
    "another order": (lambda q, k, v: torch.einsum("bsv,ts,bsd,btd->btv", v, DECAY, k, q), DECAY),
    "a list, and numbers for letters": (
        lambda q, k, v: torch.einsum("...td,...sd,ts,...sv->...tv", [q, k, DECAY, v]),
        DECAY,
    ),
    "a causal mask": (lambda q, k, v: torch.einsum("btd,bsd,ts,bsv->btv", q, k, LATER.double(), v), LATER.double()),
    "no decay": (lambda q, k, v: torch.einsum("btd,bsd,bsv->btv", q, k, v), torch.ones(STEPS, STEPS).double()),
    "a result in another order": (lambda q, k, v: torch.einsum("btd,bsd,ts,bsv->vbt", q, k, DECAY, v)
                                  .permute(1, 2, 0), DECAY),
}  # fmt: skip


class AtOnce(nn.Module):
    def __init__(self, way: Way) -> None:
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(WIDTH, width) for width in (3, 3, 5))
        self.way = way

    def forward(self, x: Tensor) -> Tensor:
        return self.way(self.q(x), self.k(x), self.v(x))


def run(model: nn.Module, x: Tensor, only: str = "attention/maps") -> Listed:
    sink = Listed()
    batch = Batch(x, torch.full((len(x),), x.shape[1]), look_at=SAMPLE)
    perform(Subject(model=model, kind="vectors", width=WIDTH), batch, sink, RunOptions(only=(only,)))
    return sink


@pytest.mark.parametrize("way", WAYS)
def test_weights_inside_one_einsum_are_a_map(way: str) -> None:
    torch.manual_seed(2)
    call, factor = WAYS[way]
    model, x = AtOnce(call).double(), torch.randn(3, STEPS, WIDTH, generator=torch.Generator().manual_seed(6)).double()
    q, k = model.q(x[SAMPLE]).detach().numpy(), model.k(x[SAMPLE]).detach().numpy()
    expected = np.zeros((1, STEPS, STEPS))
    for t in range(STEPS):
        for s in range(STEPS):
            expected[0, t, s] = float(factor[t, s]) * sum(q[t, d] * k[s, d] for d in range(3))
    sink = run(model, x)
    np.testing.assert_allclose(sink.array("model:attention").astype(float), expected, atol=2e-3)
    if not bool((factor > 0).all()):
        allowed = sink.array("model:attention/allowed")
        np.testing.assert_array_equal(allowed[0], np.zeros(STEPS))
        np.testing.assert_array_equal(allowed[1], np.arange(STEPS))


GATED: dict[str, Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]] = {
    "of each key": lambda q, k, v, g: torch.einsum("btd,bsd,bs,bsv->btv", q, k, g, v),
    "of each query": lambda q, k, v, g: torch.einsum("btd,bsd,bt,bsv->btv", q, k, g, v),
    "of each key, with a decay": lambda q, k, v, g: torch.einsum("btd,bsd,ts,bs,bsv->btv", q, k, DECAY, g, v),
}


@pytest.mark.parametrize("way", GATED)
def test_a_gate_among_the_operands_is_a_factor_and_no_weights_of_its_own(way: str) -> None:
    torch.manual_seed(4)
    gate = nn.Linear(WIDTH, 1).double()
    x = torch.randn(3, STEPS, WIDTH, generator=torch.Generator().manual_seed(8)).double()
    model = AtOnce(lambda q, k, v: GATED[way](q, k, v, torch.sigmoid(gate(x))[..., 0])).double()
    model.gate = gate
    with torch.no_grad():
        q, k, g = model.q(x[SAMPLE]).numpy(), model.k(x[SAMPLE]).numpy(), torch.sigmoid(gate(x[SAMPLE]))[:, 0].numpy()
    expected = np.zeros((1, STEPS, STEPS))
    for t in range(STEPS):
        for s in range(STEPS):
            factor = g[t] if "query" in way else g[s]
            factor *= float(DECAY[t, s]) if "decay" in way else 1
            expected[0, t, s] = factor * sum(q[t, d] * k[s, d] for d in range(3))
    sink = run(model, x)
    np.testing.assert_allclose(sink.array("model:attention").astype(float), expected, atol=2e-3)


class Shared(nn.Module):
    """Two heads of queries and keys that read the same values, with a learned factor for each query and key."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(WIDTH, n) for n in (2 * width, 2 * width, 5))
        self.factor = nn.Parameter(torch.rand(STEPS, STEPS))

    def forward(self, x: Tensor) -> Tensor:
        q, k = (layer(x).unflatten(-1, (2, -1)) for layer in (self.q, self.k))
        return torch.einsum("bthd,bshd,ts,bsv->bthv", q, k, self.factor, self.v(x)).flatten(2)


@pytest.mark.parametrize("width", [3, STEPS], ids=["three features", "as many features as steps"])
def test_heads_that_share_values_are_heads(width: int) -> None:
    torch.manual_seed(5)
    model = Shared(width).double()
    x = torch.randn(3, STEPS, WIDTH, generator=torch.Generator().manual_seed(9)).double()
    with torch.no_grad():
        q, k = (layer(x[SAMPLE]).reshape(STEPS, 2, width).numpy() for layer in (model.q, model.k))
        factor = model.factor.numpy()
    expected = np.zeros((2, STEPS, STEPS))
    for h in range(2):
        for t in range(STEPS):
            for s in range(STEPS):
                expected[h, t, s] = factor[t, s] * np.dot(q[t, h], k[s, h])
    np.testing.assert_allclose(run(model, x).array("model:attention").astype(float), expected, atol=5e-3)


class Heads(nn.Module):
    """Mamba-2's quadratic form with two heads and a decay of its own for each."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(WIDTH, 2 * width) for width in (3, 3, 5))
        self.decay = nn.Linear(WIDTH, 2)

    def decays(self, x: Tensor) -> Tensor:
        """(b, t, s, h)."""
        passed = torch.nn.functional.logsigmoid(self.decay(x)).cumsum(1)
        return (passed[:, :, None] - passed[:, None]).exp() * LATER[..., None]

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (layer(x).unflatten(-1, (2, -1)) for layer in (self.q, self.k, self.v))
        return torch.einsum("bthd,bshd,btsh,bshv->bthv", q, k, self.decays(x), v).flatten(2)


def test_heads_inside_one_einsum() -> None:
    torch.manual_seed(3)
    model, x = Heads().double(), torch.randn(3, STEPS, WIDTH, generator=torch.Generator().manual_seed(7)).double()
    with torch.no_grad():
        q, k = (layer(x[SAMPLE]).reshape(STEPS, 2, 3).numpy() for layer in (model.q, model.k))
        gate = torch.sigmoid(model.decay(x[SAMPLE])).numpy()
    expected = np.zeros((2, STEPS, STEPS))
    for h in range(2):
        for t in range(STEPS):
            for s in range(t + 1):
                expected[h, t, s] = np.prod(gate[s + 1 : t + 1, h]) * np.dot(q[t, h], k[s, h])
    np.testing.assert_allclose(run(model, x).array("model:attention").astype(float), expected, atol=2e-3)


class Trilinear(nn.Module):
    """Sums of three factors that are no attention: nothing is both summed over positions and read by queries."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.einsum("btd,bte,btf->bde", x, x, x)


def test_other_sums_of_three_are_none() -> None:
    sink = run(Trilinear(), torch.randn(3, STEPS, WIDTH))
    assert not [name for name in sink.names() if "attention" in name]
