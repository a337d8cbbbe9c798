"""What blocks of keys take of memory has a limit, before and after they settled; maps stay right, or are not shown."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from written_attention import SAMPLE, T, Written, inputs, plain_softmax, ran

from inspector.engine.attention.written import blocks_of_keys
from inspector.engine.attention.written.blocks_of_keys import Whole

pytestmark = pytest.mark.usefixtures("one_thread")
LAYERS = 4
OF_A_SOFTMAX = 516
"""Bytes of two blocks of three keys: scores, masks and values of one sequence."""


def online(x: Tensor) -> Tensor:
    """Two blocks of three keys."""
    top, total, result = x.new_full((*x.shape[:2], 1), -torch.inf), 0.0, 0.0
    for at in range(0, T, 3):
        s = x @ x[:, at : at + 3].mT / 2
        highest = torch.maximum(top, s.amax(-1, keepdim=True))
        weights, less = (s - highest).exp(), (top - highest).exp()
        total = total * less + weights.sum(-1, keepdim=True)
        result, top = result * less + weights @ x[:, at : at + 3], highest
    return result / total


def layers(x: Tensor) -> Tensor:
    for _ in range(LAYERS):
        x = online(x)
    return x


@pytest.mark.parametrize(("limit", "released"), [(2 * OF_A_SOFTMAX + 2, LAYERS - 2), (1 << 30, 0)])
def test_softmaxes_that_settled_are_let_go_and_maps_are_right(
    limit: int, released: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone: list[int] = []
    before = Whole.release

    def release(self: Whole) -> None:
        before(self)
        gone.append(sum(one.scores.untyped_storage().nbytes() for one in self.blocks if not one.scores.is_meta))

    monkeypatch.setattr(Whole, "release", release)
    monkeypatch.setattr(blocks_of_keys, "MOST_BYTES", limit)
    seen, x = ran(Written(layers).eval(), inputs()), inputs()[SAMPLE]
    assert not any(gone) and len(gone) % max(1, released) == 0 and bool(gone) == bool(released)  # in each call
    for n in range(LAYERS):
        expected = plain_softmax(x @ x.T / 2)
        found = torch.from_numpy(seen.sink.array(f"inner{f'.{n}' if n else ''}:attention")).double()[0]
        torch.testing.assert_close(found, expected, atol=1e-3, rtol=1e-3)
        x = expected @ x


def test_rows_are_compared_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    before = blocks_of_keys._weights

    def weights(blocks: list[blocks_of_keys.Block], rows: slice = slice(None)) -> Tensor:
        found = before(blocks, rows)
        sizes.append(found.numel())
        return found

    monkeypatch.setattr(blocks_of_keys, "AT_ONCE", 2 * T)
    monkeypatch.setattr(blocks_of_keys, "_weights", weights)
    seen, x = ran(Written(online).eval(), inputs()), inputs()[SAMPLE]
    assert sorted(set(sizes))[-2:] == [2 * T, T * T]  # the whole once, where it is shown
    torch.testing.assert_close(seen.map[0], plain_softmax(x @ x.T / 2), atol=1e-3, rtol=1e-3)
