"""Truncated BPTT against explicit sums of single items from autograd, in float64."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from kept import Kept
from torch import Tensor

from inspector.engine.analyses import itemised_bptt as itemised
from inspector.engine.cells.base import Cell
from inspector.engine.cells.function_cell import FunctionStep
from inspector.engine.cells.gru import GruStep
from inspector.engine.cells.lstm import LstmStep
from inspector.engine.cells.rnn import RnnStep
from inspector.engine.quantities.gradient import truncation as module
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.trace import Recurrence
from inspector.records import Channel

D = torch.float64
T, H, I = 14, 4, 3  # noqa: E741


def own_function(x: Tensor, state: Tensor, U: Tensor, W: Tensor) -> Tensor:
    return torch.tanh(x @ U.T + state @ W.T) / 2 + state / 2


def make_cell(kind: str) -> Cell:
    torch.manual_seed(0)
    if kind == "own":
        given = {"U": torch.randn(H, I, dtype=D), "W": torch.randn(H, H, dtype=D)}
        return FunctionStep(own_function, {"h": slice(0, H)}, parameters=given)
    g = {"lstm": 4, "gru": 3, "tanh": 1, "relu": 1}[kind]
    weights = [torch.randn(g * H, n, dtype=D) * 0.5 for n in (I, H)] + [torch.randn(g * H, dtype=D) for _ in range(2)]
    if kind in ("lstm", "gru"):
        return (LstmStep if kind == "lstm" else GruStep)(*weights)
    return RnnStep(*weights, kind)


def recurrence(cell: Cell, t: int = T, i: int = I, *, reverse: bool = False) -> Recurrence:
    torch.manual_seed(1)
    x, states = torch.randn(t, 2, i, dtype=D), [torch.zeros(2, cell.state_size, dtype=D)]
    for row in x:
        states.append(cell.step(row, states[-1]))
    arriving = torch.randn(t, 2, cell.state_size, dtype=D)
    return Recurrence("p", "Own", cell, x, torch.stack(states), torch.tensor([t, t]), reverse, arriving=arriving)


def items_of(item: Recurrence, sample: int) -> dict[str, Tensor]:
    """{parameter: (t, k, p)}: autograd, with leaves of its own for every step, over the plain step function."""
    cell = item.cell
    leaves = [{n: v.clone().requires_grad_() for n, v in cell.parameters().items()} for _ in range(item.length(sample))]
    found = {n: torch.zeros(len(leaves), len(leaves), v.numel(), dtype=D) for n, v in cell.parameters().items()}
    state = item.states[0, sample : sample + 1]
    for t, leaf in enumerate(leaves):
        state = cell.with_parameters(leaf).step(item.x[t, sample : sample + 1], state)
        own = (item.arriving[t, sample] * state).sum()
        for name in leaf:
            copies = [other[name] for other in leaves[: t + 1]]
            for k, gradient in enumerate(torch.autograd.grad(own, copies, retain_graph=True)):
                found[name][t, k] = gradient.flatten()
    return found


def cut(items: Tensor, k: int) -> Tensor:
    """g_K: items of pairs less than K steps apart."""
    t = len(items)
    near = (torch.arange(t)[:, None] - torch.arange(t)) < k
    return (items * near[:, :, None]).sum((0, 1))


@pytest.mark.parametrize("kind", ["lstm", "gru", "tanh", "relu", "own"])
def test_error_cosine_and_smallest_k_equal_explicit_sums(kind: str) -> None:
    item, kept = recurrence(make_cell(kind)), Kept()
    module.truncation.function(item, Emitter(kept), 1)
    items = items_of(item, 1)
    items["all"] = torch.cat(list(items.values()), 2)
    for name, own in items.items():
        table = kept.array(f"p:truncation/{name}")
        assert table[0].tolist() == list(range(1, T + 1))
        g = own.sum((0, 1))
        for j, k in enumerate(range(1, T + 1)):
            g_k = cut(own, k)
            np.testing.assert_allclose(table[1, j], float((g_k - g).norm() / g.norm()), rtol=1e-9, atol=1e-13)
            cosine = float((g_k * g).sum() / g_k.norm() / g.norm())
            np.testing.assert_allclose(table[2, j], cosine, rtol=1e-9)
            np.testing.assert_allclose(table[3, j], sum(t - s < k for t in range(T) for s in range(t + 1)) / 105)
        for tolerance, text in ((0.1, "10"), (0.01, "1")):
            told = kept.scalar(f"p:truncation/{name}/smallest_k_{text}_percent")
            assert told == next(k for k in range(1, T + 1) if (cut(own, k) - g).norm() <= tolerance * g.norm())


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("kind", ["lstm", "gru", "own"])
def test_the_smallest_k_of_every_step(kind: str, reverse: bool) -> None:
    item, kept = recurrence(make_cell(kind), reverse=reverse), Kept()
    assert item.arriving is not None
    item.arriving[5, 0] = 0
    module.truncation.function(item, Emitter(kept), 0)
    found = kept.array("p:truncation/adaptive")[:, :: -1 if reverse else 1]
    items = torch.cat(list(items_of(item, 0).values()), 2)
    for t in range(T):
        g = items[t].sum(0)
        for row, tolerance in zip(found, (0.1, 0.01), strict=True):
            if t == 5:
                assert math.isnan(row[t])
                continue
            errors = [float((items[t, : t + 1 - k].sum(0)).norm() / g.norm()) for k in range(1, t + 2)]
            assert row[t] == next(k + 1 for k, error in enumerate(errors) if error <= tolerance)


def test_a_long_sequence_has_spaced_k_and_the_rest_is_still_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    item, whole, thin = recurrence(make_cell("gru"), 90), Kept(), Kept()
    module.truncation.function(item, Emitter(whole), 0)
    truth = whole.array("p:truncation/weight_hh")
    monkeypatch.setattr(module, "BAND_BYTES", 20 * 48 * 8)
    module.truncation.function(item, Emitter(thin), 0)
    table = thin.array("p:truncation/weight_hh")
    assert table[0, 0] == 1 and table[0, -1] == 90 and 4 <= table.shape[1] < 20
    at = table[0].astype(int) - 1
    np.testing.assert_allclose(table, truth[:, at], rtol=1e-9, atol=1e-13)
    short = Kept()
    monkeypatch.setattr(module, "SWEEP_SECONDS", itemised.seconds(item.cell, itemised.pairs(90, 20), 90))
    module.truncation.function(item, Emitter(short), 0)
    table = short.array("p:truncation/weight_hh")
    assert 2 < table[0, -1] <= 20 and "adaptive" not in " ".join(
        r.name for r in short.records if isinstance(r, Channel)
    )
    at = table[0].astype(int) - 1
    np.testing.assert_allclose(table, truth[:, at], rtol=1e-9, atol=1e-13)
    assert "do not fit" in short.reasons()[0]


def test_projected_items_are_close(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(5)
    cell = LstmStep(*(torch.randn(80, n, dtype=D) * 0.2 for n in (20, 20)), *torch.randn(2, 80, dtype=D))
    item, exact, thin = recurrence(cell, 40, 20), Kept(), Kept()
    module.truncation.function(item, Emitter(exact), 0)
    monkeypatch.setattr(module, "ITEM_BYTES", 40 * 40 * 70 * 8)
    module.truncation.function(item, Emitter(thin), 0)
    assert "random projections" in thin.channel("p:truncation/adaptive").method
    off = np.abs(thin.array("p:truncation/adaptive") - exact.array("p:truncation/adaptive"))
    assert off.mean() < 0.5 and off.max() <= 2


def test_a_hundred_thousand_steps_have_a_plan() -> None:
    cell = LstmStep(*(torch.zeros(256, 64) for _ in range(2)), None, None)
    item = Recurrence("p", "LSTM", cell, torch.zeros(0), torch.zeros(0), torch.tensor([100_000]))
    ks = module.lengths_tried(item, 100_000)
    assert 50 < ks[-1] < 1000 and len(ks) > 10
    huge = Recurrence("p", "LSTM", cell, torch.zeros(0), torch.zeros(0), torch.tensor([10_000_000]))
    with pytest.raises(itemised.Unsupported, match="at least"):
        module.lengths_tried(huge, 10_000_000)


def test_one_step_is_its_own_gradient() -> None:
    kept = Kept()
    module.truncation.function(recurrence(make_cell("gru"), 1), Emitter(kept), 0)
    np.testing.assert_allclose(kept.array("p:truncation/weight_ih")[:, 0], [1, 0, 1, 1])
    assert kept.scalar("p:truncation/all/smallest_k_1_percent") == 1


def test_a_gradient_that_is_only_rounding_has_no_cosine() -> None:
    """A weight of which the state does not depend but for rounding: its sums are 10⁻²⁰ of the others'."""

    def barely(x: Tensor, state: Tensor, U: Tensor, W: Tensor, N: Tensor) -> Tensor:
        return torch.tanh(x @ U.T + state @ W.T) / 2 + state / 2 + 1e-20 * N

    torch.manual_seed(0)
    given = {"U": torch.randn(H, I, dtype=D), "W": torch.randn(H, H, dtype=D), "N": torch.randn(H, dtype=D)}
    item = recurrence(FunctionStep(barely, {"h": slice(0, H)}, parameters=given))
    kept = Kept()
    module.truncation.function(item, Emitter(kept), 1)
    table = kept.array("p:truncation/N")
    assert np.isnan(table[1:3]).all() and np.isfinite(table[[0, 3]]).all()
    assert kept.channel("p:truncation/N").title == "N, no gradient"
    assert math.isnan(kept.scalar("p:truncation/N/smallest_k_1_percent"))
    assert np.isfinite(kept.array("p:truncation/U")).all() and np.isfinite(kept.array("p:truncation/all")).all()
