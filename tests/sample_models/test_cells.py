"""Every cell written by hand against a textbook loop of its own, unit by unit, or against torch's module, in float64."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import Tensor, nn

from sample_models import cells, deep
from sample_models.base import seeded

Array = npt.NDArray[np.float64]
INPUTS, HIDDEN, STEPS, BATCH = 3, 5, 7, 2
PHI = {
    "identity": lambda a: a,
    "tanh": np.tanh,
    "relu": lambda a: np.maximum(a, 0),
    "hardtanh": lambda a: np.clip(a, -1, 1),
    "logistic": lambda a: 1 / (1 + np.exp(-a)),
    "softplus": lambda a: np.log1p(np.exp(a)),
}
sigma = PHI["logistic"]


def sequence() -> Tensor:
    """(b, t, i), large enough for every activation to bend."""
    return 2 * torch.randn(BATCH, STEPS, INPUTS, dtype=torch.float64, generator=torch.Generator().manual_seed(3))


def made(cell: type[nn.Module], *arguments: object) -> nn.Module:
    with seeded(1):
        return cell(INPUTS, HIDDEN, *arguments).double()


def weights(cell: nn.Module) -> dict[str, Array]:
    return {name: weight.detach().numpy() for name, weight in cell.named_parameters()}


def affine(w: dict[str, Array], name: str, *parts: Array) -> Array:
    """W [x; h] + b as a sum over entries, part by part."""
    offset, total = 0, w[f"{name}.bias"].copy()
    for part in parts:
        for j, value in enumerate(part):
            total += w[f"{name}.weight"][:, offset + j] * value
        offset += len(part)
    return total


def states_of(unrolled: nn.Module) -> Array:
    with torch.no_grad():
        return unrolled(sequence())[0].numpy()


@pytest.mark.parametrize("activation", cells.ACTIVATIONS)
def test_elman(activation: str) -> None:
    cell = made(cells.ElmanCell, activation)
    w, x = weights(cell), sequence().numpy()
    found = states_of(cells.Unrolled(cell))
    for b in range(BATCH):
        h = np.zeros(HIDDEN)
        for t in range(STEPS):
            h = PHI[activation](w["from_input.weight"] @ x[b, t] + w["from_state.weight"] @ h + w["from_input.bias"])
            np.testing.assert_allclose(found[b, t], h, rtol=1e-12)


@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_elman_is_torchs_where_torch_has_it(activation: str) -> None:
    cell = made(cells.ElmanCell, activation)
    rnn = nn.RNN(INPUTS, HIDDEN, nonlinearity=activation, batch_first=True, dtype=torch.float64)
    with torch.no_grad():
        rnn.weight_ih_l0.copy_(cell.from_input.weight)
        rnn.weight_hh_l0.copy_(cell.from_state.weight)
        rnn.bias_ih_l0.copy_(cell.from_input.bias)
        rnn.bias_hh_l0.zero_()
        np.testing.assert_allclose(states_of(cells.Unrolled(cell)), rnn(sequence())[0].numpy(), rtol=1e-11)


def test_an_unknown_activation_is_refused() -> None:
    with pytest.raises(ValueError, match="no activation 'sine'; there are identity, tanh, relu"):
        cells.ElmanCell(1, 2, "sine")


@pytest.mark.parametrize("skip", [1, 3])
def test_skip_through_time(skip: int) -> None:
    cell = made(cells.SkipThroughTime, skip)
    w, x = weights(cell), sequence().numpy()
    found = states_of(cells.Unrolled(cell))
    for b in range(BATCH):
        past = [np.zeros(HIDDEN) for _ in range(skip)]
        for t in range(STEPS):
            h = np.tanh(
                w["from_input.weight"] @ x[b, t] + w["from_input.bias"]
                + w["from_state.weight"] @ past[-1] + w["from_skipped.weight"] @ past[-skip]
            )  # fmt: skip
            past.append(h)
            np.testing.assert_allclose(found[b, t], h, rtol=1e-12)


def test_the_state_that_skips_holds_the_last_steps_newest_first() -> None:
    cell = made(cells.SkipThroughTime, 3)
    with torch.no_grad():
        states, last = cells.Unrolled(cell)(sequence())
    torch.testing.assert_close(last, states[:, [-1, -2, -3]].flatten(1))


def test_simplified_gate() -> None:
    cell = made(cells.SimplifiedGateCell)
    w, x = weights(cell), sequence().numpy()
    found = states_of(cells.Unrolled(cell))
    for b in range(BATCH):
        h = np.zeros(HIDDEN)
        for t in range(STEPS):
            u = sigma(affine(w, "update", x[b, t], h))
            h = h + u * (np.tanh(affine(w, "candidate", x[b, t], h)) - h)
            np.testing.assert_allclose(found[b, t], h, rtol=1e-12)


def test_highway() -> None:
    cell = made(cells.HighwayCell)
    w, x = weights(cell), sequence().numpy()
    found = states_of(cells.Unrolled(cell))
    assert (w["carry.bias"] == 1).all()
    for b in range(BATCH):
        h = np.zeros(HIDDEN)
        for t in range(STEPS):
            carry = sigma(affine(w, "carry", x[b, t], h))
            h = np.tanh(affine(w, "candidate", x[b, t], h)) * (1 - carry) + carry * h
            np.testing.assert_allclose(found[b, t], h, rtol=1e-12)


def test_textbook_gru() -> None:
    cell = made(cells.TextbookGruCell)
    w, x = weights(cell), sequence().numpy()
    found = states_of(cells.Unrolled(cell))
    for b in range(BATCH):
        h = np.zeros(HIDDEN)
        for t in range(STEPS):
            r = sigma(affine(w, "reset", x[b, t], h))
            z = sigma(affine(w, "update", x[b, t], h))
            h = (1 - z) * np.tanh(affine(w, "candidate", x[b, t], r * h)) + z * h
            np.testing.assert_allclose(found[b, t], h, rtol=1e-12)


def torchs_gru(cell: nn.Module) -> nn.GRU:
    """PyTorch's GRU with the same weights; there z keeps too, but r multiplies h U + b."""
    gru = nn.GRU(INPUTS, HIDDEN, batch_first=True, dtype=torch.float64)
    gates = [cell.reset, cell.update, cell.candidate]
    with torch.no_grad():
        gru.weight_ih_l0.copy_(torch.cat([gate.weight[:, :INPUTS] for gate in gates]))
        gru.weight_hh_l0.copy_(torch.cat([gate.weight[:, INPUTS:] for gate in gates]))
        gru.bias_ih_l0.copy_(torch.cat([gate.bias for gate in gates]))
        gru.bias_hh_l0.zero_()
    return gru


def test_textbook_gru_is_not_torchs_unless_the_reset_is_the_same_for_all_units() -> None:
    cell = made(cells.TextbookGruCell)
    with torch.no_grad():
        apart = torchs_gru(cell)(sequence())[0].numpy()
        assert np.abs(states_of(cells.Unrolled(cell)) - apart).max() > 1e-3
        cell.reset.weight.copy_(cell.reset.weight[:1].expand_as(cell.reset.weight))  # a scalar reset commutes with U
        cell.reset.bias.copy_(cell.reset.bias[:1].expand_as(cell.reset.bias))
        same = torchs_gru(cell)(sequence())[0].numpy()
    np.testing.assert_allclose(states_of(cells.Unrolled(cell)), same, rtol=1e-11)


def textbook_memory(kind: type[nn.Module], w: dict[str, Array], x: Array) -> Array:
    """(t, h) of one sequence by the equations of one step of the ladder."""
    h, c, found = np.zeros(HIDDEN), np.zeros(HIDDEN), []
    for step in x:
        f = sigma(affine(w, "forget", step, h))
        i = 1 - f if kind is cells.MixCell else sigma(affine(w, "input", step, h))
        o = sigma(affine(w, "output", step, h)) if kind is cells.TextbookLstmCell else 1.0
        c = f * c + i * np.tanh(affine(w, "candidate", step, h))
        h = o * np.tanh(c)
        found.append(h)
    return np.array(found)


@pytest.mark.parametrize("kind", [cells.MixCell, cells.TwoGatesCell, cells.TextbookLstmCell])
def test_ladder(kind: type[nn.Module]) -> None:
    cell = made(kind)
    w, x = weights(cell), sequence().numpy()
    assert (w["forget.bias"] == 1).all()
    found = states_of(cells.UnrolledWithMemory(cell))
    for b in range(BATCH):
        np.testing.assert_allclose(found[b], textbook_memory(kind, w, x[b]), rtol=1e-12)


def test_the_end_of_the_ladder_is_torchs_lstm() -> None:
    cell = made(cells.TextbookLstmCell)
    lstm = nn.LSTM(INPUTS, HIDDEN, batch_first=True, dtype=torch.float64)
    gates = [cell.input, cell.forget, cell.candidate, cell.output]
    with torch.no_grad():
        lstm.weight_ih_l0.copy_(torch.cat([gate.weight[:, :INPUTS] for gate in gates]))
        lstm.weight_hh_l0.copy_(torch.cat([gate.weight[:, INPUTS:] for gate in gates]))
        lstm.bias_ih_l0.copy_(torch.cat([gate.bias for gate in gates]))
        lstm.bias_hh_l0.zero_()
        states, (h, c) = lstm(sequence())
        own, (own_h, own_c) = cells.UnrolledWithMemory(cell)(sequence())
    for one, other in ((own, states), (own_h, h[0]), (own_c, c[0])):
        torch.testing.assert_close(one, other, rtol=1e-11, atol=1e-13)


LAYERS = {
    deep.PlainLayer: lambda phi, _t, _h: phi,
    deep.SkipLayer: lambda phi, _t, h: (phi + h) / 2,
    deep.DynamicSkipLayer: lambda phi, t, h: phi + t * (h - phi),
    deep.HighwayLayer: lambda phi, t, h: phi + t * (h - phi),
}


@pytest.mark.parametrize("kind", LAYERS)
def test_deep_layers(kind: type[nn.Module]) -> None:
    with seeded(2):
        layer = kind().double()
        h = torch.randn(deep.WIDTH, dtype=torch.float64)
    w = weights(layer)
    t = np.zeros(0)
    if "carry.bias" in w:
        t = sigma(w["carry.weight"] @ h.numpy() + w["carry.bias"])
        assert t.shape == ((1,) if kind is deep.DynamicSkipLayer else (deep.WIDTH,))
    phi = np.tanh(w["linear.weight"] @ h.numpy() + w["linear.bias"])
    with torch.no_grad():
        np.testing.assert_allclose(layer(h).numpy(), LAYERS[kind](phi, t, h.numpy()), rtol=1e-12)


def test_additive_skips_pass_half_of_the_gradient_on_at_every_layer() -> None:
    """With weights of 0, where plain layers pass nothing, twelve skip layers have the Jacobian 2⁻¹² I."""
    net = deep.DeepNet(deep.SkipLayer).double()
    for layer in net.layers:
        nn.init.zeros_(layer.linear.weight)
        nn.init.zeros_(layer.linear.bias)
    h = torch.zeros(deep.WIDTH, dtype=torch.float64)

    def through(h: Tensor) -> Tensor:
        for layer in net.layers:
            h = layer(h)
        return h

    jacobian = torch.func.jacrev(through)(h)
    torch.testing.assert_close(jacobian, math.ldexp(1.0, -deep.DEPTH) * torch.eye(deep.WIDTH, dtype=torch.float64))
