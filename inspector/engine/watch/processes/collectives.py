"""A sum over processes that leaves nothing to a thread of torch when the process ends.

Gloo's threads let a tensor go a moment after the collective that it was summed in has returned, and take Python's lock
for one that Python knows. Where the interpreter ends just then, the thread is ended inside of a destructor, and the
process by `std::terminate` ("terminate called without an active exception", exit code -6): a training that was done.
"""

from __future__ import annotations

import atexit
import sys
import time

import torch
import torch.distributed as dist
from torch import Tensor

SECONDS = 2.0
"""The longest wait at the end of a process. A thread needs microseconds, unless the machine is busy."""
_held: list[Tensor] = []


def summed(numbers: Tensor) -> Tensor:
    """The sum of a tensor over all processes, as a new tensor. Raises RuntimeError where another process has ended."""
    if not _held:
        atexit.unregister(let_go)
        atexit.register(let_go)
    _held[:] = [_held[n] for n in _shared()]
    _held.append(numbers)
    dist.all_reduce(numbers)
    return numbers.clone()


def let_go() -> None:
    """Wait until no thread has a tensor that was summed."""
    end = time.monotonic() + SECONDS
    while _shared() and time.monotonic() < end:
        time.sleep(0.001)


def _shared() -> list[int]:
    """The tensors that torch has, too: it counts as one that has Python's object, and gives that back last, with the
    lock in its hand. The number of references to one that only a list has says what of it is the call's own."""
    own = [torch.empty(0)]
    alone = sys.getrefcount(own[0])
    return [n for n in range(len(_held)) if sys.getrefcount(_held[n]) > alone]
