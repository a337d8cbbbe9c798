"""A running sum of logarithms is no memory of keys and values, however its terms were multiplied; the attention with
decay that is made of it is a map, against loops in float64."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
import written_scans as w
from listed import Listed
from torch import Tensor

from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline.options import RunOptions
from inspector.engine.pipeline.own_run import perform

pytestmark = pytest.mark.usefixtures("one_thread")
RATES = torch.tensor([0.3, 0.8, 1.1, 0.5], dtype=torch.float64)
ABOVE = torch.ones(w.T, w.T, dtype=torch.bool).triu(1)


def ran(function: Callable[[Tensor], Tensor]) -> Listed:
    sink = Listed()
    batch = Batch(w.given(), torch.full((w.B,), w.T), look_at=w.SAMPLE)
    perform(Subject(model=w.Scanned(function)), batch, sink, RunOptions(only=("states", "attention/maps")))
    return sink


def steps(x: Tensor) -> Tensor:
    return F.softplus(x)


def decays(x: Tensor) -> Tensor:
    """(b, a, t, t) exp of differences of the running sum of logarithms, 4 heads."""
    total = (steps(x) * -RATES).mT.cumsum(-1)
    return torch.exp((total[..., :, None] - total[..., None, :]).masked_fill(ABOVE, -torch.inf))


def powers_alone(x: Tensor) -> Tensor:
    """Probabilities that nothing has happened yet, by rates that are the same at every step."""
    return (steps(x) * -RATES).cumsum(1).exp()


def powers_of_two_factors(x: Tensor) -> Tensor:
    """The same of rates that differ from step to step."""
    return (steps(x) * -torch.sigmoid(x)).cumsum(1).exp()


def scaled_time(x: Tensor) -> Tensor:
    """A time that passes faster or slower, which a layer reads."""
    return torch.tanh((steps(x) * RATES).cumsum(1))


@pytest.mark.parametrize("function", [powers_alone, powers_of_two_factors, scaled_time])
def test_it_has_no_states_and_no_map(function: Callable[[Tensor], Tensor]) -> None:
    names = ran(function).names()
    assert not [name for name in names if name.endswith((":attention", ":h"))], names


def one_group(x: Tensor) -> Tensor:
    """One product of queries and keys for all heads, as the quadratic form of Mamba-2."""
    weights = (x @ x.mT)[:, None] * decays(x)
    return (weights @ x.mT[..., None]).squeeze(-1).mT


def one_group_by_unsqueeze(x: Tensor) -> Tensor:
    return (((x @ x.mT).unsqueeze(1) * decays(x)) @ x.mT.unsqueeze(-1)).squeeze(-1).mT


@pytest.mark.parametrize("function", [one_group, one_group_by_unsqueeze])
def test_one_product_for_all_heads_is_the_map_of_each(function: Callable[[Tensor], Tensor]) -> None:
    sink = ran(function)
    (name,) = [name for name in sink.names() if name.endswith(":attention")]
    x = w.given()[w.SAMPLE]
    rate, expected = steps(x) * RATES, torch.zeros(w.D, w.T, w.T, dtype=torch.float64)
    for head in range(w.D):
        for t in range(w.T):
            for s in range(t + 1):
                expected[head, t, s] = x[t] @ x[s] * torch.exp(-rate[s + 1 : t + 1, head].sum())
    found = torch.from_numpy(sink.array(name)).double()
    torch.testing.assert_close(found.nan_to_num(), expected, rtol=2e-3, atol=2e-3)
