"""Other values in place of the samples that a model draws, z = μ + σ ε, by its own code or by torch.distributions.

`rsample` of a normal distribution makes the same operations as code that draws by hand, so both are found alike.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from inspector.engine.latent.written import NEAR, NOISE, PLUS, TIMES, Drawn, checked
from inspector.engine.recurrent.traced.record.operation import name_of, tensors

Choose = Callable[[int, Drawn], Tensor | None]
"""(number of the draw in this call, what was drawn) → another z of the same shape; None: as it was drawn."""


@dataclass(slots=True)
class _Noise:
    """Noise that may become a sample: what it is multiplied to, and how many operations ago it was drawn."""

    noise: Tensor
    at: int
    scaled: Tensor | None = None
    deviation: Tensor | None = None


class Replacing(TorchFunctionMode):
    """While it is entered, every sample is told to `choose`, and what that gives takes its place."""

    def __init__(self, choose: Choose) -> None:
        super().__init__()
        self._choose, self._count, self._at = choose, 0, 0
        self._waiting: deque[_Noise] = deque()

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Call the function, and look whether it is a part of z = μ + σ ε."""
        out = func(*args, **(kwargs or {}))
        if not isinstance(out, Tensor) or not (self._waiting or func in NOISE):
            return out
        self._at += 1
        given = tensors((*args, *(kwargs or {}).values()))
        if func in NOISE:
            drawn = self._at_once(func, given, out)
            if drawn is None:
                self._waiting.append(_Noise(out, self._at))
        else:
            while self._waiting and self._at - self._waiting[0].at > NEAR:
                self._waiting.popleft()
            drawn = self._made(name_of(func), given, out)
        return out if drawn is None else self._other(drawn, out)

    def _other(self, drawn: Drawn, out: Tensor) -> Tensor:
        number, self._count = self._count, self._count + 1
        chosen = self._choose(number, drawn)
        return out if chosen is None else chosen

    def _at_once(self, func: Any, given: tuple[Tensor, ...], out: Tensor) -> Drawn | None:
        if func is not torch.normal or len(given) < 2 or not given[0].shape == given[1].shape == out.shape:
            return None
        return Drawn(self._at, given[0], given[1], out)

    def _made(self, name: str, given: tuple[Tensor, ...], out: Tensor) -> Drawn | None:
        """The sample that this operation made; else what it made of noise is noted."""
        for one in self._waiting:
            found: Drawn | None = None
            if name == "addcmul" and len(given) == 3 and any(part is one.noise for part in given[1:]):
                found = Drawn(self._at, given[0], _other_than(given[1:], one.noise), out)
            elif one.scaled is None and name in TIMES and len(given) == 2 and any(part is one.noise for part in given):
                one.scaled, one.deviation = out, _other_than(given, one.noise)
            elif one.scaled is not None and name in PLUS and len(given) == 2 and any(p is one.scaled for p in given):
                assert one.deviation is not None
                found = Drawn(self._at, _other_than(given, one.scaled), one.deviation, out)
            if found is not None:
                self._waiting.remove(one)
                return checked(found, one.noise)
        return None


def _other_than(pair: tuple[Tensor, ...], one: Tensor) -> Tensor:
    return pair[1] if pair[0] is one else pair[0]
