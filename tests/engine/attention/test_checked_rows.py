"""A few rows are computed anew and compared with what the call returned: rounding passes, another mask does not."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from inspector.engine.attention.calls import attend, check
from inspector.engine.attention.selected_sample import SelectedSample
from inspector.engine.cells.check import Check

pytestmark = pytest.mark.usefixtures("one_thread")


def repeated(steps: int) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values (1, 1, steps, 8) of 20 different tokens that repeat: each sum rounds the same way on."""
    generator = torch.Generator().manual_seed(0)
    return tuple(  # type: ignore[return-value]
        torch.randn(20, 8, generator=generator)[torch.arange(steps) % 20][None, None] + 0.5 for _ in range(3)
    )


def compared(steps: int, returned: Tensor, given: tuple[Tensor, Tensor, Tensor]) -> Check:
    selected = SelectedSample(1, 0, steps, steps)
    seen = attend(selected, "layer", "Layer", given[0], given[1], causal=True)
    return check(seen, given[2], lambda rows: returned[0, :, rows].transpose(0, 1), lambda heads, _rows: heads)


def test_many_keys_that_repeat_are_rounding() -> None:
    given = repeated(12_000)
    assert compared(12_000, F.scaled_dot_product_attention(*given, is_causal=True), given).passed


def test_one_key_too_many_is_not() -> None:
    given = repeated(400)
    right = F.scaled_dot_product_attention(*given, is_causal=True)
    assert compared(400, right, given).passed
    one_later = torch.ones(400, 400, dtype=torch.bool).tril(1)
    assert not compared(400, F.scaled_dot_product_attention(*given, attn_mask=one_later), given).passed
    assert not compared(400, F.scaled_dot_product_attention(*given), given).passed
