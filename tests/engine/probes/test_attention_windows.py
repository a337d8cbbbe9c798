"""Attention over axes that hold the batch and something else: every window shown is one of the sample selected at."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from attending import probed, reference_layer, weights_of
from torch import Tensor, nn

from inspector.engine.attention.selected_sample import SelectedSample
from inspector.engine.errors import Unsupported

pytestmark = pytest.mark.usefixtures("one_thread")

B, N, W, A, D = 3, 4, 5, 2, 6
"""Samples, windows a sample, steps a window, heads, head width: all different, so that no axis passes for another."""


def by_sample(x: Tensor) -> Tensor:
    """(b, n·w, e) → (b·n, w, e), as window partition is written."""
    return x.view(B, N, W, -1).reshape(B * N, W, -1)


def by_window(x: Tensor) -> Tensor:
    """(b, n·w, e) → (n·b, w, e)."""
    return x.view(B, N, W, -1).transpose(0, 1).reshape(N * B, W, -1)


def flattened(x: Tensor) -> Tensor:
    """(b, n·w, e) → (n·b, w, e), spelled with other functions."""
    return torch.flatten(x.unflatten(1, (N, W)).transpose(0, 1), 0, 1)


class Windows(nn.Module):
    """Self-attention within windows, in heads; `fold` merges the windows and the batch."""

    def __init__(self, fold: Callable[[Tensor], Tensor], by_hand: bool) -> None:
        super().__init__()
        self.fold, self.by_hand = fold, by_hand
        self.qkv = nn.Linear(A * D, 3 * A * D).double()

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (part.unflatten(-1, (A, D)).transpose(1, 2) for part in self.qkv(self.fold(x)).chunk(3, -1))
        if self.by_hand:
            return torch.softmax(q @ k.mT / D**0.5, -1) @ v
        return F.scaled_dot_product_attention(q, k, v)


def expected_maps(model: Windows, x: Tensor) -> Tensor:
    """(n·a, w, w) of one sample (n·w, e), window by window and head by head."""
    maps = []
    for window in x.split(W):
        q, k, _ = (part.unflatten(-1, (A, D)).transpose(0, 1) for part in model.qkv(window).chunk(3, -1))
        maps.append(torch.softmax(q @ k.mT / D**0.5, -1))
    return torch.cat(maps).detach()


@pytest.mark.parametrize("look_at", [0, 1, 2])
@pytest.mark.parametrize("fold", [by_sample, by_window, flattened])
@pytest.mark.parametrize("by_hand", [False, True])
def test_windows_beside_the_batch_are_those_of_the_sample(
    fold: Callable[[Tensor], Tensor], by_hand: bool, look_at: int
) -> None:
    torch.manual_seed(0)
    model, x = Windows(fold, by_hand), torch.randn(B, N * W, A * D, dtype=torch.float64)
    _, seen = probed(model, x, look_at=look_at)
    assert len(seen) == 1 and seen[0].queries_from == "position"
    torch.testing.assert_close(weights_of(seen[0], look_at), expected_maps(model, x[look_at]))
    assert by_hand or (seen[0].check is not None and seen[0].check.passed)
    assert "4 windows" in seen[0].note


@pytest.mark.parametrize("fold", [by_sample, by_window])
@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize("masked", [False, True])
def test_windows_of_multi_head_attention_are_all_shown(
    fold: Callable[[Tensor], Tensor], batch_first: bool, grad: bool, masked: bool
) -> None:
    torch.manual_seed(0)
    module = nn.MultiheadAttention(A * D, A, batch_first=batch_first).double().eval()
    padding = torch.rand(B, N, W) < 0.3
    padding[..., 0] = False

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention = module

        def forward(self, x: Tensor) -> Any:
            y = fold(x)
            y = y if batch_first else y.transpose(0, 1)
            blocked = padding.flatten(0, 1) if fold is by_sample else padding.transpose(0, 1).flatten(0, 1)
            return module(y, y, y, key_padding_mask=blocked if masked else None, average_attn_weights=False)

    x = torch.randn(B, N * W, A * D, dtype=torch.float64)
    with torch.set_grad_enabled(grad):
        plain, ((output, weights), seen) = Model()(x)[0], probed(Model(), x, look_at=1)
    assert torch.equal(output, plain)
    own = weights.detach().view(B, N, A, W, W)[1] if fold is by_sample else weights.detach().view(N, B, A, W, W)[:, 1]
    torch.testing.assert_close(weights_of(seen[0], 1), own.flatten(0, 1), atol=1e-12, rtol=1e-10)
    assert seen[0].check is not None and seen[0].check.passed and "4 windows" in seen[0].note
    if not masked:
        each = [reference_layer(window, module) for window in x[1].split(W)]
        torch.testing.assert_close(weights_of(seen[0], 1), torch.cat(each).detach())


def test_a_mask_for_every_head_of_every_window() -> None:
    torch.manual_seed(0)
    module = nn.MultiheadAttention(A * D, A, batch_first=True).double().train()
    mask = torch.rand(B * N * A, W, W) > 0.6
    mask[..., 0] = False

    def call(x: Tensor) -> Any:
        y = by_sample(x)
        return module(y, y, y, attn_mask=mask, average_attn_weights=False)

    (_, weights), seen = probed(module, torch.randn(B, N * W, A * D, dtype=torch.float64), call, look_at=2)
    own = weights.detach().view(B, N * A, W, W)[2]
    torch.testing.assert_close(weights_of(seen[0], 2), own, atol=1e-12, rtol=1e-10)
    assert seen[0].check is not None and seen[0].check.passed


@pytest.mark.parametrize("norm_first", [False, True])
def test_windows_of_a_fused_encoder_layer(norm_first: bool) -> None:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(A * D, A, 16, batch_first=True, norm_first=norm_first).double().eval()
    x = torch.randn(B, N * W, A * D, dtype=torch.float64)
    with torch.no_grad():
        _, seen = probed(layer, x, lambda x: layer(by_sample(x)), look_at=1)
    y = layer.norm1(x[1]) if norm_first else x[1]
    each = [reference_layer(window, layer.self_attn) for window in y.split(W)]
    torch.testing.assert_close(weights_of(seen[0], 1), torch.cat(each).detach(), atol=1e-12, rtol=1e-10)
    assert seen[0].check is not None and seen[0].check.passed


@pytest.mark.parametrize("kind", ["function", "module", "layer"])
def test_the_check_compares_the_sample_that_is_shown(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Were the queries, keys and values those of another sample, what the call returned for this one would not fit."""
    torch.manual_seed(0)
    right = SelectedSample.part

    def of_another(self: SelectedSample, tensor: Tensor, axis: int = 0) -> Tensor:
        self.sample = (self.sample + 1) % self.batch
        try:
            return right(self, tensor, axis)
        finally:
            self.sample = (self.sample - 1) % self.batch

    module = nn.MultiheadAttention(A * D, A, batch_first=True).double().eval()
    layer = nn.TransformerEncoderLayer(A * D, A, 16, batch_first=True).double().eval()
    calls: dict[str, Callable[[Tensor], Any]] = {
        "function": Windows(by_sample, False),
        "module": lambda x: module(*[by_sample(x)] * 3),
        "layer": lambda x: layer(by_sample(x)),
    }
    x = torch.randn(B, N * W, A * D, dtype=torch.float64)
    for part, passes in ((right, True), (of_another, False)):
        monkeypatch.setattr(SelectedSample, "part", part)
        with torch.no_grad():
            _, seen = probed({"module": module, "layer": layer}.get(kind, calls[kind]), x, calls[kind], look_at=1)  # type: ignore[arg-type]
        assert seen[0].check is not None and seen[0].check.passed is passes


def test_an_order_that_reshapes_leave_open_is_taken_as_one_sample_after_the_other() -> None:
    """With as many windows as samples no shape tells which axis is which; the note says what was assumed."""
    selected = SelectedSample(2, 1, 6, 6)
    selected.reshaped((2, 2, 3), (4, 3))
    assert selected.members(4).tolist() == [2, 3]
    selected = SelectedSample(2, 1, 6, 6)
    selected.reshaped((5, 2, 3), (10, 3))
    assert selected.members(10).tolist() == [1, 3, 5, 7, 9]
    selected.reshaped((2, 5, 3), (10, 3))  # the last one counts
    assert selected.members(10).tolist() == [5, 6, 7, 8, 9]
    selected.reshaped((3, 5, 2, 7), (3, 10, 7))  # any axis
    assert selected.members(10).tolist() == [1, 3, 5, 7, 9]
    selected.reshaped((4, 2, 3), (6, 4))  # entries that mix samples say nothing
    assert selected.members(6).tolist() == [3, 4, 5]


@pytest.mark.parametrize("way", ["heads first", "batch first", "concatenated", "concatenated by name"])
@pytest.mark.parametrize("by_hand", [False, True])
def test_heads_merged_with_the_batch_are_those_of_the_sample(way: str, by_hand: bool) -> None:
    """(a·b, q, d) is as common as (b·a, q, d)."""

    class Merged(nn.Module):
        def merge(self, x: Tensor) -> Tensor:
            heads = x.chunk(A, dim=-1)
            if way == "concatenated":
                return torch.cat(heads, 0)
            if way == "concatenated by name":
                return torch.concat(tensors=heads, dim=-3)
            x = x.view(B, N * W, A, D)
            x = x.permute(2, 0, 1, 3) if way == "heads first" else x.transpose(1, 2)
            return x.reshape(-1, N * W, D)

        def forward(self, x: Tensor) -> Tensor:
            q = self.merge(x)
            if by_hand:
                return torch.bmm(torch.softmax(torch.bmm(q, q.mT) / D**0.5, 2), q)
            return F.scaled_dot_product_attention(q, q, q)

    torch.manual_seed(0)
    x = torch.randn(B, N * W, A * D, dtype=torch.float64)
    _, seen = probed(Merged(), x, look_at=1)
    heads = x[1].view(N * W, A, D).transpose(0, 1)
    torch.testing.assert_close(weights_of(seen[0], 1), torch.softmax(heads @ heads.mT / D**0.5, -1))
    assert "window" not in seen[0].note and seen[0].queries_from == "step"


def test_a_concatenation_of_other_things_says_nothing_about_the_batch() -> None:
    selected = SelectedSample(2, 1, 6, 6)
    selected.joined(((2, 3), (1, 3)), 3)
    selected.joined(((4, 3),), 4)
    selected.joined(((2, 3),), 2)
    assert not selected.merged
    alone = SelectedSample(1, 0, 6, 6)
    alone.joined(((1, 3), (1, 3)), 2)
    alone.reshaped((1, 2, 3), (2, 3))
    selected.reshaped((2, 3), (2, 3))
    selected.reshaped((2, 0, 3), (0, 3))
    assert not alone.merged and not selected.merged
    selected.joined(((2, 3), (2, 3), (2, 3)), 6)
    assert selected.members(6).tolist() == [1, 3, 5]


def test_an_axis_that_is_no_multiple_of_the_batch_is_refused_and_one_entry_is_everybodys() -> None:
    selected = SelectedSample(3, 1, 6, 6)
    with pytest.raises(Unsupported, match="7 entries, not a multiple of the batch of 3"):
        selected.part(torch.zeros(7, 2))
    assert selected.part(torch.zeros(1, 2)).shape == (1, 2) and selected.members(1).tolist() == [0]


def test_what_the_note_says_of_windows() -> None:
    selected, after = SelectedSample(3, 1, 6, 6), "shown one after the other with"
    where = "2 windows of this sample on the batch axis"
    assert selected.window_note(3, 2) == "" == selected.window_note(1, 2)
    assert selected.window_note(6, 2) == f"{where}, taken to lie next to each other, {after} 2 heads each"
    selected.reshaped((3, 2, 5), (6, 5))
    assert selected.window_note(6, 1) == f"{where}, {after} one head each"
    assert SelectedSample(1, 0, 6, 6).window_note(2, 3) == f"{where}, {after} 3 heads each", "there is only one sample"


@pytest.mark.parametrize("order", ["open", "batch first", "batch last"])
def test_what_is_shown_and_what_is_compared_are_the_same_entries(order: str) -> None:
    selected = SelectedSample(3, 1, 6, 6)
    if order != "open":
        selected.reshaped((3, 4, 5) if order == "batch first" else (4, 3, 5), (12, 5))
    entries = [4, 5, 6, 7] if order != "batch last" else [1, 4, 7, 10]
    for axis in (0, 1):
        tensor = torch.arange(12).view(12, 1, 1).expand(12, 2, 3).transpose(0, axis)
        for part in (selected.part(tensor, axis), selected.returned(tensor, axis)):
            assert part.select(1 - axis, 0)[:, 0].tolist() == entries
        one = tensor.narrow(axis, 0, 1)
        assert selected.part(one, axis) is one and torch.equal(selected.returned(one, axis), one)


def test_one_sequence_without_a_batch_axis() -> None:
    class Plain(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return F.scaled_dot_product_attention(x[0], x[0], x[0])[None]

    x = torch.randn(1, W, D, dtype=torch.float64)
    _, seen = probed(Plain(), x)
    torch.testing.assert_close(weights_of(seen[0]), torch.softmax(x @ x.mT / D**0.5, -1))
    assert seen[0].check is not None and seen[0].check.passed and seen[0].note == ""
