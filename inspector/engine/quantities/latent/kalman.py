"""Linear Gaussian models: filtered and smoothed states, innovations and their tests, gain, eigenvalues of A."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from inspector.analysis.latent import consistency, kalman
from inspector.engine.analyses.matrix_spectra import spectra, write_spectra
from inspector.engine.latent.declared import GAUSSIAN, Declared, DeclaredModels, few_calls, write
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import Describe, per_run
from inspector.engine.trace.trace import Trace

SOURCE = "Kalman 1960; Rauch, Tung & Striebel 1965; Durbin & Koopman 2012, chapter 4"
TESTS = "Bar-Shalom, Li & Kirubarajan 2001, section 5.4; Ljung & Box 1978"
MOST_STEPS, MOST_STATES = 100_000, 64
TOO_LARGE = "A filter of {} hidden numbers over {:,} steps is not computed; the limits are {} and {:,}."
AGREES = 1e-3
"""Share of the log-likelihood by which the run's own loss may differ, in float32 over many steps."""
STATES = ("mean", "deviation")
Array = npt.NDArray[Any]


@QUANTITIES.register("latent/kalman")
@per_run(
    summary="Kalman filter and smoother: hidden states with bands, innovations, gain, eigenvalues of A", order=56,
    cost="about as long as a few runs of the model", work=few_calls(GAUSSIAN),
)  # fmt: skip
def kalman_filter(trace: Trace, emit: Emitter) -> None:
    """Write, of every module with `linear_gaussian`, `latent/z/filtered`, `/predicted`, `/smoothed` (step, unit,
    statistic), `latent/z/log_likelihood` (step,), `innovation/standardised` (step, unit), `innovation/nis` (step,),
    `innovation/gain` (step, component), `innovation/autocorrelation` (lag, unit), and the spectrum of A as `weight/A`.
    """
    found = trace.findings.get(DeclaredModels)
    for one in found.found if found is not None else ():
        if one.kind == GAUSSIAN:
            try:
                _write(one, trace, emit)
            except kalman.NotAModel as reason:
                emit.refuse(f"{one.place}:latent/z", str(reason))


def _write(one: Declared, trace: Trace, emit: Emitter) -> None:
    model = kalman.linear_gaussian({name: value.numpy() for name, value in one.parts.items()})
    if model.states > MOST_STATES or len(one.sequence) > MOST_STEPS:
        raise kalman.NotAModel(TOO_LARGE.format(model.states, len(one.sequence), MOST_STATES, MOST_STEPS))
    singular, eigen, _ = spectra(torch.from_numpy(model.A))
    write_spectra(f"{one.place}:weight/A", "A", one.module, singular, eigen, emit)
    found = kalman.filtered(model, one.sequence.double().numpy())
    emit.check()
    estimates = {
        "predicted": ("z_t given x_1 … x_{t−1}", found.predicted, found.predicted_covariance),
        "filtered": ("z_t given x_1 … x_t", found.mean, found.covariance),
        "smoothed": ("z_t given all of x", *kalman.smoothed(model, found)),
    }
    for name, (formula, mean, covariance) in estimates.items():
        spread = np.sqrt(np.clip(np.diagonal(covariance, axis1=1, axis2=2), 0, None))
        about = Describe(
            kind="latent", compare="separate", title=name, formula=f"mean and standard deviation of {formula}",
            source=SOURCE, labels={"statistic": STATES},
        )  # fmt: skip
        write(one, f"latent/z/{name}", about, ("step", "unit", "statistic"), np.stack((mean, spread), -1), emit)
    method = _agreement(trace, found.log_likelihood)
    about = Describe(
        kind="latent",
        unit="nat",
        title="ln p(xₜ | earlier x)",
        formula="ln N(ν_t; 0, S_t)",
        source=SOURCE,
        method=method,
    )
    write(one, "latent/z/log_likelihood", about, ("step",), found.log_likelihood, emit)
    _innovations(one, found, emit)
    _gain(one, found.gain, emit)


def _agreement(trace: Trace, likelihood: Array) -> str:
    """ "exact", with what the run's own loss says of it."""
    if trace.loss is None or trace.loss.shape[1] < len(likelihood):
        return "exact"
    loss = trace.loss[trace.look_at, : len(likelihood)].double().numpy()
    if not np.isfinite(loss).all():
        return "exact"
    same = np.abs(loss + likelihood).max() <= AGREES * max(1.0, np.abs(likelihood).max())
    return "exact; minus the loss of the run" if same else "exact; the loss of the run is another number"


def _innovations(one: Declared, found: kalman.Filtered, emit: Emitter) -> None:
    standard = consistency.standardised(found.innovation, found.innovation_covariance)
    nis = consistency.squared(standard)
    about = Describe(
        kind="innovation", title="standardised innovation", scale="diverging", source=TESTS,
        formula="L⁻¹ ν_t with S_t = L Lᵀ, ν_t = x_t − C ẑ_t − d: N(0, 1) and without memory where the model is right",
    )  # fmt: skip
    write(one, "innovation/standardised", about, ("step", "unit"), standard, emit)
    about = Describe(kind="innovation", title="NIS", formula="νᵀ S⁻¹ ν: χ² where the model is right", source=TESTS)
    write(one, "innovation/nis", about, ("step",), nis, emit)
    low, high = consistency.band(standard.shape[1])
    for name, value in (("low", low), ("high", high), ("mean", float(nis.mean()))):
        emit.scalar(f"{one.place}:innovation/nis/{name}", value)
    lags = consistency.lags_of(len(standard))
    if not lags:
        return
    memory = np.stack([consistency.autocorrelation(column, lags) for column in standard.T], 1)
    about = Describe(
        kind="innovation", title="autocorrelation of innovations", scale="diverging", source=TESTS, limits=(-1.0, 1.0),
        formula="r_k of the standardised innovations; 95 % within ±1.96/√t where they have no memory",
    )  # fmt: skip
    write(
        one, "innovation/autocorrelation", about, ("lag", "unit"), np.vstack((np.ones_like(memory[:1]), memory)), emit
    )
    for unit, column in enumerate(standard.T):
        test = consistency.ljung_box(column, lags)
        emit.scalar(f"{one.place}:innovation/ljung_box/statistic/{unit}", test.statistic)
        emit.scalar(f"{one.place}:innovation/ljung_box/p/{unit}", test.p)


def _gain(one: Declared, gain: Array, emit: Emitter) -> None:
    _, states, observed = gain.shape
    names = tuple(f"z{i} from x{j}" for i, j in product(range(states), range(observed)))
    about = Describe(
        kind="innovation", title="gain", formula="K_t = P_t Cᵀ S_t⁻¹, what an innovation adds to the state",
        source=SOURCE, scale="diverging", labels={"component": names},
    )  # fmt: skip
    write(one, "innovation/gain", about, ("step", "component"), gain.reshape(len(gain), -1), emit)
