"""A recurrence unrolled by hand: every step has parameters of its own and a zero that is added to each part of its state.

What the app shows of a model is compared with torch.autograd of that loop, in float64.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from kept import Kept
from torch import Tensor, nn

from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform
from inspector.engine.trace.trace import Recurrence

State = tuple[Tensor, ...]
Step = Callable[[Mapping[str, Tensor], State], State]
"""(parameters by name, the parts of the state before, each (units,)) → the parts after."""
SHOWN = ("states", "gradients", "gradient/lag_map", "bptt", "truncation")
EXACT: dict[str, Any] = {"rtol": 1e-8, "atol": 1e-11}


class Tape:
    """What the steps of one loop were given and made."""

    def __init__(self, model: nn.Module) -> None:
        self._parameters = {name: one.detach().clone().requires_grad_() for name, one in model.named_parameters()}
        self.own: list[dict[str, Tensor]] = []
        self.zeros: list[State] = []
        self.states: list[Tensor] = []
        self.jacobians: list[Tensor] = []

    @property
    def names(self) -> list[str]:
        """Those of the parameters."""
        return list(self._parameters)

    def step(self, function: Step, state: State, *, gradient: bool = True) -> State:
        """One step; without `gradient` it is computed under no_grad, and its state is a leaf."""
        self.jacobians.append(self._jacobian(function, state))
        self.own.append({name: one * 1 for name, one in self._parameters.items()})
        with torch.set_grad_enabled(gradient):
            made = function(self.own[-1], state)
        self.zeros.append(tuple(torch.zeros_like(one).requires_grad_() for one in made))
        made = tuple(one + zero for one, zero in zip(made, self.zeros[-1], strict=True))
        self.states.append(torch.cat([one.detach().flatten() for one in made]))
        return made

    def _jacobian(self, function: Step, state: State) -> Tensor:
        sizes = [one.numel() for one in state]

        def flat(values: Tensor) -> Tensor:
            parts = tuple(own.view_as(one) for own, one in zip(values.split(sizes), state, strict=True))
            return torch.cat([one.flatten() for one in function(self._parameters, parts)])

        found: Tensor = torch.autograd.functional.jacobian(flat, torch.cat([one.detach().flatten() for one in state]))
        return found

    def gradients(self, loss: Tensor) -> Tensor:
        """(t, s): of one loss at the states."""
        wanted = [zero for own in self.zeros for zero in own]
        found = iter(_gradients(loss, wanted))
        return torch.stack([torch.cat([next(found).flatten() for _ in own]) for own in self.zeros])

    def items(self, loss: Tensor) -> dict[str, Tensor]:
        """{parameter: (t, …)}: of one loss at the parameters of every step."""
        wanted = [own[name] for name in self.names for own in self.own]
        found, steps = _gradients(loss, wanted), len(self.own)
        return {name: torch.stack(found[n * steps : (n + 1) * steps]) for n, name in enumerate(self.names)}


def _gradients(loss: Tensor, wanted: Sequence[Tensor]) -> list[Tensor]:
    if not loss.requires_grad:
        return [torch.zeros_like(one) for one in wanted]
    found = torch.autograd.grad(loss, wanted, retain_graph=True, allow_unused=True, materialize_grads=True)
    return list(found)


Unrolled = Callable[[Tape, Tensor], list[Tensor]]
"""(where the steps are made, the input of one sequence (t, i)) → the loss of every step."""


def compare_with_unrolled(
    model: nn.Module,
    unrolled: Unrolled,
    x: Tensor,
    parts: Sequence[str] = (),
    place: str = "model",
    ahead: Sequence[str] = (),
) -> Recurrence:
    """Assert that the one recurrence of a model, which returns the loss of every step (b, t), is this loop over x (t, i).

    Compared are states, step Jacobians, gradients at the states, gradients by loss and lag, itemised
    BPTT and the whole gradient of every parameter. `parts`: names of the state's, compared where they are given;
    `ahead`: parameters that the model uses before the loop, of which it has no items.
    """
    kept = Kept()
    subject = Subject(model=model, kind="vectors", width=x.shape[-1], loss=lambda losses, _: losses)
    trace = perform(subject, Batch(x[None], torch.tensor([len(x)])), kept, RunOptions(only=SHOWN))
    said = {one.channel.partition(":")[2] for one in kept.refusals() if one.channel.endswith("computed_ahead")}
    assert bool(said) == bool(ahead), said
    reasons = [one.reason for one in kept.refusals() if not one.channel.endswith("computed_ahead")]
    reasons = [reason for reason in reasons if "cuts the gradient" not in reason]
    assert not reasons, reasons
    names = [list(one.cell.parts) for one in trace.recurrences]
    assert names == ([list(parts)] if parts else names[:1]), f"one recurrence of these parts, not {names}"
    (found,) = trace.recurrences
    assert (found.place, found.steps) == (place, len(x)), f"not {found.steps} steps at {found.place}"
    tape = Tape(model)
    losses = unrolled(tape, x)
    torch.testing.assert_close(found.states[1:, 0], torch.stack(tape.states), **EXACT)
    torch.testing.assert_close(found.block(0, len(x)).jacobian()[:, 0], torch.stack(tape.jacobians), **EXACT)
    _compare_gradients(kept, found, tape, losses, ahead)
    return found


def _compare_gradients(
    kept: Kept, found: Recurrence, tape: Tape, losses: Sequence[Tensor], ahead: Sequence[str]
) -> None:
    assert found.delta is not None
    torch.testing.assert_close(found.delta[:, 0].nan_to_num(), tape.gradients(torch.stack(losses).sum()), **EXACT)
    lags = torch.stack([tape.gradients(loss).norm(dim=1) for loss in losses])
    np.testing.assert_allclose(_shown(kept, f"{found.place}:gradient/lag_map"), lags, **EXACT)
    items = [tape.items(loss) for loss in losses]
    for name in tape.names:
        own = torch.stack([one[name] for one in items])
        if not own.any() or name in ahead:
            continue
        base = f"{found.place}:bptt/{name}"
        np.testing.assert_allclose(_shown(kept, base), own.flatten(2).norm(dim=2), **EXACT)
        assert kept.scalar(f"{base}/check_error") < 1e-11


def _shown(kept: Kept, name: str) -> Any:
    """NaN, which is drawn where no gradient arrives, as 0."""
    assert name in kept.names(), f"{name} is not among {kept.names()}"
    return np.nan_to_num(kept.array(name))
