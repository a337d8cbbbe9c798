"""A recurrence found in a model beside its equations, written again by hand: states, step Jacobians, gates, gradients."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from watched import seen

from inspector.engine.trace.trace import Recurrence

Step = Callable[[int, Tensor, Tensor], tuple[Tensor, dict[str, Tensor]]]
"""(number of the step, its input (i,), the state before (s,)) → the state after, and the gates by signal."""


def sigma(a: Tensor) -> Tensor:
    """1 / (1 + e⁻ᵃ)."""
    return 1 / (1 + torch.exp(-a))


def tanh(a: Tensor) -> Tensor:
    """The hyperbolic tangent by exponentials."""
    return (torch.exp(a) - torch.exp(-a)) / (torch.exp(a) + torch.exp(-a))


def affine(layer: nn.Linear, *parts: Tensor) -> Tensor:
    """W [parts] + b."""
    return torch.cat(parts, -1) @ layer.weight.T + layer.bias


def lstm_step(layer: nn.Linear, x: Tensor, state: Tensor, order: str = "hc") -> tuple[Tensor, dict[str, Tensor]]:
    """An LSTM of one linear map of (x, h), gates i, f, g, o; the state is h and c in the order given."""
    h, c = state.chunk(2) if order == "hc" else state.chunk(2)[::-1]
    i, f, g, o = affine(layer, x, h).chunk(4)
    i, f, g, o = sigma(i), sigma(f), tanh(g), sigma(o)
    c = f * c + i * g
    h = o * tanh(c)
    return torch.cat((h, c) if order == "hc" else (c, h)), {"gate/i": i, "gate/f": f, "g": g, "gate/o": o}


def gru_step(layers: Sequence[nn.Linear], x: Tensor, h: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    """r, z and n from [x, h] and [x, r h]."""
    r, z = sigma(affine(layers[0], x, h)), sigma(affine(layers[1], x, h))
    n = tanh(affine(layers[2], x, r * h))
    return z * h + (1 - z) * n, {"gate/r": r, "gate/z": z, "n": n}


def compare(
    model: nn.Module,
    x: Tensor,
    step: Step,
    *,
    parts: Sequence[str] = ("h",),
    start: Tensor | None = None,
    backwards: bool = False,
    shown: Callable[[Tensor], Tensor] | None = None,
    gates: Mapping[str, str] | None = None,
) -> Recurrence:
    """Assert that the one recurrence of a model is that of its equations.

    `start` is the first state (s,), zeros where left out; `shown` gives of a state what the model returns of it, for the
    gradients (not compared where left out); `gates`: signal shown → its name in the equations, all of them by default.
    """
    found_all, kept, _ = seen(model, x, quantities=("states", "gates"))
    assert [list(one.cell.parts) for one in found_all] == [list(parts)], "one recurrence of these parts"
    (found,) = found_all
    reasons = [reason for reason in kept.reasons() if "cuts the gradient" not in reason]
    assert not reasons and found.check is not None and found.check.passed
    samples, steps = x.shape[:2]
    assert found.steps == steps
    given = x.detach().flip(1) if backwards else x.detach()
    jacobians = found.block(0, steps).jacobian()
    names = gates
    exact: dict[str, Any] = {"rtol": 1e-9, "atol": 1e-12}
    for n in range(samples):
        state = torch.zeros(found.cell.state_size, dtype=x.dtype) if start is None else start
        torch.testing.assert_close(found.states[0, n], state, **exact)
        for t in range(steps):
            before = found.states[t, n]
            after, inside = step(t, given[n, t], before)
            names = names if names is not None else {signal: signal for signal in inside}
            torch.testing.assert_close(found.states[t + 1, n], after.detach(), **exact)
            expected = torch.autograd.functional.jacobian(
                lambda s, n=n, t=t: step(t, given[n, t], s)[0], before.clone()
            )
            torch.testing.assert_close(jacobians[t, n], expected, **exact)
            assert set(found.cell.gate_names) == set(names)
            for signal, name in names.items():
                value = found.known[found.cell.gate_names.index(signal)][t, n]
                torch.testing.assert_close(value, inside[name].detach(), **exact)
    if shown is not None:
        _compare_gradients(found, given, step, shown)
    return found


def _compare_gradients(found: Recurrence, given: Tensor, step: Step, shown: Callable[[Tensor], Tensor]) -> None:
    """∂L/∂s_t of every state with all parts of it leaves, L = Σ_τ ‖shown(s_τ)‖², by unrolling the equations."""
    assert found.delta is not None
    for n in range(given.shape[0]):
        for t in range(found.steps):
            leaf = found.states[t + 1, n].detach().clone().requires_grad_()
            state, loss = leaf, shown(leaf).square().sum()
            for later in range(t + 1, found.steps):
                state = step(later, given[n, later], state)[0]
                loss = loss + shown(state).square().sum()
            (expected,) = torch.autograd.grad(loss, leaf)
            torch.testing.assert_close(found.delta[t, n], expected, rtol=1e-8, atol=1e-11)
