"""What an edited run uses to find its targets: the loops of a pass without the change, and their operations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from inspector.engine.recurrent.traced.loops.carried_state import Flow, Slot
from inspector.engine.recurrent.traced.record.operation import Op
from inspector.engine.recurrent.traced.record.owners import Owners


@dataclass(frozen=True, slots=True)
class RecordedLoop:
    """One recurrence: its place, its carried variables, which of them are its state, and the size of the batch."""

    place: str
    flow: Flow
    state: Sequence[Slot]
    size: int


@dataclass(slots=True)
class RecordedLoops:
    """All loops of a run, all its operations in their order, and the objects that their frames belong to."""

    operations: Sequence[Op] = ()
    owners: Owners = field(default_factory=Owners)
    loops: list[RecordedLoop] = field(default_factory=list)
