"""The largest score of each query, however the model writes its softmax: that of its keys, before anything was
subtracted from them; and masks that are added inside of a product or so many times."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from written_attention import SAMPLE, T, Written, inputs, plain_softmax, ran

pytestmark = pytest.mark.usefixtures("one_thread")
LARGEST = "attention/largest_logit"
SINK = 3.0
AT = 0.5
AFTER = torch.ones(T, T).triu(1)
MAY = AFTER == 0


def scores(x: Tensor) -> Tensor:
    return 0.5 * x @ x.mT


def shifted(x: Tensor) -> Tensor:
    s = scores(x)
    return (s - s.amax(-1, keepdim=True)).softmax(-1) @ x


def shifted_in_place(x: Tensor) -> Tensor:
    s = scores(x)
    s -= s.max(-1, keepdim=True).values
    return s.softmax(-1) @ x


def shifted_by_one_number(x: Tensor) -> Tensor:
    s = scores(x)
    return (s - s.max()).softmax(-1) @ x


def shifted_then_masked(x: Tensor) -> Tensor:
    s = scores(x)
    return (s - s.amax(-1, keepdim=True)).masked_fill(~MAY, -math.inf).softmax(-1) @ x


def shifted_over_queries(x: Tensor) -> Tensor:
    """Queries last."""
    s = scores(x)
    return ((s - s.amax(-2, keepdim=True)).softmax(-2)).mT @ x


def sink(x: Tensor) -> Tensor:
    s = scores(x)
    whole = torch.cat((s, torch.full_like(s[..., :1], SINK)), -1)
    return whole.softmax(-1)[..., :-1] @ x


def shifted_sink_first(x: Tensor) -> Tensor:
    s = scores(x)
    whole = torch.cat((torch.full_like(s[..., :1], SINK), s), -1)
    return (whole - whole.amax(-1, keepdim=True)).softmax(-1)[..., 1:] @ x


def two_memories(x: Tensor) -> Tensor:
    weights = scores(x).softmax(-1)
    return weights[..., :2] @ x[:, :2] + weights[..., 2:] @ x[:, 2:]


def not_shifted(x: Tensor) -> Tensor:
    """What is subtracted is a mean, which is a part of the scores."""
    s = scores(x)
    return (s - s.mean(-1, keepdim=True)).softmax(-1) @ x


def own(x: Tensor) -> Tensor:
    return 0.5 * x[SAMPLE] @ x[SAMPLE].T


def top(s: Tensor) -> list[float]:
    return [max(row) for row in s.tolist()]


def masked_top(s: Tensor) -> list[float]:
    return [max(row[: q + 1]) for q, row in enumerate(s.tolist())]


WAYS: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Tensor], list[float]]]] = {
    "shifted": (shifted, top),
    "shifted in place": (shifted_in_place, top),
    "shifted by one number": (shifted_by_one_number, top),
    "shifted, then masked": (shifted_then_masked, masked_top),
    "shifted, queries last": (shifted_over_queries, top),
    "sink": (sink, top),
    "shifted, sink first": (shifted_sink_first, top),
    "two memories": (two_memories, top),
    "not shifted": (not_shifted, lambda s: [max(row) - sum(row) / T for row in s.tolist()]),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_it_is_that_of_the_keys_as_the_model_computed_it(way: str, dtype: torch.dtype) -> None:
    function, expected = WAYS[way]
    x = inputs(dtype=dtype)
    seen = ran(Written(function).eval(), x, quantities=(LARGEST,))
    found = torch.from_numpy(seen.sink.array(f"inner:{LARGEST}"))[0]
    torch.testing.assert_close(found.double(), torch.tensor(expected(own(x.double()))).double(), atol=2e-5, rtol=1e-5)


def test_it_is_refused_where_the_softmax_was_written_over_its_scores() -> None:
    def over(x: Tensor) -> Tensor:
        with torch.no_grad():
            s = scores(x).masked_fill(~MAY, -math.inf)
            torch.softmax(s, -1, out=s)
            return s @ x

    seen = ran(Written(over).eval(), inputs(), quantities=(LARGEST, "attention/maps"))
    assert "scores are not known" in seen.sink.refusals()[f"inner:{LARGEST}"]
    torch.testing.assert_close(seen.map[0], plain_softmax(own(inputs()), MAY), atol=1e-3, rtol=1e-3)


def into_other_memory(x: Tensor) -> Tensor:
    s, found = scores(x), torch.empty(len(x), T, T, dtype=x.dtype)
    with torch.no_grad():
        torch.softmax(s, -1, out=found)
    return found @ x


def test_it_is_known_where_the_softmax_was_written_elsewhere() -> None:
    seen = ran(Written(into_other_memory).eval(), inputs(), quantities=(LARGEST,))
    found = torch.from_numpy(seen.sink.array(f"inner:{LARGEST}"))[0]
    torch.testing.assert_close(found.double(), torch.tensor(top(own(inputs()))).double(), atol=2e-5, rtol=1e-5)


BIAS = -(torch.arange(T)[:, None] - torch.arange(T)).abs().double()
ADDED: dict[str, tuple[Callable[[Tensor], Tensor], Tensor]] = {
    "baddbmm": (lambda x: torch.baddbmm(-1e9 * AFTER.to(x), x, x.mT, alpha=0.5), torch.zeros(())),
    "baddbmm with beta": (lambda x: torch.baddbmm(AFTER.to(x), x, x.mT, beta=-1e4, alpha=0.5), torch.zeros(())),
    "baddbmm with slopes": (lambda x: torch.baddbmm(BIAS - 1e9 * AFTER, x, x.mT, alpha=0.5), BIAS),
    "add with alpha": (lambda x: torch.add(scores(x), AFTER.to(x), alpha=-1e9), torch.zeros(())),
    "method with alpha": (lambda x: scores(x).add(AFTER.to(x), alpha=-1e9), torch.zeros(())),
    "sub with alpha": (lambda x: torch.sub(scores(x), AFTER.to(x), alpha=1e9), torch.zeros(())),
}


@pytest.mark.parametrize("way", ADDED)
@pytest.mark.parametrize("graph", [True, False], ids=["with a graph", "without"])
def test_masks_that_are_added_with_a_factor_or_in_a_product_are_masks(way: str, graph: bool) -> None:
    function, bias = ADDED[way]

    def attend(x: Tensor) -> Tensor:
        with torch.set_grad_enabled(graph and torch.is_grad_enabled()):
            return function(x).softmax(-1) @ x

    seen = ran(Written(attend).eval(), inputs(), quantities=("attention/maps",))
    torch.testing.assert_close(seen.map[0], plain_softmax(own(inputs()) + bias, MAY), atol=1e-3, rtol=1e-3)
    first, last = seen.sink.array("inner:attention/allowed").tolist()
    assert (first, last) == ([0] * T, list(range(T)))


def test_a_bias_in_a_product_is_no_mask() -> None:
    def attend(x: Tensor) -> Tensor:
        return torch.baddbmm(BIAS, x, x.mT, alpha=0.5).softmax(-1) @ x

    seen = ran(Written(attend).eval(), inputs(), quantities=("attention/maps",))
    assert seen.sink.array("inner:attention/allowed").tolist() == [[0] * T, [T - 1] * T]


@pytest.mark.parametrize("way", ["shifted", "shifted in place", "sink", "shifted, sink first"])
def test_what_clipping_changes_is_counted_of_these_scores(way: str) -> None:
    """Clamped to ±at; a sink stays as it is."""
    seen = ran(Written(WAYS[way][0]).eval(), inputs(), quantities=(f"attention/clipped@at={AT}",))
    s, before = own(inputs()).tolist(), []
    for row in s:
        each = []
        for one in (row, [max(-AT, min(AT, score)) for score in row]):
            powers = [math.exp(score) for score in one]
            total = sum(powers) + (math.exp(SINK) if "sink" in way else 0.0)
            each.append([power / total for power in powers])
        before.append(sum(abs(a - b) for a, b in zip(*each, strict=True)) / 2)
    beyond = sum(abs(score) > AT for row in s for score in row) / T**2
    expected = torch.tensor([max(map(max, s)), beyond, sum(before) / T, max(before)])
    assert 0 < beyond < 1
    found = torch.from_numpy(seen.sink.array("inner:attention/clipped"))[0]
    torch.testing.assert_close(found.float(), expected, atol=1e-5, rtol=1e-5)


def test_a_dropout_behind_a_sink_changes_nothing() -> None:
    def dropped(x: Tensor) -> Tensor:
        s = scores(x)
        whole = torch.cat((s, torch.full_like(s[..., :1], SINK)), -1)
        return F.dropout(whole.softmax(-1)[..., :-1], 0.5, training=True) @ x

    seen = ran(Written(dropped).train(), inputs(), quantities=(LARGEST,))
    found = torch.from_numpy(seen.sink.array(f"inner:{LARGEST}"))[0]
    torch.testing.assert_close(found.double(), torch.tensor(top(own(inputs()))).double(), atol=2e-5, rtol=1e-5)
