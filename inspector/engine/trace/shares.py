"""Progress of a part, told as progress of the whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType

from inspector.engine.trace.emitter import Emitter

Tell = Callable[[float, float, str], None]
"""(done, total, text); total 0 where it is not known."""
NOTHING: Mapping[str, float] = MappingProxyType({})
LEAST_SECONDS = 0.005
"""What a quantity counts for whose work is not known: those that declare none are cheap."""


def part_of(tell: Tell, before: float, share: float, total: float, what: str = "") -> Tell:
    """Tells of a part that is `share` of `total`, after `before` is done; `what` it is where it does not say itself.

    A part that goes through its steps more than once, or does not know how many there are, stays where it was.
    """
    reached = 0.0

    def report(done: float, whole: float, text: str) -> None:
        nonlocal reached
        reached = max(reached, min(1.0, done / whole if whole > 0 else 0.0))
        tell(before + share * reached, total, text or what)

    return report


@contextmanager
def telling(emit: Emitter, tell: Tell) -> Iterator[None]:
    """While inside, the emitter tells its progress to `tell`."""
    before, emit.progress = emit.progress, tell
    try:
        yield
    finally:
        emit.progress = before
