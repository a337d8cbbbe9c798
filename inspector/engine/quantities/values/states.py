"""Hidden and cell states of every recurrent layer, at every step."""

from __future__ import annotations

from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import Describe, dtype_name, per_run, rows_per_page
from inspector.engine.trace.trace import Recurrence, Trace
from inspector.records.catalogue import RECURRENCE

DESCRIBE = {
    "h": Describe(kind="state", title="hidden state", formula="h_t", scale="diverging", source="Elman 1990"),
    "c": Describe(
        kind="state", title="cell state", formula="c_t = f_t ⊙ c_{t−1} + i_t ⊙ g_t", scale="diverging",
        source="Hochreiter & Schmidhuber 1997",
    ),
}  # fmt: skip


@QUANTITIES.register("states")
@per_run(summary="hidden and cell states of every recurrent layer", order=0, needs=(RECURRENCE,))
def states(trace: Trace, emit: Emitter) -> None:
    """Write `place:h` and `place:c`, (step, unit), for the selected sample; channels that a probe wrote live are
    skipped.

    States come from the module itself, so they are written even when the recomputed gates are rejected; an LSTM's c is
    recomputed, so then it is not.
    """
    for recurrence in trace.recurrences:
        for part in recurrence.cell.parts:
            failed = recurrence.check is not None and not recurrence.check.passed
            if part not in recurrence.shown and not (part != "h" and failed):
                _write(recurrence, part, trace.look_at, emit)


def _write(recurrence: Recurrence, part: str, sample: int, emit: Emitter) -> None:
    length = recurrence.length(sample)
    index = sample - recurrence.base
    values = recurrence.states[1 : length + 1, index, recurrence.cell.parts[part]]
    name = f"{recurrence.place}:{part}"
    describe = DESCRIBE.get(part, Describe(kind="state", title=part, formula=f"{part}_t", scale="diverging"))
    units = values.shape[1]
    emit.channel(
        describe.channel(name, ("step", "unit"), (length, units), dtype_name(values), module=recurrence.module)
    )
    size = rows_per_page(length, units * values.element_size())
    for start in range(0, length, size):
        rows = recurrence.in_order(values[start : start + size], sample)
        emit.page(name, (recurrence.sequence_offset(start, len(rows), sample), 0), rows)
