"""What a mask forbids, as it is kept: nothing, the triangle, some keys; and that it is settled once a mask."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from inspector.engine.attention.masks import limit, settle, unreached
from inspector.engine.attention.rows import MASKED
from inspector.engine.attention.selected_sample import SelectedSample

INF = math.inf


def selected() -> SelectedSample:
    return SelectedSample(1, 0, 6, 6)


def grid(mask: Tensor) -> Tensor:
    return mask[(None,) * (4 - mask.dim())]


def test_what_a_mask_is_kept_as() -> None:
    triangle = torch.ones(4, 4, dtype=torch.bool).tril()
    for mask in (
        triangle,
        torch.zeros(4, 4).masked_fill(~triangle, -INF),
        torch.zeros(4, 4).masked_fill(~triangle, MASKED),
    ):
        found = settle(selected(), grid(mask), MASKED, None)
        assert found.causal and found.mask is None and found.first_query == 0
    for mask in (torch.ones(2, 4, dtype=torch.bool), torch.zeros(2, 4)):
        found = settle(selected(), grid(mask), MASKED, None)
        assert not found.causal and found.mask is None
    later = torch.ones(2, 5, dtype=torch.bool).tril(3)
    found = settle(selected(), grid(later), MASKED, None)
    assert (
        not found.causal and found.first_query == 3 and found.mask is not None and torch.equal(found.mask[0, 0], later)
    )
    upper = torch.ones(2, 5, dtype=torch.bool).tril()  # the first queries of fewer: no place among the keys is known
    found = settle(selected(), grid(upper), MASKED, None)
    assert found.first_query == 0 and not found.causal and found.mask is not None
    row = torch.tensor([[True, False, True]])
    assert settle(selected(), grid(row), MASKED, None).first_query == 0
    more_rows = torch.ones(5, 2, dtype=torch.bool).tril(-3)
    assert settle(selected(), grid(more_rows), MASKED, None).mask is not None
    slopes = -torch.arange(4.0).expand(4, 4)
    found = settle(selected(), grid(slopes), MASKED, None)
    assert found.mask is not None and torch.equal(found.mask[0, 0], slopes)
    weak = torch.zeros(4, 4).masked_fill(~triangle, MASKED + 1)
    assert settle(selected(), grid(weak), MASKED, None).mask is not None
    assert not settle(selected(), grid(weak), MASKED, None).causal


def test_a_mask_is_settled_once_until_it_is_written_to() -> None:
    one, source = selected(), torch.zeros(3, 3)
    first = settle(one, grid(source), MASKED, source)
    assert settle(one, grid(source), MASKED, source) is first
    assert settle(one, grid(source)[..., :2], MASKED, source) is not first, "another part of it"
    again = settle(one, grid(source), MASKED, source)
    assert settle(one, grid(source), 2 * MASKED, source) is not again, "another limit"
    source[0, 1] = -INF
    changed = settle(one, grid(source), MASKED, source)
    assert changed.mask is not None and first.mask is None
    source[0, 1] = 0.0
    assert changed.mask[0, 0, 0].tolist() == [True, False, True], "what is kept is a copy"


def test_a_few_masks_are_remembered_and_none_of_inference_mode() -> None:
    one, masks = selected(), [torch.zeros(2, 2) for _ in range(6)]
    for mask in masks:
        settle(one, grid(mask), MASKED, mask)
    assert list(one.masks) == [id(mask) for mask in masks[-4:]]
    with torch.inference_mode():
        hidden = torch.zeros(2, 2)
        settle(one, grid(hidden), MASKED, hidden)
    assert id(hidden) not in one.masks, "torch does not count writes to it"


def test_keys_that_no_row_may_look_at() -> None:
    mask = torch.tensor([[True, True, False], [True, False, False]])
    assert unreached(mask, False, 2, MASKED) and not unreached(mask, False, 1, MASKED)
    additive = torch.zeros(2, 3).masked_fill(~mask, MASKED)
    assert unreached(additive, False, 2, MASKED) and not unreached(additive, False, 2, 2 * MASKED)
    assert unreached(None, True, 1, MASKED) and not unreached(None, False, 1, MASKED)
    assert not unreached(mask[:, :1], False, 2, MASKED), "one entry stands for every key"


@pytest.mark.parametrize("dtype", [torch.bool, torch.float32])
def test_only_an_additive_mask_has_a_limit(dtype: torch.dtype) -> None:
    query = key = torch.full((1, 1, 2, 4), 100.0)
    found = limit(torch.zeros(2, 2, dtype=dtype), query, key, 1.0)
    assert found == (0.0 if dtype == torch.bool else -2 * 40_000.0 - 750.0)
