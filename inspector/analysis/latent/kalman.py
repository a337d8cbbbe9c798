"""The Kalman filter and the smoother of Rauch, Tung & Striebel, in double precision.

z_1 ~ N(m, P), z_t = A z_{t−1} + N(0, Q), x_t = C z_t + d + N(0, R). The covariances do not depend on what is measured.
Source: Durbin & Koopman 2012, chapter 4; Särkkä 2013, theorems 4.2 and 8.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
PARTS = ("A", "Q", "C", "R", "initial_mean", "initial_covariance")
"""What must be given of a model; d is zero where it is not."""
SYMMETRIC = 1e-4
"""Largest share of a covariance's largest entry by which it may differ from its transpose."""


class NotAModel(ValueError):
    """What was given is not a linear Gaussian or hidden Markov model: one sentence."""


@dataclass(frozen=True, slots=True)
class LinearGaussian:
    """A (n, n), Q (n, n), C (o, n), d (o,), R (o, o), and of the first state its mean (n,) and covariance (n, n)."""

    A: Array
    Q: Array
    C: Array
    d: Array
    R: Array
    initial_mean: Array
    initial_covariance: Array

    @property
    def states(self) -> int:
        """How many numbers are hidden."""
        return len(self.A)


@dataclass(frozen=True, slots=True)
class Filtered:
    """Of each step: the state before x_t is seen, x_t's innovation and its covariance, the gain, the state after.

    predicted (t, n), predicted_covariance (t, n, n), innovation (t, o), innovation_covariance (t, o, o), gain
    (t, n, o), mean (t, n), covariance (t, n, n), log_likelihood (t,): ln p(x_t | x_{<t}) in nats.
    """

    predicted: Array
    predicted_covariance: Array
    innovation: Array
    innovation_covariance: Array
    gain: Array
    mean: Array
    covariance: Array
    log_likelihood: Array


def linear_gaussian(parts: Mapping[str, Any]) -> LinearGaussian:
    """The model of matrices by name, checked. Raises NotAModel with one sentence."""
    missing = [name for name in PARTS if name not in parts]
    if missing:
        raise NotAModel(f"A linear Gaussian model has {', '.join(PARTS)}; {', '.join(missing)} is not given.")
    found = {name: np.asarray(parts[name], dtype=np.float64) for name in PARTS}
    n = found["A"].shape[0] if found["A"].ndim else 0
    o = found["C"].shape[0] if found["C"].ndim else 0
    found["d"] = np.asarray(parts.get("d", np.zeros(o)), dtype=np.float64)
    expected = {
        "A": (n, n), "Q": (n, n), "C": (o, n), "d": (o,), "R": (o, o),
        "initial_mean": (n,), "initial_covariance": (n, n),
    }  # fmt: skip
    for name, shape in expected.items():
        if found[name].shape != shape:
            raise NotAModel(f"{name} has shape {found[name].shape}; with A and C as given it has {shape}.")
        if not np.isfinite(found[name]).all():
            raise NotAModel(f"{name} holds a NaN or infinity.")
    for name in ("Q", "R", "initial_covariance"):
        found[name] = _covariance(name, found[name])
    return LinearGaussian(**found)


def _covariance(name: str, matrix: Array) -> Array:
    """The matrix, exactly symmetric. Raises NotAModel where it is no covariance."""
    largest = np.abs(matrix).max(initial=0.0)
    if np.abs(matrix - matrix.T).max(initial=0.0) > SYMMETRIC * largest:
        raise NotAModel(f"{name} is not symmetric, so it is no covariance.")
    matrix = (matrix + matrix.T) / 2
    if matrix.size and np.linalg.eigvalsh(matrix)[0] < -SYMMETRIC * largest:
        raise NotAModel(f"{name} has a negative eigenvalue, so it is no covariance.")
    return matrix


def filtered(model: LinearGaussian, x: Array) -> Filtered:
    """The filter over x (t, o). Raises NotAModel where an innovation's covariance is singular or x is not finite."""
    if x.ndim != 2 or x.shape[1] != len(model.C):
        raise NotAModel(f"The sequence has shape {x.shape}; with C as given it has (steps, {len(model.C)}).")
    if not len(x):
        raise NotAModel("The sequence has no steps.")
    if not np.isfinite(x).all():
        raise NotAModel(f"The sequence has a NaN or infinity at step {int(np.nonzero(~np.isfinite(x))[0][0])}.")
    mean, covariance = model.initial_mean, model.initial_covariance
    rows: list[tuple[Any, ...]] = []
    for seen in np.asarray(x, dtype=np.float64):
        row = _update(model, mean, covariance, seen)
        rows.append(row)
        mean, covariance = model.A @ row[5], model.A @ row[6] @ model.A.T + model.Q
    return Filtered(*(np.stack(column) for column in zip(*rows, strict=True)))


def _update(model: LinearGaussian, mean: Array, covariance: Array, seen: Array) -> tuple[Any, ...]:
    """One step, in the order of `Filtered`: with Joseph's form, which stays symmetric and positive."""
    innovation = seen - model.C @ mean - model.d
    spread = model.C @ covariance @ model.C.T + model.R
    try:
        factor = np.linalg.cholesky(spread)
    except np.linalg.LinAlgError:
        raise NotAModel(
            "The covariance of an innovation is singular: R and the state's covariance are both 0."
        ) from None
    gain = np.linalg.solve(spread, model.C @ covariance).T
    kept = np.eye(len(mean)) - gain @ model.C
    after = kept @ covariance @ kept.T + gain @ model.R @ gain.T
    scaled = np.linalg.solve(factor, innovation)
    likelihood = -(scaled @ scaled + 2 * np.log(np.diag(factor)).sum() + len(seen) * np.log(2 * np.pi)) / 2
    return mean, covariance, innovation, spread, gain, mean + gain @ innovation, after, likelihood


def smoothed(model: LinearGaussian, found: Filtered) -> tuple[Array, Array]:
    """Mean (t, n) and covariance (t, n, n) of z_t given all of x. Pseudo-inverses allow states without noise."""
    mean, covariance = found.mean.copy(), found.covariance.copy()
    for t in range(len(mean) - 2, -1, -1):
        ahead = found.predicted_covariance[t + 1]
        back = found.covariance[t] @ model.A.T @ np.linalg.pinv(ahead, hermitian=True)
        mean[t] += back @ (mean[t + 1] - found.predicted[t + 1])
        covariance[t] += back @ (covariance[t + 1] - ahead) @ back.T
    return mean, covariance
