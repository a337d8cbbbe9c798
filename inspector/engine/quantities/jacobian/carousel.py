"""The constant error carousel of an LSTM: the block c → c of the step Jacobian."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from inspector.engine.analyses.memory_gate import memory_gate_of
from inspector.engine.cells.base import StepBlock
from inspector.engine.cells.gate_info import MemoryGate
from inspector.engine.errors import NotApplicable
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import BLOCK_STEPS, Describe, dtype_name, how, per_recurrence
from inspector.engine.trace.trace import Recurrence
from inspector.engine.trace.work import Size, Work

SIGNAL = "jacobian/carousel_norm"
ABOUT = Describe(
    kind="jacobian", compare="ratio", title="c → c block",
    formula="‖∂c_t/∂c_{t−1}‖₂ = max_h f_t[h], h_{t−1} held fixed", source="Hochreiter & Schmidhuber 1997", scale="log",
)  # fmt: skip


@QUANTITIES.register(SIGNAL)
@per_recurrence(
    signal=SIGNAL, summary="spectral norm of the c → c block of an LSTM", order=42, jacobians=True,
    work=lambda size: counted(size),
)  # fmt: skip
def carousel_norm(recurrence: Recurrence, emit: Emitter, sample: int) -> None:
    """Write `jacobian/carousel_norm` (step,) for an LSTM, and for a step whose memory lies beside another part of its
    state and is carried over by a gate, whatever its variables are called."""
    found = memory_gate_of(recurrence)
    if found is None or len(recurrence.cell.parts) < 2 or found.part == recurrence.cell.main:
        raise NotApplicable("Only a state with a memory beside it, as an LSTM's c, has a c → c block.")
    about, name = _about(recurrence, found), f"{recurrence.place}:{SIGNAL}"
    for start, block in recurrence.blocks(sample, BLOCK_STEPS):
        rows = recurrence.in_order(norms(block, found)[:, 0], sample)
        shape = (recurrence.length(sample),)
        emit.channel(about.channel(name, ("step",), shape, dtype_name(rows), module=recurrence.module))
        emit.page(name, (recurrence.sequence_offset(start, len(rows), sample),), rows)


def norms(block: StepBlock, found: MemoryGate) -> Tensor:
    """(t, b): the largest gate of a cell in closed form, whose block is diagonal; else the norm of the block itself."""
    if block.cell.memory_gate is not None:
        return found.kept(block.gates).abs().amax(-1)
    part = block.cell.parts[found.part]
    own = block.jacobian()[..., part, part]
    finite = own.isfinite().all(-1).all(-1)
    values: Tensor = torch.linalg.matrix_norm(torch.where(finite[..., None, None], own, 0.0), 2)
    return values.masked_fill(~finite, torch.nan)


def counted(size: Size) -> Work:
    """A recorded step: whether a gate keeps a part is tested, then one block a step is factorised. Else a maximum of
    gates.

    It is known from sizes only, so the largest part beside the one that is seen is taken for the memory.
    """
    if not size.built or not size.beside:
        return Work(numbers=float(size.steps) * size.units, calls=20.0 * size.blocks())
    block = float(size.beside) ** 2
    return Work(
        numbers=10 * size.steps * block, calls=60.0 * size.blocks(),
        factors={("singular", size.beside): float(size.steps)},
    )  # fmt: skip


def _about(recurrence: Recurrence, found: MemoryGate) -> Describe:
    if recurrence.cell.memory_gate is not None:
        return ABOUT
    formula = f"‖∂{found.part}_t/∂{found.part}_{{t−1}}‖₂ with the rest of the state of step t − 1 held fixed"
    return how(replace(ABOUT, title=f"{found.part} → {found.part} block", formula=formula), recurrence)
