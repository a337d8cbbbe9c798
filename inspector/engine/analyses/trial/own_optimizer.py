"""The optimizer of a training, made anew over copies of its parameters: its kind, groups, settings and moments."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from inspector.engine.errors import Unsupported
from inspector.engine.wording import error_text

KERNELS = frozenset({"params", "foreach", "fused", "capturable", "differentiable"})
"""Settings that say how a step is computed and not what it is: copies may lie elsewhere."""
SHOWN = ("momentum", "nesterov", "betas", "alpha", "amsgrad")
"""Settings of torch's optimizers that are told, where they are not 0 or off."""


@dataclass(frozen=True, slots=True)
class Group:
    """Parameters by name, and the settings of their group."""

    names: tuple[str, ...]
    settings: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class OwnOptimizer:
    """Attributes:
    kind: its class. groups: in order.
    state: of each parameter that has one, by name; empty where moments are not known, or none was built up.
    source: where this is known from, the end of what is told.
    """

    kind: type[Optimizer]
    groups: tuple[Group, ...]
    state: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    source: str = ""

    @property
    def rate(self) -> float:
        """The largest learning rate of a group."""
        return max(float(group.settings.get("lr", math.nan)) for group in self.groups)

    @property
    def decay(self) -> float:
        """The largest weight decay of a group."""
        return max(float(group.settings.get("weight_decay") or 0.0) for group in self.groups)

    @property
    def betas(self) -> tuple[float, float] | None:
        """Those of the first group that has two."""
        found = [group.settings.get("betas") for group in self.groups]
        pairs = [one for one in found if isinstance(one, (tuple, list)) and len(one) == 2]
        return (float(pairs[0][0]), float(pairs[0][1])) if pairs else None

    @property
    def words(self) -> str:
        """Its class, what it has of momentum, and its moments."""
        first = self.groups[0].settings
        told = [f"{name} {_plain(first[name])}" for name in SHOWN if first.get(name)]
        groups = [f"{len(self.groups)} groups"] if len(self.groups) > 1 else []
        moments = "moments as they are" if self.state else "moments begin at 0"
        return f"{self.kind.__name__} {self.source} ({', '.join([*told, *groups, moments])})"

    def over(
        self, held: Mapping[str, nn.Parameter], *, scale: float = 1.0, betas: tuple[float, float] | None = None,
        plain: frozenset[str] = frozenset(), everything: bool = False,
    ) -> Optimizer:  # fmt: skip
        """It over parameters of these names, in a fresh instance.

        scale: of all learning rates. betas: in the place of its own. plain: what is not decayed. everything: whether
        parameters that it does not have join its first group. Raises Unsupported where it cannot be made.
        """
        named = {name for group in self.groups for name in group.names}
        left = [name for name in held if name not in named] if everything else []
        made = []
        for n, group in enumerate(self.groups):
            own = [name for name in group.names if name in held] + (left if n == 0 else [])
            settings = _settings(group.settings, scale, betas)
            for decayed in (True, False):
                names = [name for name in own if (name not in plain) is decayed]
                apart = {} if decayed or "weight_decay" not in settings else {"weight_decay": 0.0}
                made += [{**settings, **apart, "params": [held[name] for name in names]}] if names else []
        try:
            kind: Any = self.kind  # whose own constructor has defaults
            found: Optimizer = kind(made)
        except Exception as fault:  # noqa: BLE001 - an optimizer of the user's may raise anything
            raise Unsupported(f"{self.kind.__name__} could not be made anew: {error_text(fault)}") from None
        for name in self.state.keys() & held.keys():
            found.state[held[name]] = {key: _of(value, held[name]) for key, value in self.state[name].items()}
        return found


def optimizer_of(given: Any, names: Mapping[int, str], source: str) -> OwnOptimizer:
    """Of an optimizer, or several of one class, over parameters with these names by id. Raises Unsupported."""
    several = list(given) if isinstance(given, (list, tuple)) else [given]
    for one in several:
        if not isinstance(one, Optimizer):
            raise Unsupported(f"{type(one).__name__} is no torch.optim.Optimizer")
    groups, state = list[Group](), dict[str, Mapping[str, Any]]()
    for one in several:
        for group in one.param_groups:
            own = tuple(names[id(entry)] for entry in group["params"] if id(entry) in names)
            groups += [Group(own, {key: value for key, value in group.items() if key != "params"})] if own else []
            known = [entry for entry in group["params"] if id(entry) in names and entry in one.state]
            state |= {names[id(entry)]: one.state[entry] for entry in known}
    return _checked([type(one) for one in several], groups, state, source)


def recorded_optimizer(told: Any, names: Sequence[str], source: str) -> OwnOptimizer:
    """Of what the capture of a training says: [{class, groups: [{settings, parameters}]}]. Raises Unsupported."""
    kinds, groups = list[type[Optimizer]](), list[Group]()
    for one in told:
        where, _, name = str(one["class"]).rpartition(".")
        kind = getattr(torch.optim, name, None) if where.startswith("torch.optim") else None
        if not (isinstance(kind, type) and issubclass(kind, Optimizer)):
            raise Unsupported(f"{name} is none of torch's own optimizers")
        kinds.append(kind)
        groups += [
            Group(own, group["settings"])
            for group in one["groups"]
            if (own := tuple(entry for entry in group["parameters"] if entry in names))
        ]
    return _checked(kinds, groups, {}, source)


def _checked(
    kinds: Sequence[type[Optimizer]], groups: Sequence[Group], state: Mapping[str, Any], source: str
) -> OwnOptimizer:
    if len(set(kinds)) != 1:
        raise Unsupported(f"{', '.join(kind.__name__ for kind in kinds)} are not put together here")
    if not groups:
        raise Unsupported(f"{kinds[0].__name__} has no parameter of this model")
    if kinds[0].__name__ == "LBFGS":
        raise Unsupported("LBFGS calls the loss by itself")
    found = OwnOptimizer(kinds[0], tuple(groups), state, source)
    if not math.isfinite(found.rate) or not found.rate > 0:
        raise Unsupported(f"{kinds[0].__name__} has a learning rate of {found.rate:g}")
    return found


def _settings(known: Mapping[str, Any], scale: float, betas: tuple[float, float] | None) -> dict[str, Any]:
    """The settings of a group, with its rate scaled, and other betas where it has any."""
    kept = {key: copy.deepcopy(value) for key, value in known.items() if key not in KERNELS}
    kept = {key: tuple(value) if isinstance(value, list) else value for key, value in kept.items()}
    kept["lr"] = scale * float(kept["lr"])
    return {**kept, "betas": betas} if betas is not None and "betas" in kept else kept


def _of(value: Any, parameter: nn.Parameter) -> Any:
    """A copy of what an optimizer keeps of a parameter, in the type of the copy that it is for."""
    if isinstance(value, Tensor) and value.shape == parameter.shape and value.is_floating_point():
        return value.detach().clone().to(parameter.dtype)
    return copy.deepcopy(value)


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "on"
    return " and ".join(f"{one:g}" for one in value) if isinstance(value, (tuple, list)) else f"{value:g}"
