"""Hidden Markov models in double precision: posteriors, the most likely path, how long states last.

All from logarithms: log π (k,), log A (k, k) from row to column, log p(x_t | z_t = k) (t, k).
Source: Rabiner 1989, sections III.A, III.B and equation 5.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.analysis.latent.kalman import NotAModel

Array = npt.NDArray[Any]
TOLERANCE = 1e-3
"""By how much the probabilities of a row may fail to add up to 1."""


@dataclass(frozen=True, slots=True)
class Posteriors:
    """filtered and smoothed p(z_t | x_{≤t}), p(z_t | all x) (t, k); pairs (k, k): expected counts of transitions;
    log_likelihood (t,): ln p(x_t | x_{<t}) in nats."""

    filtered: Array
    smoothed: Array
    pairs: Array
    log_likelihood: Array


def checked(initial: Array, transition: Array, emission: Array) -> tuple[Array, Array, Array]:
    """The same in double precision. Raises NotAModel where shapes or sums are not those of probabilities."""
    initial, transition, emission = (np.asarray(one, dtype=np.float64) for one in (initial, transition, emission))
    k = initial.shape[0] if initial.ndim == 1 else -1
    if k < 1 or transition.shape != (k, k) or emission.ndim != 2 or emission.shape[1] != k:
        raise NotAModel(
            f"log π, log A and log p(x|z) have shapes {initial.shape}, {transition.shape} and {emission.shape}; "
            "expected (k,), (k, k) and (steps, k)."
        )
    for name, values in (("π", initial[None]), ("A", transition)):
        sums = np.exp(values).sum(-1)
        if not (np.abs(sums - 1) <= TOLERANCE).all():
            raise NotAModel(f"The rows of {name} do not add up to 1 ({sums[np.abs(sums - 1).argmax()]:.4g}).")
    if np.isnan(emission).any() or (emission == np.inf).any():
        raise NotAModel("log p(x|z) holds a NaN or +infinity.")
    return initial, transition, emission


def posteriors(initial: Array, transition: Array, emission: Array) -> Posteriors:
    """Forward and backward pass. Raises NotAModel where a step is impossible in every state."""
    t, k = emission.shape
    filtered, smoothed, likelihood = np.zeros((t, k)), np.zeros((t, k)), np.zeros(t)
    expected, moves = np.exp(initial), np.exp(transition)
    ahead = np.zeros((t, k))
    for step, seen in enumerate(emission):
        ahead[step] = expected
        top = seen.max()
        joint = expected * np.exp(seen - top) if np.isfinite(top) else np.zeros(k)
        total = joint.sum()
        if total <= 0:
            raise NotAModel(f"Step {step} is impossible in every state that can be reached.")
        filtered[step], likelihood[step] = joint / total, np.log(total) + top
        expected = filtered[step] @ moves
    pairs = np.zeros((k, k))
    if t:
        smoothed[-1] = filtered[-1]
    for step in range(t - 2, -1, -1):
        ratio = np.divide(smoothed[step + 1], ahead[step + 1], out=np.zeros(k), where=ahead[step + 1] > 0)
        pair = filtered[step][:, None] * moves * ratio
        pairs += pair
        smoothed[step] = pair.sum(1)
    return Posteriors(filtered, smoothed, pairs, likelihood)


def viterbi(initial: Array, transition: Array, emission: Array) -> npt.NDArray[np.int64]:
    """(t,): the states of the path with the largest joint probability; the first of equals."""
    t, k = emission.shape
    path = np.zeros(t, dtype=np.int64)
    if not t:
        return path
    best, came = initial + emission[0], np.zeros((t, k), dtype=np.int64)
    for step in range(1, t):
        reached = best[:, None] + transition
        came[step] = reached.argmax(0)
        best = reached.max(0) + emission[step]
    path[-1] = best.argmax()
    for step in range(t - 1, 0, -1):
        path[step - 1] = came[step, path[step]]
    return path


def dwells(path: npt.NDArray[np.int64], states: int) -> list[npt.NDArray[np.int64]]:
    """Of every state the lengths of its visits in a path, in order; the last visit is cut off by the sequence's end."""
    if not len(path):
        return [np.zeros(0, dtype=np.int64)] * states
    begins = np.concatenate(([0], np.nonzero(np.diff(path))[0] + 1, [len(path)]))
    lengths, owners = np.diff(begins), path[begins[:-1]]
    return [lengths[owners == state] for state in range(states)]


def expected_dwell(transition: Array) -> Array:
    """(k,): 1 / (1 − A_kk), the mean of the geometric distribution that the model implies; ∞ for A_kk = 1."""
    away = 1 - np.exp(np.diagonal(transition))
    with np.errstate(divide="ignore"):
        found: Array = np.where(away > 0, 1 / away, np.inf)
    return found


def stationary(transition: Array) -> Array:
    """(k,): a distribution that A leaves as it is, the only one of a chain whose states all reach each other."""
    k = len(transition)
    moves = np.exp(transition)
    system = np.vstack((moves.T - np.eye(k), np.ones(k)))
    found: Array = np.linalg.lstsq(system, np.append(np.zeros(k), 1.0), rcond=None)[0]
    found = np.clip(found, 0, None)
    return found / float(found.sum())
