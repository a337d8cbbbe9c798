"""Gradients of the parameters by depth: which modules still receive a gradient, in any kind of model."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from inspector.engine.analyses.real_numbers import real_numbers
from inspector.engine.analyses.rerun import own_loss, undisturbed
from inspector.engine.errors import Unsupported
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import Describe, per_run
from inspector.engine.trace.trace import Trace
from inspector.records import LOSS_UNIT
from inspector.records.catalogue import LOSS

NAME = "layers:parameter/gradient"
ABOUT = Describe(
    kind="depth", compare="ratio", unit=LOSS_UNIT, title="gradient of the parameters by module", scale="log",
    formula="‖g‖₂ / √n and ‖g‖₂ of all n parameters of a module or layer, g = ∂L/∂θ, L = Σ of all losses of the batch; "
    "modules in the order in which they first run",
    method="exact; the model is run once more, with one backward pass",
)  # fmt: skip
_LAYER = re.compile(r"_l(\d+)(_reverse)?$")


@QUANTITIES.register("depth/parameters")
@per_run(
    summary="gradients of the parameters, module by module in depth order", order=85, default=False,
    needs=(LOSS,), cost="a second forward and backward pass",
    work=lambda run: run.call * 3,
)  # fmt: skip
def depth_parameters(trace: Trace, emit: Emitter) -> None:
    """Write `layers:parameter/gradient`, (statistic, module). Without a loss there is nothing to write."""
    if trace.loss is None:
        return
    model = trace.subject.model
    with undisturbed(model):
        try:
            order, found = gradients(trace)
        except Unsupported as reason:
            emit.refuse(NAME, str(reason))
            return
    squares: dict[str, float] = {}
    counts: dict[str, int] = {}
    for name in sorted(found, key=lambda name: order.get(owner(name)[0], math.inf)):
        place = ".".join(part for part in owner(name) if part) or "model"
        squares[place] = squares.get(place, 0.0) + float(real_numbers(found[name]).cpu().double().square().sum())
        counts[place] = counts.get(place, 0) + found[name].numel()
    norm = torch.tensor(list(squares.values()), dtype=torch.float64).sqrt()
    values = torch.stack((norm / torch.tensor(list(counts.values()), dtype=torch.float64).sqrt(), norm))
    labels = {"statistic": ("root mean square", "norm"), "module": tuple(squares)}
    emit.array(ABOUT.channel(NAME, ("statistic", "module"), tuple(values.shape), "float64", labels=labels), values)


def gradients(trace: Trace) -> tuple[dict[str, int], dict[str, Tensor]]:
    """(number of each module in the order of first calls, ∂L/∂θ by name of the parameter). Raises Unsupported."""
    model = trace.subject.model
    asked = {name: value for name, value in model.named_parameters() if value.requires_grad}
    with torch.enable_grad(), _calls(model) as order:
        loss = own_loss(trace)
        if loss is None or not loss.requires_grad or not asked:
            raise Unsupported("No parameter is connected to the loss by autograd (frozen, or no_grad in the model).")
        carried = trace.loss_carried if trace.loss_carried is not None else ~loss.isnan()
        found = torch.autograd.grad(torch.where(carried, loss, 0.0).sum(), list(asked.values()), allow_unused=True)
    pairs = zip(asked.items(), found, strict=True)
    return order, {name: torch.zeros_like(value) if g is None else g for (name, value), g in pairs}


@contextmanager
def _calls(model: nn.Module) -> Iterator[dict[str, int]]:
    """The names of the modules, numbered as they are called for the first time while the context is open."""
    order: dict[str, int] = {}

    def note(name: str) -> Any:
        def called(_module: nn.Module, _args: Any) -> None:
            order.setdefault(name, len(order))

        return called

    handles = [module.register_forward_pre_hook(note(name)) for name, module in model.named_modules()]
    try:
        yield order
    finally:
        for handle in handles:
            handle.remove()


def owner(name: str) -> tuple[str, str]:
    """(module, layer within it) of a parameter: "rnn.weight_hh_l1_reverse" belongs to ("rnn", "l1")."""
    place, _, rest = name.partition(".parametrizations.")
    module, leaf = (place, rest.partition(".")[0]) if rest else (place.rpartition(".")[0], place.rpartition(".")[2])
    layer = _LAYER.search(leaf)
    return module, f"l{layer.group(1)}" if layer else ""
