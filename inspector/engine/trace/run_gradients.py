"""∂L/∂θ of the parameters as the model's own backward pass gave it: what every sum over steps must equal.

Whatever is computed for single steps is a part of the gradients of the weights of recurrences. They come by hooks from
the one backward pass of the run, so nothing of how a recurrence was found, run again or differentiated is in them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

MOST_BYTES = 1 << 30
"""Memory for these gradients; a weight beyond it is not compared, and what needs the comparison says so."""
Weights = Callable[[], Mapping[str, Tensor]]
Take = Callable[[Tensor | None], None]


@dataclass(eq=False)
class RunGradients:
    """The gradients of one run, shared by its recurrences.

    Attributes:
        names: id of a parameter of the model → its qualified name.
        recurrences: all of the run: several may use one parameter, and its gradient is the sum over all of them.
        samples: sequences of the batch, over all of which the gradients are sums.
        missing: the weights that did not fit into the memory, by id.
    """

    names: dict[int, str] = field(default_factory=dict)
    recurrences: list[Any] = field(default_factory=list)
    missing: set[int] = field(default_factory=set)
    samples: int = 1
    wanted: bool = True
    """Whether something that was asked for needs them. They are not free: the backward pass then makes one more product
    for every weight, which doubles its cost for a GRU."""
    hooked: set[int] = field(default_factory=set)
    """The parameters, by id, whose gradient a hook of the user's changed."""
    compared: Any = None
    """What `analyses/own_gradients.py` found, once for all quantities."""
    _every: Mapping[str, Tensor] | None = None
    _asked: dict[int, Tensor] = field(default_factory=dict)
    _found: dict[int, Tensor] = field(default_factory=dict)
    _bytes: int = 0

    def ask(self, want: Callable[[Tensor, Take], None], parameters: Iterable[Tensor]) -> None:
        """Request the gradients of these parameters, each once, by `Trace.want_gradient`. Call before the backward
        pass."""
        for one in parameters if self.wanted else ():
            if id(one) in self._asked or id(one) in self.missing or not one.requires_grad or not one.is_leaf:
                continue
            if one._is_view():  # of a parameter, made without a graph: it has no place in one
                continue
            if self._bytes + one.nbytes > MOST_BYTES:
                self.missing.add(id(one))
                continue
            self._bytes += one.nbytes
            self._add(want, one)

    def ask_made(self, want: Callable[[Tensor, Take], None], weights: Iterable[Any]) -> None:
        """Request those of weights that the model computed before it used them (dropout of a weight). Others are
        skipped."""
        for one in weights if self.wanted else ():
            made = isinstance(one, Tensor) and one.requires_grad and not one.is_leaf
            if made and id(one) not in self._asked and self._bytes + one.nbytes <= MOST_BYTES:
                self._bytes += one.nbytes
                self._add(want, one)

    def ask_all(self, want: Callable[[Tensor, Take], None], parameters: Mapping[str, Tensor]) -> None:
        """Request those of all parameters by name, however large they are."""
        self._every = parameters
        for one in parameters.values():
            if id(one) not in self._asked:
                self._add(want, one)

    def give_up(self) -> None:
        """Not all of them are known."""
        self._every = None

    def _add(self, want: Callable[[Tensor, Take], None], one: Tensor) -> None:
        self._asked[id(one)] = one
        self.missing.discard(id(one))
        want(one, self._receiver(id(one)))

    def _receiver(self, number: int) -> Take:
        def take(gradient: Tensor | None) -> None:
            if gradient is not None:
                self._found[number] = gradient.detach().cpu()

        return take

    def made(self) -> dict[Any, Tensor]:
        """Node of autograd's graph → the requested weight that it made."""
        return {one.grad_fn: one for one in self._asked.values() if one.grad_fn is not None}

    def of(self, parameter: Tensor) -> Tensor | None:
        """∂L/∂θ; zeros where the backward pass did not reach it; None where it was not requested."""
        if id(parameter) not in self._asked:
            return None
        found = self._found.get(id(parameter))
        return torch.zeros_like(parameter, device="cpu", requires_grad=False) if found is None else found

    @property
    def every(self) -> dict[str, Tensor]:
        """By name those of all parameters that the backward pass reached; empty where not all were requested."""
        named = (self._every or {}).items()
        return {name: self._found[id(value)] for name, value in named if id(value) in self._found}

    def parameter_of(self, value: Tensor) -> Tensor:
        """The requested parameter that a tensor is, or whose memory it shares; else the tensor itself."""
        if id(value) in self._asked:
            return value
        same = (one for one in self._asked.values() if one.data_ptr() == value.data_ptr() and one.shape == value.shape)
        return next(same, value)

    def name(self, parameter: Tensor) -> str:
        """The model's name of a parameter."""
        return self.names.get(id(parameter), "a weight")
