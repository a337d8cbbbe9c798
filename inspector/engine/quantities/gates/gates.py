"""Every gate and candidate of every recurrent layer, at every step, recomputed in one batched product for each
block."""

from __future__ import annotations

from inspector.engine.cells.base import Cell
from inspector.engine.cells.gate_info import ACTIVATION
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import Describe, dtype_name, per_recurrence, rows_per_page
from inspector.engine.trace.trace import Recurrence


def describe(cell: Cell, signal: str) -> Describe:
    """The family's description of a gate; other gates are described by their name."""
    for gate in cell.gate_info:
        if gate.signal == signal:
            return Describe(
                kind="gate", title=gate.title, formula=gate.formula, limits=gate.limits, source=gate.source,
                scale="diverging" if gate.limits[0] < 0 else "sequential",
            )  # fmt: skip
    name = signal.removeprefix(ACTIVATION).removeprefix("gate/")
    text = cell.spelt.get(signal, name)
    title = f"{text} #{name.partition('#')[2]}" if "#" in name and text != name else text
    if signal.startswith(ACTIVATION):
        return Describe(
            kind="state", title=title, formula=f"{text}, as the model's own code computes it", scale="diverging",
            source="the model's own code",
        )  # fmt: skip
    limits = (0.0, 1.0) if signal.startswith("gate/") else None
    bound = f"; {cell.bounded[signal]} keeps it between 0 and 1" if signal in cell.bounded else ""
    outward = "; only the output reads it, no state does" if signal in cell.output_gates else ""
    formula = f"{text}, as the model's own code computes it{bound}{outward}"
    return Describe(
        kind="gate", title=f"{'output ' if outward else ''}gate {title}" if limits else title, formula=formula,
        limits=limits, scale="sequential" if limits else "diverging", source="the model's own code",
    )  # fmt: skip


@QUANTITIES.register("gates")
@per_recurrence(signal="gate", summary="every gate and candidate, step by step", order=10)
def gates(recurrence: Recurrence, emit: Emitter, sample: int) -> None:
    """Write `place:gate/NAME`, `place:candidate` and `place:activation/NAME`, (step, unit), for the selected sample."""
    length = recurrence.length(sample)
    for start, block in recurrence.blocks(sample, _block_size(recurrence, length)):
        for signal, values in block.gates.items():
            name = f"{recurrence.place}:{signal}"
            rows = recurrence.in_order(values[:, 0], sample)
            shape = (length, rows.shape[1])
            about = describe(recurrence.cell, signal)
            emit.channel(about.channel(name, ("step", "unit"), shape, dtype_name(rows), module=recurrence.module))
            emit.page(name, (recurrence.sequence_offset(start, len(rows), sample), 0), rows)


def _block_size(recurrence: Recurrence, length: int) -> int:
    """The 64 steps of the other quantities (whose blocks are then shared), more for small states of long runs."""
    row = recurrence.cell.state_size * recurrence.states.element_size()
    return 64 if length <= 4096 else max(64, rows_per_page(length, row))
