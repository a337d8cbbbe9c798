"""Products of the two paths by lag: the direct path alone, against all paths."""

from __future__ import annotations

import torch
from torch import Tensor

from inspector.engine.analyses.direct_formula import direct_formula, factor
from inspector.engine.analyses.lag_budgets import walk_work
from inspector.engine.analyses.lag_statistics import OVER_STARTS, STATISTICS
from inspector.engine.analyses.path_products import CURVES, PathProducts, path_products
from inspector.engine.errors import NotApplicable
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import Describe, per_recurrence
from inspector.engine.trace.trace import Recurrence

SOURCE = "Hochreiter & Schmidhuber 1997; Pascanu, Mikolov & Bengio 2013"
TITLES = {
    "direct": ("direct path alone", "‖D_{k+ℓ} … D_{k+1}‖_F / √S, D = "),
    "whole": ("all paths", "‖J_{k+ℓ} … J_{k+1}‖_F / √S, the whole Jacobian"),
    "difference": (
        "difference",
        "‖J_{k+ℓ} … J_{k+1} − D_{k+ℓ} … D_{k+1}‖_F / √S, what the other paths add "
        "or cancel; in float32 a difference below 10⁻⁶ of the products is rounding",
    ),
}


@QUANTITIES.register("paths/lag")
@per_recurrence(
    signal="path/lag", summary="the carousel's products by lag against those of all paths", order=72,
    work=walk_work, jacobians=True, found_with="jacobian/lag",
)  # fmt: skip
def path_lags(recurrence: Recurrence, emit: Emitter, sample: int) -> None:
    """Write `path/lag_direct`, `path/lag_whole`, `path/lag_difference` (statistic, lag), and the retention by unit.

    `path/retention` (lag, unit) is the mean over starts of the product over the lag of f, of z, or of what a step of
    the model's own carries over by; `path/retention_band` (statistic, lag) its mean and band over the units. Curves are
    medians over starts, with 10 %, 90 % and the mean.
    """
    found = path_products(recurrence, sample, emit)
    if found is None:
        raise NotApplicable("A step without a carry has no direct path.")
    if found.refused:
        for name in ("whole", "difference"):
            emit.refuse(f"{recurrence.place}:path/lag_{name}", found.refused)
    for name in CURVES:
        if name in found.logs:
            _write(recurrence, emit, name, found.band(name), found)
    _write_retention(recurrence, emit, found)


def _write(recurrence: Recurrence, emit: Emitter, name: str, values: Tensor, found: PathProducts) -> None:
    title, formula = TITLES[name]
    formula += direct_formula(recurrence.cell) if name == "direct" else ""
    about = Describe(
        kind="path", compare="ratio", title=title, formula=f"{formula}; {OVER_STARTS}", source=SOURCE, scale="log",
        method=found.method if name != "direct" else found.starts_method,
    )  # fmt: skip
    channel = about.channel(
        f"{recurrence.place}:path/lag_{name}", ("statistic", "lag"), tuple(values.shape), "float64",
        labels={"statistic": STATISTICS}, module=recurrence.module,
    )  # fmt: skip
    emit.array(channel, values)


def _write_retention(recurrence: Recurrence, emit: Emitter, found: PathProducts) -> None:
    about = Describe(
        kind="path", title="retention of a unit", source="Tallec & Ollivier 2018", method=found.starts_method,
        formula=f"mean over starts k of ∏_{{t=k+1…k+ℓ}} d_t[u], d = {factor(recurrence.cell)}",
    )  # fmt: skip
    name, values = f"{recurrence.place}:path/retention", found.retention
    emit.array(about.channel(name, ("lag", "unit"), tuple(values.shape), "float64", module=recurrence.module), values)
    low, high = torch.quantile(values, torch.tensor([0.1, 0.9], dtype=values.dtype), dim=1)
    band = torch.stack((values.mean(1), low, high))
    about = Describe(
        kind="path", compare="ratio",
        title="retention over units", source="Tallec & Ollivier 2018", method=found.starts_method, scale="log",
        formula="mean, 10 % and 90 % quantile over the units of their retention over the lag",
    )  # fmt: skip
    channel = about.channel(
        f"{recurrence.place}:path/retention_band", ("statistic", "lag"), tuple(band.shape), "float64",
        labels={"statistic": ("mean", "p10", "p90")}, module=recurrence.module,
    )  # fmt: skip
    emit.array(channel, band)
