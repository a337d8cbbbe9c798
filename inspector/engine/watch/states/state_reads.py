"""Whether a call of a model depends on tensors that it kept from the call before, and of which rows: what is computed
from them is followed through the operations of one call.

Nothing is computed anew and nothing is changed. A model that makes zeros in the shape of what it kept, or writes zeros
over it, does not read it; rows that are set to zero or exchanged on the way begin anew.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from inspector.engine.hooks.function_mode import FUSED, SwitchedMode
from inspector.engine.model.tensors_within import tensors_within

_MADE_ANEW = frozenset((
    "zeros_like", "ones_like", "empty_like", "full_like", "rand_like", "randn_like", "randint_like", "new_zeros",
    "new_ones", "new_empty", "new_full", "new_tensor",
))  # fmt: skip
_OVERWRITTEN = frozenset(("zero_", "fill_", "copy_", "normal_", "uniform_"))
_ALIKE = frozenset(("detach", "clone", "to", "contiguous", "__get__", "requires_grad", "float", "double", "alias"))
"""What gives the state itself again."""
_MASKING = frozenset(("mul", "rmul", "imul", "multiply", "where", "masked_fill", "index_fill", "masked_scatter"))


class StateReads(SwitchedMode):
    """Follows `states` (by place) while it is on."""

    def __init__(self, states: Mapping[str, Tensor]) -> None:
        super().__init__()
        self._followed: dict[int, tuple[weakref.ref[Tensor], frozenset[str]]] = {}
        self._direct: dict[int, weakref.ref[Tensor]] = {}
        self._shapes = {place: one.shape for place, one in states.items()}
        self.left: dict[str, Tensor] = {}
        """By place, of the axes of the state but the last, where numbers of the state itself were left."""
        self.failed = False
        for place, one in states.items():
            self._follow(one, self._of(one) | {place}, direct=True)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if not self.failed:
            try:
                with torch.no_grad():
                    self._ran(getattr(func, "__name__", ""), args, kwargs, result)
            except Exception:  # noqa: BLE001 - an operation of any kind: what cannot be followed is not judged
                self.failed = True
        return result

    def reached(self, output: Any) -> frozenset[str]:
        """The places on which some of the output depends."""
        found: frozenset[str] = frozenset()
        for one in () if self.failed else tensors_within(output):
            found |= self._of(one)
        return found

    def _ran(self, name: str, args: Any, kwargs: Any, result: Any) -> None:
        given = list(tensors_within((args, kwargs)))
        places = frozenset[str]().union(*(self._of(one) for one in given)) if given else frozenset()
        if name == "__setitem__":
            self._written(*args)
        elif name in _OVERWRITTEN or name in _MADE_ANEW:
            source = given[1] if name == "copy_" and len(given) > 1 else None
            for one in tensors_within(result):
                self._forget(one)
                if source is not None:
                    self._follow(one, self._of(source), direct=self._is_direct(source))
        elif places:
            mine = [one for one in given if self._is_direct(one)]
            word = name if name == "__get__" else name.strip("_")
            for one in tensors_within(result):
                alike = bool(mine) and one.shape == mine[0].shape
                self._follow(one, places, direct=alike and word in _ALIKE | _MASKING)
                if alike and word in _MASKING:
                    self._masked(mine, one, chosen=word == "where")

    def _written(self, target: Tensor, key: Any, value: Any) -> None:
        """target[key] = value."""
        places = self._of(value) if isinstance(value, Tensor) else frozenset()
        if key is Ellipsis or (isinstance(key, slice) and key == slice(None)):
            self._forget(target)
            self._follow(target, places)
            return
        direct = self._is_direct(target)
        self._follow(target, self._of(target) | places, direct=direct)
        if direct:
            self._masked([target], target, chosen=False)

    def _masked(self, given: list[Tensor], one: Tensor, *, chosen: bool) -> None:
        """Rows of the state that are zero now, or for which something else was chosen, begin anew."""
        there = one != 0
        if chosen and len(given) == 1:
            there = there & (one == given[0])
        for place in self._of(one):
            if one.shape == self._shapes[place]:
                known, rows = self.left.get(place), there.any(-1)
                self.left[place] = rows if known is None else known & rows

    def _of(self, one: Tensor) -> frozenset[str]:
        known = self._followed.get(id(one))
        return known[1] if known is not None and known[0]() is one else frozenset()

    def _is_direct(self, one: Tensor) -> bool:
        known = self._direct.get(id(one))
        return known is not None and known() is one

    def _follow(self, one: Tensor, places: frozenset[str], *, direct: bool = False) -> None:
        if places:
            self._followed[id(one)] = weakref.ref(one), places
        if places and direct:
            self._direct[id(one)] = weakref.ref(one)
        else:
            self._direct.pop(id(one), None)

    def _forget(self, one: Tensor) -> None:
        self._followed.pop(id(one), None)
        self._direct.pop(id(one), None)


def can_be_followed(model: nn.Module) -> bool:
    """Whether a function mode changes nothing: it would have code compiled again, and takes the fused path from layers
    in evaluation mode."""
    frames = sys.modules.get("torch._dynamo.convert_frame")
    try:
        compiled = frames is not None and len(frames.input_codes.seen) > 0
    except (AttributeError, TypeError):  # another version of torch
        compiled = True
    return not compiled and not any(isinstance(part, FUSED) and not part.training for part in model.modules())
