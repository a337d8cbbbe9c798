"""Masks of every kind: drawn as masked, never as 0; finite ones told from real scores, with their margin."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from written_attention import SAMPLE, B, Seen, T, Written, chain, inputs, plain_softmax, ran

pytestmark = pytest.mark.usefixtures("one_thread")

ALL = ("attention/maps", "attention/entropy", "attention/mask_margin")
CAUSAL = torch.ones(T, T, dtype=torch.bool).tril()
LENGTHS = [T, 4, 5]
PADDING = torch.arange(T)[None] < torch.tensor(LENGTHS)[:, None]
SPREAD = (torch.arange(T)[:, None] - torch.arange(T)).abs() % 2 == 0
"""Every other key: no span."""


def scores(x: Tensor) -> Tensor:
    return x @ x.mT / math.sqrt(x.shape[-1])


def assigned(x: Tensor, may: Tensor, value: float) -> Tensor:
    filled = scores(x).clone()
    filled[~may.expand_as(filled)] = value
    return filled


def in_place(x: Tensor, may: Tensor, value: float) -> Tensor:
    return scores(x).masked_fill_(~may, value)


WAYS: dict[str, Callable[[Tensor, Tensor, float], Tensor]] = {
    "masked_fill": lambda x, may, value: scores(x).masked_fill(~may, value),
    "masked_fill of a function": lambda x, may, value: torch.masked_fill(scores(x), ~may, value),
    "in place": in_place,
    "assigned": assigned,
    "where": lambda x, may, value: torch.where(may, scores(x), value),
    "where with a tensor": lambda x, may, value: torch.where(may, scores(x), torch.full_like(scores(x), value)),
    "where, the other way": lambda x, may, value: torch.where(~may, torch.tensor(value, dtype=x.dtype), scores(x)),
    "added": lambda x, may, value: scores(x) + torch.zeros_like(scores(x)).masked_fill(~may, value),
    "added, not kept": lambda x, may, value: scores(x) + torch.where(may, 0.0, value),
    "subtracted": lambda x, may, value: scores(x) - torch.where(may, 0.0, -value),
    "masked, then scaled": lambda x, may, value: scores(2 * x).masked_fill(~may, value) / 4,
    "masked, then moved": lambda x, may, value: scores(x).masked_fill(~may, value).mT.contiguous().transpose(1, 2),
}


@pytest.mark.parametrize("value", [-math.inf, -1e9, -1e4, float(torch.finfo(torch.float32).min)])
@pytest.mark.parametrize("way", WAYS)
def test_masks_of_scores(way: str, value: float) -> None:
    x = inputs()
    seen = chain(
        lambda x: WAYS[way](x, CAUSAL, value).softmax(-1) @ x, plain_softmax(scores(x)[SAMPLE], CAUSAL)[None], x
    )
    assert seen.sink.array("inner:attention/allowed").tolist() == [[0] * T, list(range(T))]
    assert "inner:attention/mask" not in seen.sink.names()


@pytest.mark.parametrize("kind", ["padding", "spread", "both", "by head"])
@pytest.mark.parametrize("written", [True, False])
def test_masks_that_are_no_span_are_written_whole(kind: str, written: bool) -> None:
    x = inputs(d=8)
    own = x.unflatten(-1, (2, 4)).transpose(1, 2)
    may = {
        "padding": PADDING[:, None, None], "spread": SPREAD[None, None], "both": SPREAD & PADDING[:, None, None],
        "by head": torch.stack([SPREAD, CAUSAL])[None],
    }[kind]  # fmt: skip

    def forward(x: Tensor) -> Tensor:
        q = x.unflatten(-1, (2, 4)).transpose(1, 2)
        if written:
            return ((q @ q.mT / 2).masked_fill(~may, -1e9).softmax(-1) @ q).transpose(1, 2).flatten(2)
        return F.scaled_dot_product_attention(q, q, q, attn_mask=may).transpose(1, 2).flatten(2)

    grid = may.expand(B, 2, T, T)[SAMPLE]
    expected = plain_softmax(own[SAMPLE] @ own[SAMPLE].mT / 2, grid)
    seen = chain(forward, expected, x)
    if kind == "padding":
        assert "inner:attention/mask" not in seen.sink.names()
        assert seen.sink.array("inner:attention/allowed").tolist() == [[0] * T, [3] * T]
    else:
        mask = seen.sink.array("inner:attention/mask").astype(bool)
        np.testing.assert_array_equal(np.broadcast_to(mask, grid.shape), ~grid.numpy())


def margins(raw: Tensor, may: Tensor, value: float, added: bool) -> list[float]:
    """By loops: the least allowed score minus the largest masked one, NaN for rows without a masked key."""
    found = []
    for q in range(T):
        open_ = [float(raw[q, k]) for k in range(T) if may[q, k]]
        shut = [value + (float(raw[q, k]) if added else 0.0) for k in range(T) if not may[q, k]]
        found.append(min(open_) - max(shut) if open_ and shut else math.nan)
    return found


@pytest.mark.parametrize("value", [-1e9, -1e4, -50.0])
@pytest.mark.parametrize("way", ["masked_fill", "where", "added", "function"])
def test_the_margin_of_finite_masks(way: str, value: float) -> None:
    if value == -50.0 and way in ("added", "function"):
        return  # an addition of −50 may be a bias
    x = inputs()

    def forward(x: Tensor) -> Tensor:
        if way == "function":
            mask = torch.zeros(T, T, dtype=x.dtype).masked_fill(~CAUSAL, value)
            return F.scaled_dot_product_attention(x, x, x, attn_mask=mask)
        return WAYS[way](x, CAUSAL, value).softmax(-1) @ x

    seen = ran(Written(forward).eval(), x, quantities=ALL)
    got = seen.sink.array("inner:attention/mask_margin")[0]
    expected = margins(scores(x)[SAMPLE], CAUSAL, value, added=way in ("added", "function"))
    np.testing.assert_allclose(got, expected, rtol=1e-9)
    assert seen.sink.scalars()["inner:attention/mask_margin"] == pytest.approx(np.nanmin(expected))
    assert not leaks(seen)


def leaks(seen: Seen) -> list[str]:
    return [text for text in seen.logged() if "finite mask" in text]


@pytest.mark.parametrize("shut", [[2], [0, 1, 2, 3, 4, 5]])
def test_rows_whose_keys_are_all_masked_by_a_finite_number_are_counted(shut: list[int]) -> None:
    """An inverted mask: the softmax knows no masked keys, so that the weights are those of the scores that are left."""
    may, x = CAUSAL.clone(), inputs()
    may[shut] = False
    asked = (*ALL, "structure/query")
    seen = ran(Written(lambda x: scores(x).masked_fill(~may, -1e9).softmax(-1) @ x).eval(), x, quantities=asked)
    got = seen.sink.array("inner:attention/mask_margin")[0]
    assert np.flatnonzero(got == -np.inf).tolist() == [row for row in range(T) if row in shut]
    assert seen.sink.scalars()["inner:attention/rows_all_masked"] == sum(row < T for row in shut)
    np.testing.assert_allclose(seen.map[0, 2], np.full(T, 1 / T), rtol=1e-3)  # as float16
    assert any("Is the mask inverted?" in text for text in seen.logged()) and not leaks(seen)
    if len(shut) < T:  # of the rows that are left the query is seen, and that of the even row is not counted
        assert bool((seen.sink.array("inner:structure/query") > 1e-3).all())
    else:
        assert bool(np.isnan(seen.sink.array("inner:structure/query")).all())


@pytest.mark.parametrize("way", ["masked_fill", "function"])
def test_a_mask_of_infinity_has_no_margin(way: str) -> None:
    def forward(x: Tensor) -> Tensor:
        if way == "function":
            return F.scaled_dot_product_attention(x, x, x, is_causal=True)
        return WAYS[way](x, CAUSAL, -math.inf).softmax(-1) @ x

    seen = ran(Written(forward).eval(), inputs(), quantities=ALL)
    assert "inner:attention/mask_margin" not in seen.sink.names() and not leaks(seen)


@pytest.mark.parametrize("way", ["masked_fill", "function"])
def test_a_mask_that_leaks_is_shown_as_it_works_and_said(way: str) -> None:
    """−10 instead of scores that are not much larger, −10⁴ added to scores of that size: masked keys have weight."""
    x, value = inputs() * (1.0 if way == "masked_fill" else 200.0), -10.0 if way == "masked_fill" else -1e4

    def forward(x: Tensor) -> Tensor:
        if way == "function":
            mask = torch.zeros(T, T, dtype=x.dtype).masked_fill(~CAUSAL, value)
            return F.scaled_dot_product_attention(x, x, x, attn_mask=mask)
        return scores(x).masked_fill(~CAUSAL, value).softmax(-1) @ x

    raw = scores(x)[SAMPLE]
    given = raw.masked_fill(~CAUSAL, value) if way == "masked_fill" else raw + torch.where(CAUSAL, 0.0, value)
    seen = ran(Written(forward).eval(), x, quantities=ALL)
    torch.testing.assert_close(seen.map[0], plain_softmax(given), atol=1e-6, rtol=2**-10)
    assert bool((seen.map[0][~CAUSAL] > 0).any())
    assert len(leaks(seen)) == 1


def test_scores_that_are_large_and_negative_are_no_mask() -> None:
    """A model's own scores of −2000 have no weight and are not masked."""
    x = inputs()

    def forward(x: Tensor) -> Tensor:
        return (scores(x) * torch.tensor([1.0] * (T - 1) + [2e4], dtype=x.dtype) - 0.0).softmax(-1) @ x

    seen = ran(Written(forward).eval(), x, quantities=ALL)
    assert seen.sink.array("inner:attention/allowed").tolist() == [[0] * T, [T - 1] * T]
    assert bool((seen.map[..., -1] == 0).any())


def test_a_row_without_a_key_is_nan_and_masked() -> None:
    may = CAUSAL.clone()
    may[2] = False
    x = inputs()
    expected = plain_softmax(scores(x)[SAMPLE], may)[None]
    assert bool(expected[0, 2].isnan().all())
    seen = ran(Written(lambda x: scores(x).masked_fill(~may, -math.inf).softmax(-1) @ x).eval(), x)
    torch.testing.assert_close(seen.map, expected, equal_nan=True, atol=1e-6, rtol=2**-10)
    assert seen.sink.scalars()["inner:attention/rows_without_keys"] == 1


def test_a_mask_after_the_softmax_is_a_mask() -> None:
    x = inputs()

    def forward(x: Tensor) -> Tensor:
        weights = scores(x).softmax(-1) * CAUSAL
        return (weights / weights.sum(-1, keepdim=True)) @ x

    seen = chain(forward, plain_softmax(scores(x)[SAMPLE], CAUSAL)[None], x)
    assert seen.sink.array("inner:attention/allowed").tolist() == [[0] * T, list(range(T))]
    half = scores(x)[SAMPLE].softmax(-1) * CAUSAL
    seen = ran(Written(lambda x: (scores(x).softmax(-1) * CAUSAL) @ x).eval(), x)
    torch.testing.assert_close(seen.map[0], half, atol=1e-6, rtol=2**-10)


def test_padding_that_is_added_as_one_minus_the_mask_times_a_large_number() -> None:
    """As BERT does it: (b, 1, 1, k) added to (b, a, q, k)."""
    x = inputs(d=8)

    def forward(x: Tensor) -> Tensor:
        q = x.unflatten(-1, (2, 4)).transpose(1, 2)
        extended = (1.0 - PADDING.to(x.dtype)[:, None, None]) * torch.finfo(x.dtype).min
        return ((q @ q.mT + extended).softmax(-1) @ q).transpose(1, 2).flatten(2)

    own = x[SAMPLE].unflatten(-1, (2, 4)).transpose(0, 1)
    expected = plain_softmax(own @ own.mT, PADDING[SAMPLE].expand(T, T))
    seen = chain(forward, expected, x)
    assert seen.sink.array("inner:attention/allowed").tolist() == [[0] * T, [3] * T]
