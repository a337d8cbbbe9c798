"""Distributions that a model made, the samples it drew and the KL terms it took, by step."""

from __future__ import annotations

from inspector.engine.latent.variables import Line, Variable, Variables, free_name, lines_of
from inspector.engine.latent.written import WrittenVariables
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import Describe, dtype_name, per_run, rows_per_page
from inspector.engine.trace.trace import Trace

AXES = {
    "estimate": ("unit", "statistic"), "sample": ("unit",), "divergence": ("unit",), "parameter": ("unit",),
    "states": ("state",), "number": (),
}  # fmt: skip
NATS = ("divergence", "number")
SOURCE = "Kingma & Welling 2014; Krishnan, Shalit & Sontag 2017"


@QUANTITIES.register("latent/distributions")
@per_run(summary="distributions in the model: means with bands, samples, KL and ln p by step", order=12)
def distributions(trace: Trace, emit: Emitter) -> None:
    """Write `place:latent/VARIABLE/LINE` of every variable: VARIABLE itself and what it is compared with (step, unit,
    statistic) with statistic mean and deviation, `sample` (step, unit), `kl` (step, unit), `kl_total` and `log_prob`
    (step,), probabilities of categories (step, state). Without a step axis where there is one value a sequence.
    """
    found, written = trace.findings.of(Variables), trace.findings.of(WrittenVariables)
    taken = {(variable.place, variable.name) for variable in found.found}
    for variable in written.found:
        variable.name = free_name(variable.place, variable.name, taken)
    for variable, line in lines_of([*found.found, *written.found]):
        emit.check()
        _write(variable, line, emit)


def _write(variable: Variable, line: Line, emit: Emitter) -> None:
    values = line.values
    name = f"{variable.place}:latent/{variable.name}/{line.signal}"
    dims = (*(("step",) if line.domain else ()), *AXES[line.sort])
    if not dims:
        return emit.scalar(name, float(values))
    about = Describe(
        kind="occupancy" if line.sort == "states" else "latent", title=line.title, formula=line.formula,
        source=SOURCE, unit="nat" if line.sort in NATS else "1",
        labels={"statistic": ("mean", "deviation")} if line.sort == "estimate" else {},
        limits=(0.0, 1.0) if line.sort == "states" else None,
        scale="diverging" if line.sort in ("sample", "parameter") else "sequential",
        compare="separate" if line.sort == "estimate" else "difference",
    )  # fmt: skip
    domains = {"step": line.domain} if line.domain else {}
    emit.channel(
        about.channel(name, dims, tuple(values.shape), dtype_name(values), module=variable.module, domains=domains)
    )
    size = rows_per_page(len(values), values[:1].nbytes) if line.domain else max(1, len(values))
    for start in range(0, len(values), size):
        emit.page(name, (start, *(0,) * (values.dim() - 1)), values[start : start + size])
    return None
