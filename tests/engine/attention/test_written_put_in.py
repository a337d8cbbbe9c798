"""Masks that are put in by operations of any kind: told by what took the place of a score, or by autograd's graph."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from written_attention import SAMPLE, T, Written, chain, inputs, plain_softmax, ran

from inspector.engine.attention.written import unreached

pytestmark = pytest.mark.usefixtures("one_thread")

CAUSAL = torch.ones(T, T, dtype=torch.bool).tril()
UPTO = torch.where(CAUSAL, math.inf, -1e9).double()
MAY = CAUSAL.double()
LEAST = float(torch.finfo(torch.float32).min)


def scores(x: Tensor) -> Tensor:
    return x @ x.mT / math.sqrt(x.shape[-1])


def like(s: Tensor) -> Tensor:
    return torch.full_like(s, -1e9)


Way = Callable[[Tensor], Tensor]
TAKEN: dict[str, Way] = {
    "minimum": lambda s: torch.minimum(s, UPTO),
    "minimum, the other way": lambda s: torch.minimum((MAY - 1) * 1e9 + 1e8 * MAY, s),
    "min of two": lambda s: torch.min(s, UPTO),
    "fmin": lambda s: torch.fmin(s, UPTO),
    "clamp": lambda s: s.clamp(max=UPTO),
    "clip": lambda s: torch.clip(s, None, UPTO),
    "lerp from the mask": lambda s: torch.lerp(torch.tensor(-1e9, dtype=s.dtype), s, MAY.expand_as(s)),
    "lerp to the mask": lambda s: s.lerp(like(s), 1 - MAY.expand_as(s)),
    "masked_scatter": lambda s: s.masked_scatter(~CAUSAL, like(s)),
    "masked_scatter in place": lambda s: s.clone().masked_scatter_(~CAUSAL, like(s)),
    "where, of several numbers": lambda s: torch.where(CAUSAL, s, -1e9 - torch.arange(T).double()[:, None]),
    "maximum of a sum": lambda s: torch.maximum(s + (1 - MAY) * LEAST, torch.tensor(LEAST).to(s)),
    "max of a sum": lambda s: torch.max(s + (1 - MAY) * -1e9, torch.full_like(s, LEAST)),
    "clamp of infinity": lambda s: (s + torch.where(CAUSAL, 0.0, -math.inf)).clamp(min=LEAST),
    "minimum, then scaled": lambda s: torch.minimum(s * 4, UPTO) / 4,
}
"""Ways that are known by the values that they take."""
OTHER: dict[str, Way] = {
    "index_copy": lambda s: torch.stack(
        [s[:, n].index_copy(1, torch.arange(n + 1, T), like(s[:, n, n + 1 :])) for n in range(T)], 1
    ),
    "slice_scatter": lambda s: torch.stack(
        [torch.slice_scatter(s[:, n], like(s[:, n, n + 1 :]), 1, n + 1, T) for n in range(T)], 1
    ),
    "put": lambda s: s.put((~CAUSAL).expand_as(s).flatten().nonzero()[:, 0], like(s)[(~CAUSAL).expand_as(s)]),
    "gather of two": lambda s: torch.stack([like(s), s], -1).gather(-1, CAUSAL.long().expand_as(s)[..., None])[..., 0],
    "gather of two that moved": lambda s: (
        torch.stack([like(s), s]).flatten(2).take_along_dim(CAUSAL.long().flatten()[None, None], 0)[0].view_as(s)
    ),
}
"""Ways of which only autograd's graph says what they do."""


def by_softmax(s: Tensor) -> Tensor:
    return s.softmax(-1)


def by_exp(s: Tensor) -> Tensor:
    powers = (s - s.amax(-1, keepdim=True)).exp()
    return powers / powers.sum(-1, keepdim=True)


@pytest.mark.parametrize("norm", [by_softmax, by_exp])
@pytest.mark.parametrize("way", [*TAKEN, *OTHER])
def test_masks_are_drawn_as_masked(way: str, norm: Way) -> None:
    x, put = inputs(), {**TAKEN, **OTHER}[way]
    s = torch.where(CAUSAL, scores(x), -math.inf)
    torch.testing.assert_close(put(scores(x)).softmax(-1), s.softmax(-1))  # the way that is tried masks
    seen = chain(lambda x: norm(put(scores(x))) @ x, plain_softmax(scores(x)[SAMPLE], CAUSAL)[None], x)
    assert seen.sink.array("inner:attention/allowed").tolist() == [[0] * T, list(range(T))]


def without_graph(forward: Way) -> Way:
    """In inference mode, which no later call can make a graph of."""

    def run(x: Tensor) -> Tensor:
        with torch.inference_mode():
            return forward(x)

    return run


@pytest.mark.parametrize("way", TAKEN)
def test_without_a_graph_they_are_told_by_what_is_put_in(way: str) -> None:
    x = inputs()
    forward = without_graph(lambda x: by_softmax(TAKEN[way](scores(x))) @ x)
    seen = ran(Written(forward).eval(), x)
    torch.testing.assert_close(seen.map[0], plain_softmax(scores(x)[SAMPLE], CAUSAL), atol=2**-25, rtol=2**-10)
    assert seen.sink.array("inner:attention/allowed").tolist() == [[0] * T, list(range(T))]


@pytest.mark.parametrize("norm", [by_softmax, by_exp])
def test_a_model_that_turns_autograd_off_is_called_again_with_it(norm: Way) -> None:
    def forward(x: Tensor) -> Tensor:
        with torch.no_grad():
            return norm(OTHER["put"](scores(x))) @ x

    x = inputs()
    seen = chain(forward, plain_softmax(scores(x)[SAMPLE], CAUSAL)[None], x)
    assert seen.sink.array("inner:attention/allowed").tolist() == [[0] * T, list(range(T))]


@pytest.mark.parametrize("norm", [by_softmax, by_exp])
@pytest.mark.parametrize("way", OTHER)
def test_what_nothing_tells_is_refused(way: str, norm: Way) -> None:
    seen = ran(Written(without_graph(lambda x: norm(OTHER[way](scores(x))) @ x)).eval(), inputs())
    assert "inner:attention" not in seen.sink.names()
    assert "of its scores are -1e+09, a mask or not" in str(seen.sink.refusals())


@pytest.mark.parametrize("graph", [True, False])
def test_low_scores_of_the_model_are_no_mask(graph: bool) -> None:
    """Scores of −10⁵ that depend on queries and keys, some of them alike where one token is there twice."""
    x = inputs()
    x[:, 4] = x[:, 2]
    forward = lambda x: by_softmax(scores(x) * 1e5) @ x  # noqa: E731
    seen = ran(Written(forward if graph else without_graph(forward)).eval(), x)
    torch.testing.assert_close(seen.map[0], plain_softmax(scores(x)[SAMPLE] * 1e5), atol=2**-25, rtol=2**-10)
    assert seen.sink.array("inner:attention/allowed").tolist() == [[0] * T, [T - 1] * T]


def test_masks_of_distances_before_softmin() -> None:
    x = inputs()
    far = torch.cdist(x, x)
    expected = plain_softmax(-far[SAMPLE], CAUSAL)[None]
    seen = chain(lambda x: F.softmin(torch.cdist(x, x).masked_fill(~CAUSAL, 1e9), -1) @ x, expected, x)
    assert seen.sink.array("inner:attention/allowed").tolist() == [[0] * T, list(range(T))]


def test_asking_the_graph_leaves_the_random_numbers_of_the_model() -> None:
    """What the model draws after it is what it draws in a plain call."""
    x, drawn = inputs(), list[Tensor]()

    def forward(x: Tensor) -> Tensor:
        y = by_softmax(OTHER["put"](scores(x))) @ x
        drawn.append(torch.rand(3))
        return y

    torch.manual_seed(11)
    plain = Written(forward).eval()(x)
    ran(Written(forward).eval(), x)
    assert len(drawn) > 1 and plain.shape == x.shape
    np.testing.assert_array_equal(drawn[-1], drawn[0])


def test_powers_of_complex_numbers_are_no_scores() -> None:
    assert unreached.low(torch.full((3, 3), complex(-1e4, 1.0)), None) is None
    assert unreached.low(torch.full((3, 3), -1e4), None) is not None
