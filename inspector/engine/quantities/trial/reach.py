"""How far back the data depend on inputs, beside how far back the gradient reaches before training."""

from __future__ import annotations

import numpy as np

from inspector.engine.analyses.trial.data_pairs import pairs_of
from inspector.engine.analyses.trial.gradient_by_lag import gradient_by_lag, reach_of
from inspector.engine.analyses.trial.lagged_information import Information, information
from inspector.engine.errors import Unsupported
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import Describe, per_run
from inspector.engine.trace.trace import Trace
from inspector.records import Channel
from inspector.records.catalogue import LOSS

PLACE = "model"
LAGS = 128
"""The longest lag that is looked at."""
NEEDED = Describe(
    kind="trial", compare="separate", title="what an input tells about a target, by lag",
    formula="(I − mean of the null) / H(y_t | x_t), I = I(y_t; x_{t−k} | x_t); at lag 0 I(y_t; x_t) / H(y_t)",
    source="Li 1990, J. Stat. Phys. 60:823 (mutual information by lag); permutation null",
    labels={"statistic": ("share", "error", "certain")},
)  # fmt: skip
REACHED = Describe(
    kind="trial", compare="separate", scale="log", title="gradient of the loss before training, by lag",
    formula="mean over t of ‖∂ℓ_t/∂x_{t−k}‖₂, one loss at a time, x as embedded",
    source="Pascanu, Mikolov & Bengio 2013", labels={"statistic": ("mean", "least", "most")},
)  # fmt: skip


@QUANTITIES.register("trial/reach")
@per_run(
    summary="how far back the data depend on inputs, beside how far the gradient reaches", order=91, default=False,
    needs=(LOSS,), cost="some ten runs of the model, and counting in the data", work=lambda run: run.call * 20,
)  # fmt: skip
def reach(trace: Trace, emit: Emitter) -> None:
    """Write `model:trial/reach` and `model:trial/reach/gradient`, each (statistic, lag).

    Scalars: `trial/reach/gradient`, `…/gradient_least`, `…/gradient_most` the lags that the gradient reaches in the
    sequences that were looked at (their median, least and most); `trial/reach/trained` 1 where weights were loaded,
    `…/sequences` how many were counted.
    """
    emit.scalar("trial/reach/trained", float(bool(trace.subject.checkpoint)))
    lags = min(LAGS, trace.batch.steps - 1)
    if lags < 1:
        emit.refuse(f"{PLACE}:trial/reach", "The sequence has a single step, so there is no lag.")
        return
    try:
        curves = gradient_by_lag(trace, lags)
        pairs, source = pairs_of(trace)
    except Unsupported as reason:
        emit.refuse(f"{PLACE}:trial/reach", str(reason))
        return
    reaches = [reach_of(one) for one in curves]
    known = np.array([one for one in reaches if one == one])
    for name, value in zip(("", "_least", "_most"), (0.5, 0.0, 1.0), strict=True):
        emit.scalar(f"trial/reach/gradient{name}", float(np.quantile(known, value)) if len(known) else float("nan"))
    table = curves.numpy()
    with np.errstate(all="ignore"):
        rows = np.stack([table.mean(0), table.min(0), table.max(0)])
    emit.array(_channel(REACHED, "/gradient", lags, f"{len(table)} sequences of this run"), rows)
    emit.scalar("trial/reach/sequences", float(len(pairs.inputs)))
    found = information(pairs, lags)
    emit.array(_channel(NEEDED, "", lags, source), _table(found))


def _table(found: Information) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    with np.errstate(all="ignore"):
        unit = np.where(found.found > 0, found.share / found.found, 0.0)
    return np.stack([found.share, found.spread * unit, found.certain.astype(np.float64)])


def _channel(about: Describe, name: str, lags: int, source: str) -> Channel:
    return about.channel(f"{PLACE}:trial/reach{name}", ("statistic", "lag"), (3, lags + 1), "float64", method=source)
