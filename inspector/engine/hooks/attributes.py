"""What a model keeps in attributes of its modules, as it was before a run: a state that is carried from call to call,
counters, caches, generators.

Attributes that are objects of other classes are put back where they were bound to something else, and not looked into:
one may be a logger or a trainer, which others change meanwhile.
"""

from __future__ import annotations

import random
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

BYTES = 256 << 20
"""Most memory of the copies of tensors; what a model holds beyond (a data set) is taken for something that it reads."""
DEPTH = 4
MOST = 100_000
"""Entries of lists, dicts and sets that are looked at."""
_OF_TORCH = frozenset(vars(nn.Module()))
_LISTS, _TABLES = (list, deque), (dict, OrderedDict, defaultdict)
Restore = Callable[[], object]


@contextmanager
def attributes_kept(model: nn.Module) -> Iterator[None]:
    """What is in attributes is the same afterwards; parameters and buffers are not looked at."""
    kept = _Kept(model)
    try:
        yield
    finally:
        kept.restore()


class _Kept:
    """Attributes of all modules, with copies of what can be changed in place."""

    def __init__(self, model: nn.Module) -> None:
        known = (*model.parameters(), *model.buffers())
        self._seen = {id(one) for one in known}
        self._bytes, self._count = BYTES, MOST
        self._restore: list[Restore] = []
        self._modules = [(part, _own(part)) for part in model.modules() if not _is_lazy(part)]
        for _, own in self._modules:
            for value in own.values():
                self._look(value, DEPTH)

    def _look(self, value: Any, depth: int) -> None:
        """Remember how a value is restored, if it can be changed in place."""
        self._count -= 1
        if self._count < 0 or id(value) in self._seen or isinstance(value, (str, bytes, int, float, nn.Module)):
            return
        self._seen.add(id(value))
        if isinstance(value, Tensor):
            self._tensor(value)
        elif type(value) in (*_LISTS, *_TABLES, set):
            if len(value) <= self._count:
                self._restore.append(_restore_parts(value))
        elif (restore := _restore_generator(value)) is not None:
            self._restore.append(restore)
        if depth and type(value) in (*_LISTS, *_TABLES, set, tuple):
            for one in list(value.values() if isinstance(value, dict) else value):
                self._look(one, depth - 1)

    def _tensor(self, value: Tensor) -> None:
        if value.layout != torch.strided or value.is_nested or value.is_meta or value.nbytes > self._bytes:
            return
        self._bytes -= value.nbytes
        before = value.detach().clone()

        def restore() -> None:
            if value.shape != before.shape or value.dtype != before.dtype:
                value.data = before
            elif not _same(value.detach(), before):
                value.detach().copy_(before)

        self._restore.append(restore)

    def restore(self) -> None:
        """Put everything back."""
        for module, before in self._modules:
            for name in _own(module).keys() - before.keys():
                del vars(module)[name]
            vars(module).update(before)
        with torch.no_grad():
            for restore in self._restore:
                with suppress(Exception):  # a tensor of inference mode, a container that refuses: the rest is restored
                    restore()


def _own(module: nn.Module) -> dict[str, Any]:
    return {name: value for name, value in vars(module).items() if name not in _OF_TORCH}


def _is_lazy(module: nn.Module) -> bool:
    """One that gets its parameters in its first call becomes another class then, with other attributes."""
    return any(one is not None and is_lazy(one) for one in module._parameters.values())


def _restore_parts(value: Any) -> Restore:
    """Put the same objects back into a container."""
    before = value.copy()

    def restore() -> None:
        if isinstance(value, dict):
            same = list(map(id, value)) == list(map(id, before)) and all(value[key] is before[key] for key in value)
        else:
            same = list(map(id, value)) == list(map(id, before))
        if not same:
            value.clear()
            value.update(before) if isinstance(value, (dict, set)) else value.extend(before)

    return restore


def _restore_generator(value: Any) -> Restore | None:
    """Put a generator of random numbers back where it was."""
    if isinstance(value, torch.Generator):
        state = value.get_state()
        return lambda: value.set_state(state)
    if isinstance(value, random.Random):
        told = value.getstate()
        return lambda: value.setstate(told)
    if isinstance(value, np.random.Generator):
        drawn = value.bit_generator.state
        return lambda: setattr(value.bit_generator, "state", drawn)
    if isinstance(value, np.random.RandomState):
        known = value.get_state()
        return lambda: value.set_state(known)
    if isinstance(value, np.ndarray) and value.nbytes <= BYTES and value.flags.writeable:
        array = value.copy()
        return lambda: np.copyto(value, array)
    return None


def _same(now: Tensor, before: Tensor) -> bool:
    return torch.equal(now, before) or bool(((now == before) | ((now != now) & (before != before))).all())
