"""The two paths of a step: what is copied past the nonlinearities, and what goes through them."""

from __future__ import annotations

from dataclasses import replace

import torch

from inspector.engine.analyses.direct_formula import direct_formula
from inspector.engine.errors import NotApplicable
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import BLOCK_STEPS, Describe, dtype_name, per_recurrence
from inspector.engine.trace.trace import Recurrence

SOURCE = "Hochreiter & Schmidhuber 1997 (carousel); Srivastava, Greff & Schmidhuber 2015 (carry)"
ABOUT = {
    "path/direct_norm": Describe(
        kind="path", compare="ratio", title="direct path D, Frobenius norm / √S", scale="log", source=SOURCE,
        formula="D_t = {direct}: ∂s_t/∂s_{{t−1}} with every gate and "
        "nonlinearity held fixed; Frobenius norm over √S, 1 for a copy of the whole state of S entries",
    ),
    "path/through_norm": Describe(
        kind="path", compare="ratio", title="nonlinear paths N, Frobenius norm / √S", scale="log", source=SOURCE,
        formula="N_t = J_t − D_t, all of the step Jacobian that is not the direct path; Frobenius norm over √S",
    ),
    "path/direct_share": Describe(
        kind="path", title="share of the direct path", limits=(0, 1), source=SOURCE,
        formula="‖D_t‖²_F / (‖D_t‖²_F + ‖N_t‖²_F)",
    ),
}  # fmt: skip


@QUANTITIES.register("paths")
@per_recurrence(
    signal="path",
    summary="the direct path of each step against the one through nonlinearities",
    order=44,
    jacobians=True,
)
def paths(recurrence: Recurrence, emit: Emitter, sample: int) -> None:
    """Write `path/direct_norm`, `path/through_norm` and `path/direct_share`, (step,), exact. Plain RNNs have none."""
    size = recurrence.cell.state_size**0.5
    for start, block in recurrence.blocks(sample, BLOCK_STEPS):
        diagonal = block.direct()
        if diagonal is None:
            raise NotApplicable("A step without a carry has no direct path.")
        direct, through = diagonal[:, 0].norm(dim=1) / size, block.through_frobenius()[:, 0] / size
        share = direct.square() / (direct.square() + through.square())
        for signal, values in zip(ABOUT, (direct, through, share), strict=True):
            rows = recurrence.in_order(torch.as_tensor(values), sample)
            name = f"{recurrence.place}:{signal}"
            about = replace(ABOUT[signal], formula=ABOUT[signal].formula.format(direct=direct_formula(recurrence.cell)))
            emit.channel(
                about.channel(name, ("step",), (recurrence.length(sample),), dtype_name(rows), module=recurrence.module)
            )
            emit.page(name, (recurrence.sequence_offset(start, len(rows), sample),), rows)
