"""What the iterations of loops, and the steps of fused modules, read of the inputs: put into the trace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from inspector.engine.recurrent.traced.loops.carried_state import Flow, Slot
from inspector.engine.recurrent.traced.program.gates import leading_to
from inspector.engine.recurrent.traced.reads.tracking import FollowedLoop, Tracker
from inspector.engine.recurrent.traced.record.op_table import Table
from inspector.engine.recurrent.traced.record.operation import Call
from inspector.engine.recurrent.traced.record.operator_traits import Kind
from inspector.engine.trace.own_axes import RecordedReads
from inspector.engine.trace.trace import Recurrence, Trace


@dataclass(frozen=True, slots=True)
class LoopRead:
    """A loop with its recurrence, or with the names of the modules whose own probe shows it."""

    loop: FollowedLoop
    recurrence: Recurrence | None = None
    names: tuple[str, ...] = ()


def cells_read(flow: Flow, state: Sequence[Slot], names: Mapping[int, str]) -> tuple[str, ...]:
    """The modules of the cells that compute this state in the second iteration.

    `names`: id of a module of a known family, or of a parameter → the module's name.
    """
    ops, bits = flow.loop.iterations[1], sum(1 << slot.index for slot in state)
    found = []
    for j in sorted(leading_to(flow, state, 1, through_others=True)):
        op = ops[j][1]
        if flow.reach[1][j] & bits:
            owners = [id(flow.loop.iterations.table.owners.of(frame)) for frame, _ in op.chain]
            given = [id(one) for one in op.inputs] if op.traits.kind is Kind.CELL else []
            found += [names[number] for number in (*owners, *given) if number in names]
    return tuple(dict.fromkeys(found))


def record_reads(
    followed: Sequence[LoopRead], table: Table, written: Sequence[Call], trace: Trace, names: Mapping[int, str]
) -> None:
    """Give every recurrence what its iterations read; leave the rest in the trace for the probes that show it.

    `written`: the calls as they were recorded; `names`: id of a parameter → the name of its module.
    """
    tracker = Tracker(table, trace.batch, [one.loop for one in followed])
    tracker.run(written)
    recorded = trace.findings.of(RecordedReads)
    for one in followed:
        reads = one.loop.reads
        if reads is not None and one.recurrence is not None:
            one.recurrence.reads = reads.backward() if one.recurrence.reverse else reads
        for name in one.names:
            assert reads is not None
            recorded.loops.setdefault(name, []).append(reads)
    for number, call in tracker.fused:
        if number in names:
            recorded.fused.setdefault(names[number], []).append(call)
    recorded.across += [names[number] for number in sorted(tracker.across) if number in names]
