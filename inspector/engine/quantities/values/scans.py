"""The factors of linear recurrences that run as scans: Δ, B, C and x under the names of the code, time constants, and
kernels of long convolutions."""

from __future__ import annotations

import torch
from torch import Tensor

from inspector.engine.analyses.lag_statistics import STATISTICS, by_lag
from inspector.engine.registries import QUANTITIES
from inspector.engine.scans.search import Scan, Scans
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import BLOCK_STEPS, Describe, dtype_name, per_run, rows_per_page
from inspector.engine.trace.trace import Recurrence, Trace
from inspector.records import Channel

SOURCE = "Gu & Dao 2023, arXiv 2312.00752; Gu et al. 2022, arXiv 2206.11893"
TIME = Describe(
    kind="state", compare="ratio", unit="step", title="time constant", scale="log", source=SOURCE,
    formula="τ_t = −1 / ln |a_t|, the steps over which a state falls to 1/e; ∞ for |a_t| ≥ 1",
)  # fmt: skip
OVER_CHANNELS = "median, 10 % and 90 % quantile and arithmetic mean over the channels"


@QUANTITIES.register("scans")
@per_run(summary="factors, time constants and kernels of linear recurrences that run as scans", order=11)
def scans(trace: Trace, emit: Emitter) -> None:
    """Write `place:scan/NAME` (step, unit) for every factor that changes from step to step, `place:scan/time_constant`
    (step, unit) where the decay does, and of long convolutions `place:scan/kernel` (statistic, lag), |k| over the
    channels, and `place:scan/kernel_map` (unit, lag), k itself.
    """
    found = trace.findings.get(Scans)
    for scan in found.found if found is not None else ():
        emit.check()
        if not scan.passed:
            continue  # what is refused for the place says why
        for name, values in scan.parts.items():
            about = Describe(
                kind="state", title=name, formula=f"{name}, as the model's own code computes it", scale="diverging",
                source="the model's own code",
            )  # fmt: skip
            _by_step(scan, f"{scan.place}:scan/{name}", values, about, emit)
        if scan.recurrence is not None:
            _time_constants(scan, scan.recurrence, trace.look_at, emit)
        if scan.kernel is not None:
            _kernel(scan, scan.kernel, emit)


def _by_step(scan: Scan, name: str, values: Tensor, about: Describe, emit: Emitter) -> None:
    values = values.detach().cpu()
    emit.channel(about.channel(name, ("step", "unit"), tuple(values.shape), dtype_name(values), module=scan.module))
    size = rows_per_page(len(values), values.shape[1] * values.element_size())
    for start in range(0, len(values), size):
        emit.page(name, (start, 0), values[start : start + size])


def _time_constants(scan: Scan, recurrence: Recurrence, sample: int, emit: Emitter) -> None:
    blocks = [block.eigenvalues() for _, block in recurrence.blocks(sample, BLOCK_STEPS)]
    units = recurrence.cell.parts[recurrence.cell.main].stop
    size = torch.cat([one[:, 0, :units].abs() for one in blocks if one is not None])
    if bool((size == size[:1]).all()):
        return  # the time constants of constant decays are one number a unit (gate/decay/timescale)
    constants = recurrence.in_order((-1 / size.log()).where(size < 1, torch.inf), sample)
    _by_step(scan, f"{scan.place}:scan/time_constant", constants, TIME, emit)


def _kernel(scan: Scan, kernel: Tensor, emit: Emitter) -> None:
    every = torch.ones(kernel.shape, dtype=torch.bool)
    table = by_lag(kernel.abs().log(), every)
    emit.array(
        Channel(
            name=f"{scan.place}:scan/kernel", kind="lag", dims=("statistic", "lag"), shape=tuple(table.shape),
            dtype="float64", scale="log", title="kernel by lag", compare="ratio", module=scan.module, source=SOURCE,
            formula=f"|k_ℓ| of y_t = Σ_ℓ k_ℓ u_(t−ℓ): {OVER_CHANNELS}", labels={"statistic": STATISTICS},
        ),
        table,
    )  # fmt: skip
    emit.array(
        Channel(
            name=f"{scan.place}:scan/kernel_map", kind="lag", dims=("unit", "lag"), shape=tuple(kernel.shape),
            dtype="float64", scale="diverging", title="kernel by channel and lag", module=scan.module, source=SOURCE,
            formula="k_ℓ of y_t = Σ_ℓ k_ℓ u_(t−ℓ)",
        ),
        kernel,
    )  # fmt: skip
