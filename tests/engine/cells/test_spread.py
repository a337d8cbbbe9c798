"""The folded way back through single steps against Jᵀ u, and gradients at pre-activations that are not written down."""

from __future__ import annotations

import pytest
import torch
from families import FAMILIES, make, numbers, walk
from torch import Tensor

from inspector.engine.cells import spread_block as module
from inspector.engine.cells.base import Cell
from inspector.engine.cells.function_cell import FunctionStep
from inspector.engine.cells.spread_block import SpreadBlock

CLOSE = {"rtol": 1e-11, "atol": 1e-13}
ROWS = (1, 2, 7)


def one_block(cell: Cell, t: int = 4) -> SpreadBlock:
    x = numbers(t, 1, 3)
    states = walk(cell, x)
    block = cell.block(x, states[:-1], states[1:])
    assert isinstance(block, SpreadBlock)
    return block


def slow(cell: Cell, block: SpreadBlock, rows: Tensor, at: int) -> Tensor:
    """Jᵀ u of one step by torch.func."""
    own = FunctionStep(cell.step, cell.parts).block(block.x, block.previous, block.following)
    return rows @ own.jacobian()[at, 0]


@pytest.mark.parametrize("tile", [1, 2 * 5 * 8, 1 << 20])
@pytest.mark.parametrize("family", FAMILIES)
def test_back_and_pull_are_the_jacobian_of_the_step(monkeypatch: pytest.MonkeyPatch, family: str, tile: int) -> None:
    torch.manual_seed(0)
    monkeypatch.setattr(module, "TILE_BYTES", tile)
    cell = make(family)
    block = one_block(cell)
    for n in ROWS:
        for at in range(4):
            rows = numbers(n, cell.state_size)
            back, pulled = rows.clone(), rows.clone()
            block.back_(back, at)
            block.pull_(pulled, at)
            torch.testing.assert_close(back, slow(cell, block, rows, at), **CLOSE)
            torch.testing.assert_close(pulled, back, **CLOSE)


def test_a_step_that_is_only_a_function_goes_back_too() -> None:
    torch.manual_seed(1)
    cell = FunctionStep(make("gru").step, {"h": slice(0, 5)})
    x = numbers(3, 1, 3)
    states = walk(cell, x)
    block = cell.block(x, states[:-1], states[1:])
    rows = numbers(4, 5)
    back = rows.clone()
    block.back_(back, 1)
    torch.testing.assert_close(back, rows @ block.jacobian()[1, 0], **CLOSE)


@pytest.mark.parametrize("family", [name for name in FAMILIES if name != "projected"])
def test_spread_rows_have_the_norms_sums_and_products_of_the_gradients_they_stand_for(family: str) -> None:
    torch.manual_seed(2)
    block = one_block(make(family))
    probes = {signal: numbers(3, spread.dense(numbers(1, block.shape[2]), 0).shape[1])
              for signal, spread in block.spreads.items()}  # fmt: skip
    for at in range(4):
        rows = numbers(6, block.shape[2])
        gradients = block.pull_(rows.clone(), at)
        block.open_(rows, at)
        product = rows @ block.folded(at, block.weights(probes)).T
        first = len(block.w_back)
        torch.testing.assert_close(product[:, :first], gradients[block.recurrent] @ block.w_back.T, **CLOSE)
        for signal in sorted(block.spreads, key=lambda name: name != block.recurrent):
            spread, wanted = block.spreads[signal], gradients[signal]
            torch.testing.assert_close((rows * spread.lengths[at]).norm(dim=1), wanted.norm(dim=1), **CLOSE)
            torch.testing.assert_close(
                spread.each(rows.sum(0, keepdim=True), slice(at, at + 1))[0], wanted.sum(0), **CLOSE
            )
            torch.testing.assert_close(product[:, first : first + 3], wanted @ probes[signal].T, **CLOSE)
            first += 3
        assert first == product.shape[1]


def test_what_is_not_finite_stays_so() -> None:
    torch.manual_seed(3)
    block = one_block(make("lstm"))
    block.previous[2, 0, 7] = torch.nan  # one entry of c
    rows = numbers(3, 10)
    block.back_(rows, 2)
    assert bool(rows[:, :5].isnan().all())
    whole = torch.zeros(3, 10, dtype=rows.dtype)
    whole[1, 0] = torch.inf
    block.back_(whole, 0)
    assert not bool(whole[1].isfinite().all()) and bool((whole[::2] == 0).all())


@pytest.mark.parametrize("family", FAMILIES)
def test_pushed_is_the_jacobian_of_the_step(family: str) -> None:
    """Forward as well: J v of many rows at one step, in closed form where there is one."""
    torch.manual_seed(2)
    cell = make(family)
    block = one_block(cell)
    own = FunctionStep(cell.step, cell.parts).block(block.x, block.previous, block.following).jacobian()
    for n in ROWS:
        for at in range(4):
            rows = numbers(n, cell.state_size)
            given = rows.clone()
            moved = block.pushed(rows, at)
            if moved is None:
                assert getattr(cell, "w_hr", None) is not None
                continue
            torch.testing.assert_close(moved, rows @ own[at, 0].T, **CLOSE)
            assert torch.equal(rows, given)
