"""The trace of a run that has ended, stored for later analysis: what was recorded is analysed, the model is not run.

A trace has the values of every step (and, where derivatives are read off autograd's graph, that graph), so it is
released when it is larger than `MOST_BYTES`, when another run begins and when another model is opened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from torch import Tensor, nn

from inspector.engine.registries import quantity_of
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.trace import Trace
from inspector.records import split_request

MOST_BYTES = 1 << 30
"""Bytes of tensors in the traces of one run above which they are not stored."""
NO_PARAMETERS = "{} needs the gradients of all parameters, which a run stores only if it is requested from the start"

OTHER_OPTIONS = "{} was computed in this run with other options, and one capture holds it once"


@dataclass(frozen=True, slots=True)
class KeptTrace:
    """One frame of a run: its trace, the emitter that wrote it, the requests that were computed.

    `around` puts the model into the state in which the frame ran (an edited run is written out as loops).
    """

    trace: Trace
    emit: Emitter
    keys: frozenset[str]
    around: Callable[[], AbstractContextManager[None]] = nullcontext


def reasons_for_a_run(kept: KeptTrace, requests: Sequence[str]) -> list[str]:
    """Why quantities cannot be computed on a trace, one phrase for each that cannot."""
    computed = {split_request(request)[0] for request in kept.keys}
    reasons = []
    for request in requests:
        key = split_request(request)[0]
        if key in computed and request not in kept.keys:
            reasons.append(OTHER_OPTIONS.format(request))
        elif quantity_of(request)[0].parameter_gradients and not kept.trace.parameter_gradients.wanted:
            reasons.append(NO_PARAMETERS.format(key))
    return reasons


def tensor_bytes(thing: Any) -> int:
    """Bytes of all tensors that are reached from `thing` by fields and containers, memory that is shared once.

    Modules are skipped, since their weights are in memory anyway. Counter-example: what autograd's graph stores beside
    the values by name is not counted; it is about as much again where the graph is kept (a hand-written loop that
    cannot be run again).
    """
    found = {tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes() for tensor in _tensors(thing)}
    return sum(found.values())


def _tensors(thing: Any) -> Iterator[Tensor]:
    waiting, seen = [thing], {id(thing)}
    while waiting:
        one = waiting.pop()
        if isinstance(one, Tensor):
            yield one
            continue
        for other in _parts(one):
            if id(other) not in seen:
                seen.add(id(other))
                waiting.append(other)


def _parts(one: Any) -> Sequence[Any]:
    if isinstance(one, (nn.Module, type, str, bytes, int, float)):
        return ()
    if isinstance(one, dict):
        return list(one.values())
    if isinstance(one, (list, tuple, set, frozenset)):
        return list(one)
    named = [getattr(one, part.name, None) for part in fields(one)] if is_dataclass(one) else []
    own = type(one).__module__.startswith("inspector.")
    return [*named, *(vars(one).values() if own and hasattr(one, "__dict__") else ())]
