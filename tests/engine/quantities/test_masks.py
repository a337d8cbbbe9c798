"""Masks of units that are open, and the paths through them, counted one by one."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from kept import Kept
from models import OnlyOutput
from path_runs import D, run
from torch import Tensor, nn

from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform
from inspector.engine.quantities.jacobian.masks import dense_pairs, open_paths, powers, products
from inspector.engine.trace.emitter import Emitter

# -- ReLU


def last_step_only(output: Tensor, batch: Batch) -> Tensor:
    """L is given at s_5: the loss of step 5 (counted from 1) reads that state, no other step has one."""
    weights = torch.arange(1.0, 5.0, dtype=D)
    loss = output.new_full(output.shape[:2], torch.nan)
    loss[:, 4] = (output[:, 4] * weights).sum(-1)
    return loss


def test_the_relu_quiz() -> None:
    """What is dL/ds_1 when L is given at s_5? The product of masked weights: s_1 → s_2 → … → s_5, open units only."""
    torch.manual_seed(1)
    rnn = nn.RNN(3, 4, nonlinearity="relu", batch_first=True)
    net, kept = OnlyOutput(rnn).double().eval(), Kept()
    x = torch.randn(1, 5, 3, dtype=D)
    subject = Subject(model=net, kind="vectors", width=3, loss=last_step_only)
    trace = perform(
        subject, Batch(x, torch.tensor([5])), kept, RunOptions(only=("masks", "gradient/lag_map", "gradients"))
    )

    w, u, b = rnn.weight_ih_l0.detach(), rnn.weight_hh_l0.detach(), (rnn.bias_ih_l0 + rnn.bias_hh_l0).detach()
    s, masks = torch.zeros(4, dtype=D), []
    for row in x[0]:
        a = w @ row + u @ s + b
        masks.append((a > 0).double())
        s = a.clamp(min=0)
    np.testing.assert_array_equal(kept.array("rnn.l0:mask"), torch.stack(masks))
    assert 0 < kept.array("rnn.l0:mask").mean() < 1, "a quiz with every unit open asks nothing"
    product = torch.eye(4, dtype=D)
    for t in (1, 2, 3, 4):  # s_2 … s_5, counted from 0
        product = torch.diag(masks[t]) @ u @ product
    answer = product.T @ torch.arange(1.0, 5.0, dtype=D)
    assert float(answer.norm()) > 0
    item = trace.recurrences[0]
    assert item.delta is not None
    torch.testing.assert_close(item.delta[0, 0], answer, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(kept.array("rnn.l0:gradient/lag_map")[4, 0], float(answer.norm()), rtol=1e-12)
    np.testing.assert_allclose(kept.array("rnn.l0:gradient/state_norm")[0], float(answer.norm()), rtol=1e-12)
    np.testing.assert_allclose(kept.array("rnn.l0:mask/masked_product")[4], float(product.norm()) / 2, rtol=1e-12)


def test_masks_of_every_layer_and_direction_in_sequence_order() -> None:
    trace, kept = run("relu", ("masks",))
    for item in trace.recurrences:
        order = slice(None, None, -1) if item.reverse else slice(None)
        expected = (item.states[1 : item.length(1) + 1, 1] > 0).double().numpy()[order]
        np.testing.assert_array_equal(kept.array(f"{item.place}:mask"), expected)
        np.testing.assert_allclose(kept.array(f"{item.place}:mask/open_share"), expected.mean(1))


def brute(weights: Tensor, masks: Tensor, lags: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Every unit sequence written out: shares of open paths, joined pairs, product norms, per start and lag."""
    t, h = masks.shape
    paths, pairs, norms = (np.full((t - 1, lags + 1), np.nan) for _ in range(3))
    for k in range(t - 1):
        paths[k, 0], pairs[k, 0], norms[k, 0] = 1.0, 1 / h, 1.0
        for lag in range(1, min(lags, t - 1 - k) + 1):
            open_count, joined, product = 0, set(), np.zeros((h, h))
            for units in itertools.product(range(h), repeat=lag + 1):
                alive = all(masks[k + i, units[i]] for i in range(1, lag + 1))
                open_count += alive
                weight = np.prod([float(weights[units[i], units[i - 1]]) for i in range(1, lag + 1)])
                if alive and weight != 0:
                    joined.add((units[-1], units[0]))
                product[units[-1], units[0]] += alive * weight
            paths[k, lag] = open_count / h ** (lag + 1)  # the unit at the start is free: its h choices cancel
            pairs[k, lag] = len(joined) / h**2
            norms[k, lag] = np.linalg.norm(product) / math.sqrt(h)
    return paths, pairs, norms


@pytest.mark.parametrize("sparse", [False, True])
def test_open_paths_and_joined_pairs_are_counted_one_by_one(sparse: bool) -> None:
    torch.manual_seed(7)
    weights = torch.randn(3, 3, dtype=D)
    if sparse:
        weights[torch.rand(3, 3) < 0.5] = 0
    masks = (torch.rand(8, 3) < 0.7).double()
    masks[:, 0] = torch.where(masks.sum(1) == 0, 1.0, masks[:, 0])
    paths, pairs, norms = brute(weights, masks, 4)
    np.testing.assert_allclose(open_paths(masks, 4), np.nanmedian(paths, axis=0), rtol=1e-12)
    expected = np.nanmedian(norms, axis=0)
    found_norms, found_pairs = products(weights, masks, list(range(7)), 4, Emitter(Kept()))
    np.testing.assert_allclose(found_pairs, np.nanmean(pairs, axis=0), rtol=1e-12)
    np.testing.assert_allclose(found_norms, expected, rtol=1e-10)
    if not sparse:
        np.testing.assert_allclose(dense_pairs(masks, 4), np.nanmean(pairs, axis=0), rtol=1e-12)


def test_a_step_that_closes_every_unit_closes_every_path() -> None:
    masks = torch.ones(6, 3, dtype=D)
    masks[3] = 0
    shares, pairs = open_paths(masks, 4), dense_pairs(masks, 4)
    assert shares[0] == 1 and shares[3] == 0  # every window of three steps holds step 3
    np.testing.assert_allclose(pairs, [1 / 3, 4 / 5, 2 / 4, 0.0, 0.0])


def test_powers_of_the_weights() -> None:
    torch.manual_seed(2)
    w = torch.randn(4, 4, dtype=D)
    expected = [float(torch.linalg.matrix_power(w, n).norm()) / 2 for n in range(9)]
    np.testing.assert_allclose(powers(w, 8), expected, rtol=1e-12)
    assert (powers(torch.zeros(4, 4), 3)[1:] == 0).all() and math.isinf(float(powers(1e200 * w, 3)[2]))


def test_wide_relu_layers_say_that_products_cost_too_much() -> None:
    net = OnlyOutput(nn.RNN(2, 400, nonlinearity="relu", batch_first=True)).eval()
    kept = Kept()
    perform(Subject(model=net, kind="vectors", width=2), Batch(torch.randn(1, 300, 2), torch.tensor([300])), kept,
            RunOptions(only=("masks",)))  # fmt: skip
    assert [r.channel for r in kept.refusals()] == ["rnn.l0:mask/masked_product"]
    assert {"rnn.l0:mask/open_paths", "rnn.l0:mask/open_pairs"} <= kept.names()
