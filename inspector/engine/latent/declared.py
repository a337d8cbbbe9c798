"""Models that say what they are: a module with `linear_gaussian()` or with `hidden_markov(inputs)`.

`linear_gaussian()` gives A, Q, C, R, initial_mean and initial_covariance, and d where the measurements have an offset;
the module is called with the measurements (b, t, o). `hidden_markov(inputs)` gives log-probabilities: initial (k,),
transition (k, k) from row to column, emission (b, t, k) of what the module was called with, (b, t, …).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy.typing as npt
import torch
from torch import Tensor, nn

from inspector.engine.errors import Unsupported
from inspector.engine.hooks.function_mode import unwatched
from inspector.engine.latent.layout import FITS_NOT, Axes, axes_of
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import Describe
from inspector.engine.trace.trace import Trace
from inspector.engine.trace.work import NONE, OfRun, RunSize, Work
from inspector.engine.wording import a_class

GAUSSIAN, MARKOV = "linear_gaussian", "hidden_markov"
MARKOV_PARTS = ("initial", "transition", "emission")


@dataclass(frozen=True, slots=True)
class Declared:
    """One module: which kind, its parts by name, and the sequence that is shown, (t, …), as the module was given it."""

    place: str
    module: str
    kind: str
    parts: Mapping[str, Tensor]
    sequence: Tensor
    domain: str


@dataclass(slots=True)
class DeclaredModels:
    """All of a run; a finding of its trace."""

    found: list[Declared] = field(default_factory=list)


def few_calls(kind: str) -> OfRun:
    """The work of what is computed of the modules of a kind: none in a model that has none of them."""

    def work(run: RunSize) -> Work:
        declared = run.findings.get(DeclaredModels)
        return run.call * 3 if any(one.kind == kind for one in (declared.found if declared else ())) else NONE

    return work


def kind_of(module: nn.Module) -> str:
    """Which of the two methods a module has; "" for none."""
    return next((kind for kind in (GAUSSIAN, MARKOV) if callable(getattr(type(module), kind, None))), "")


def declared_by(place: str, module: nn.Module, args: tuple[Any, ...], trace: Trace) -> Declared:
    """What a module says of itself after a call. Raises Unsupported with one sentence."""
    kind, axes = kind_of(module), axes_of(trace)
    given = args[0] if args else None
    if not isinstance(given, Tensor) or given.dim() < 2 or given.shape[:2] != (axes.size, axes.steps):
        shape = tuple(given.shape) if isinstance(given, Tensor) else a_class(given)
        raise Unsupported(FITS_NOT.format(f"What {place} was called with", shape, axes.size, axes.steps) + ".")
    with unwatched(), torch.no_grad():
        said = module.linear_gaussian() if kind == GAUSSIAN else module.hidden_markov(given)  # type: ignore[operator]
    if not isinstance(said, Mapping) or not all(isinstance(value, Tensor) for value in said.values()):
        raise Unsupported(f"`{kind}` of {place} gave {a_class(said)}; expected a dict of tensors by name.")
    parts = {str(name): value.detach().cpu().double() for name, value in said.items()}
    if kind == MARKOV:
        parts = _of_the_selected(place, parts, axes)
    sequence = given[axes.look_at, : axes.length].detach().cpu()
    return Declared(place, type(module).__name__, kind, parts, sequence, axes.domain)


def _of_the_selected(place: str, parts: dict[str, Tensor], axes: Axes) -> dict[str, Tensor]:
    missing = [name for name in MARKOV_PARTS if name not in parts]
    if missing:
        raise Unsupported(f"`{MARKOV}` of {place} does not give {', '.join(missing)}.")
    emission = parts["emission"]
    if emission.dim() != 3 or emission.shape[:2] != (axes.size, axes.steps):
        raise Unsupported(
            f"`{MARKOV}` of {place} gave an emission of shape {tuple(emission.shape)}; expected ({axes.size}, "
            f"{axes.steps}, states): log p(x_t | z_t) of every step."
        )
    return {**parts, "emission": emission[axes.look_at, : axes.length]}


def write(
    one: Declared,
    signal: str,
    about: Describe,
    dims: tuple[str, ...],
    values: npt.NDArray[Any],
    emit: Emitter,
    value_domain: str = "",
) -> None:
    """Write `PLACE:signal` of what a module says, with the steps of its sequence where it has any."""
    domains = {"step": one.domain} if "step" in dims and one.domain else {}
    channel = about.channel(
        f"{one.place}:{signal}", dims, values.shape, str(values.dtype), module=one.module, domains=domains,
        value_domain=value_domain,
    )  # fmt: skip
    emit.array(channel, values)
