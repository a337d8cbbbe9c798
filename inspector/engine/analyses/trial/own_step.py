"""The step that an optimizer of the training would make from where it is, made by a copy of it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from inspector.engine.analyses.trial.trial_steps import Trial, stand_ins, wide
from inspector.engine.errors import Unsupported
from inspector.engine.wording import error_text


def own_step(trial: Trial, given: Any, gradients: Sequence[Tensor]) -> tuple[list[Tensor], float, str, float]:
    """(θ − θ' by parameter, the largest learning rate, what made it, how it grows): one step with these gradients.

    How it grows: how many times as long steps become by momentum alone, under a gradient that stays as it is.

    given: an optimizer, or several, over the parameters of the model; they stay as they are. Their moments, weight
    decay and rates by group are in the step; clipping is the loop's, and not. Raises Unsupported.
    """
    optimizers = list(given) if isinstance(given, (list, tuple)) else [given]
    held = stand_ins(trial.parameters)
    twins = {id(own): twin for own, twin in zip(trial.parameters, held, strict=True)}
    for twin, gradient in zip(held, gradients, strict=True):
        twin.grad = gradient.clone()
    rates = [rate for one in optimizers for rate in _stepped(one, twins)]
    if not rates:
        raise Unsupported("No optimizer that was given has a parameter of the model.")
    if not max(rates) > 0:
        raise Unsupported("The learning rate of the training's optimizer is 0, so its step has no length.")
    pairs = zip(trial.parameters, held, strict=True)
    moved = [wide(own.detach()) - wide(twin.detach()) for own, twin in pairs]
    grows = max((growth(group, one) for one in optimizers for group in one.param_groups), default=1.0)
    return moved, max(rates), ", ".join(type(one).__name__ for one in optimizers), grows


def growth(group: dict[str, Any], optimizer: Optimizer) -> float:
    """How many times as long as its next step the steps of SGD with momentum become under a constant gradient g.

    The first step is η g, with Nesterov's momentum η (1 + β) g; later ones tend to η g (1 − d) / (1 − β), d the
    dampening (Polyak 1964: a sum of all gradients before, each β times the last). 1 where the momentum has been built
    up, and of optimizers that correct for their beginning (Adam).
    """
    beta = float(group.get("momentum", 0.0))
    begun = any("momentum_buffer" in optimizer.state.get(one, {}) for one in group["params"])
    if type(optimizer).__name__ != "SGD" or begun or not 0 < beta < 1:
        return 1.0
    if group.get("nesterov", False):  # torch allows it without dampening alone
        return 1 / ((1 - beta) * (1 + beta))
    return (1 - float(group.get("dampening", 0.0))) / (1 - beta)


def _stepped(optimizer: Any, twins: dict[int, nn.Parameter]) -> list[float]:
    """Step a copy of an optimizer over stand-ins; the learning rate of each group that has one of them."""
    if not isinstance(optimizer, Optimizer):
        raise Unsupported(
            f"The subject's optimizer is {type(optimizer).__name__}; expected a torch.optim.Optimizer, or several."
        )
    groups = []
    for group in optimizer.param_groups:
        if own := [twins[id(one)] for one in group["params"] if id(one) in twins]:
            settings = {key: copy.deepcopy(value) for key, value in group.items() if key != "params"}
            groups.append({**settings, "params": own})
    if not groups:
        return []
    if not all("lr" in group for group in groups):
        raise Unsupported(f"{type(optimizer).__name__} has no learning rate (`lr`) in its groups.")
    try:
        made: Callable[[Any], Optimizer] = type(optimizer)  # whose own constructor has defaults
        twin = made(groups)
        for own in (one for group in optimizer.param_groups for one in group["params"] if id(one) in twins):
            if own in optimizer.state:
                twin.state[twins[id(own)]] = copy.deepcopy(optimizer.state[own])
        with torch.enable_grad():
            twin.step()
    except Exception as fault:  # noqa: BLE001 - an optimizer of the user's may raise anything
        raise Unsupported(f"{type(optimizer).__name__} could not make a step in a copy: {error_text(fault)}") from None
    return [float(group["lr"]) for group in groups]
