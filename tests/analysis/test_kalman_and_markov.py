"""Filters, smoothers, tests of innovations and hidden Markov posteriors against sums over everything, and textbooks."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from inspector.analysis.latent import consistency, hidden_markov, kalman
from inspector.analysis.latent.kalman import LinearGaussian, NotAModel

STEPS = 6


def model(seed: int = 0, noise: float = 1.0) -> LinearGaussian:
    random = np.random.default_rng(seed)
    b, d = random.normal(size=(2, 1)), random.normal(size=(2, 2))
    return kalman.linear_gaussian({
        "A": np.array([[0.9, 0.3], [-0.2, 0.8]]), "Q": noise * b @ b.T, "C": random.normal(size=(2, 2)), "d": random.normal(size=2),
        "R": d @ d.T, "initial_mean": random.normal(size=2), "initial_covariance": 2 * np.eye(2),
    })  # fmt: skip


def drawn(of: LinearGaussian, steps: int, seed: int = 1) -> np.ndarray:
    random = np.random.default_rng(seed)
    z = random.multivariate_normal(of.initial_mean, of.initial_covariance)
    rows = []
    for _ in range(steps):
        rows.append(of.C @ z + of.d + random.multivariate_normal(np.zeros(len(of.C)), of.R))
        z = of.A @ z + random.multivariate_normal(np.zeros(len(of.A)), of.Q)
    return np.array(rows)


def joint(of: LinearGaussian) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Mean of all states (t, n) and measurements (t, o), and covariances: of states, of both, of measurements."""
    n, o = len(of.A), len(of.C)
    means, own = [of.initial_mean], [of.initial_covariance]
    for _ in range(STEPS - 1):
        means.append(of.A @ means[-1])
        own.append(of.A @ own[-1] @ of.A.T + of.Q)
    states = np.zeros((STEPS * n, STEPS * n))
    for t, s in itertools.product(range(STEPS), repeat=2):
        block = (
            np.linalg.matrix_power(of.A, max(t - s, 0)) @ own[min(t, s)] @ np.linalg.matrix_power(of.A, max(s - t, 0)).T
        )
        states[t * n : (t + 1) * n, s * n : (s + 1) * n] = block
    read = np.kron(np.eye(STEPS), of.C)
    both, seen = states @ read.T, read @ states @ read.T + np.kron(np.eye(STEPS), of.R)
    assert o == 2
    return np.array(means), np.array([of.C @ m + of.d for m in means]), states, both, seen


def conditioned(of: LinearGaussian, x: np.ndarray, t: int, known: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of z_t given the first `known` measurements, by conditioning the joint normal."""
    means, expected, states, both, seen = joint(of)
    rows, cut = slice(2 * t, 2 * t + 2), slice(0, 2 * known)
    weights = both[rows, cut] @ np.linalg.inv(seen[cut, cut])
    away = (x - expected)[:known].reshape(-1)
    return means[t] + weights @ away, states[rows, rows] - weights @ both[rows, cut].T


@pytest.mark.parametrize("noise", [1.0, 0.0])
def test_filter_and_smoother_condition_the_joint_normal(noise: float) -> None:
    of = model(noise=noise)
    x = drawn(of, STEPS)
    found = kalman.filtered(of, x)
    smooth, spread = kalman.smoothed(of, found)
    for t in range(STEPS):
        for known, mean, covariance in (
            (t, found.predicted, found.predicted_covariance), (t + 1, found.mean, found.covariance), (STEPS, smooth, spread),
        ):  # fmt: skip
            wanted = conditioned(of, x, t, known)
            np.testing.assert_allclose(mean[t], wanted[0], atol=1e-9)
            np.testing.assert_allclose(covariance[t], wanted[1], atol=1e-9)
    _, expected, _, _, seen = joint(of)
    away = (x - expected).reshape(-1)
    whole = -(away @ np.linalg.solve(seen, away) + np.linalg.slogdet(2 * np.pi * seen)[1]) / 2
    assert found.log_likelihood.sum() == pytest.approx(whole, rel=1e-12)
    np.testing.assert_allclose(
        found.mean, found.predicted + np.einsum("tno,to->tn", found.gain, found.innovation), atol=1e-12
    )


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"R": None}, r"A linear Gaussian model has A, Q, .*; R is not given\."),
        ({"Q": np.eye(3)}, r"Q has shape \(3, 3\); with A and C as given it has \(2, 2\)\."),
        ({"Q": np.array([[1.0, 0.5], [0.0, 1.0]])}, r"Q is not symmetric, so it is no covariance\."),
        ({"R": -np.eye(2)}, r"R has a negative eigenvalue, so it is no covariance\."),
        ({"A": np.full((2, 2), np.nan)}, r"A holds a NaN or infinity\."),
    ],
)
def test_what_is_no_model_is_rejected_in_a_sentence(change: dict[str, Any], told: str) -> None:
    of = model()
    parts = {name: getattr(of, name) for name in kalman.PARTS} | change
    with pytest.raises(NotAModel, match=rf"^{told}$"):
        kalman.linear_gaussian({name: value for name, value in parts.items() if value is not None})


def test_what_cannot_be_filtered_is_rejected_in_a_sentence() -> None:
    of = model()
    for x, told in (
        (np.zeros((0, 2)), "no steps"), (np.zeros((3, 1)), r"\(steps, 2\)"), (np.array([[0.0, 1.0], [np.nan, 0.0]]), "step 1"),
    ):  # fmt: skip
        with pytest.raises(NotAModel, match=told):
            kalman.filtered(of, x)
    still = {name: getattr(of, name) * (name not in ("R", "initial_covariance")) for name in kalman.PARTS}
    with pytest.raises(NotAModel, match="singular"):
        kalman.filtered(kalman.linear_gaussian(still), np.zeros((3, 2)))


def survival(x: float, degrees: int) -> float:
    """P(χ² > x) of an even number of degrees, a finite sum."""
    return math.exp(-x / 2) * sum((x / 2) ** k / math.factorial(k) for k in range(degrees // 2))


def test_band_and_ljung_box_are_those_of_chi_square() -> None:
    low, high = consistency.band(2)
    assert (1 - survival(low, 2), survival(high, 2)) == pytest.approx((0.025, 0.025))
    low, high = consistency.band(2, 5)
    assert (1 - survival(5 * low, 10), survival(5 * high, 10)) == pytest.approx((0.025, 0.025))
    series = np.random.default_rng(3).normal(size=40)
    away, statistic = series - series.mean(), 0.0
    for k in range(1, 7):
        r = sum(away[t] * away[t - k] for t in range(k, 40)) / sum(value**2 for value in away)
        statistic += 40 * 42 * r**2 / (40 - k)
        assert consistency.autocorrelation(series, 6)[k - 1] == pytest.approx(r)
    found = consistency.ljung_box(series, 6)
    assert (found.statistic, found.p) == pytest.approx((statistic, survival(statistic, 6)))
    assert np.isnan(consistency.autocorrelation(np.ones(9), 2)).all()


def judged(of: LinearGaussian, x: np.ndarray) -> Any:
    found = kalman.filtered(of, x)
    standard = consistency.standardised(found.innovation, found.innovation_covariance)
    np.testing.assert_allclose(
        consistency.squared(standard),
        [v @ np.linalg.inv(s) @ v for v, s in zip(found.innovation, found.innovation_covariance, strict=True)],
    )
    return consistency.innovation_verdict(consistency.squared(standard), standard)


def test_a_filter_that_is_mistuned_is_told_from_one_that_fits() -> None:
    of = model(5)
    x = drawn(of, 400, 6)
    parts = {name: getattr(of, name) for name in (*kalman.PARTS, "d")}
    assert judged(of, x).word == "consistent"
    small = judged(kalman.linear_gaussian({**parts, "Q": of.Q / 9, "R": of.R / 9}), x)
    large = judged(kalman.linear_gaussian({**parts, "Q": 9 * of.Q, "R": 9 * of.R}), x)
    assert small.word == large.word == "misfit"
    assert "Q or R is too small: errors are larger" in small.sentence and "Q or R is too large" in large.sentence
    stiff = judged(kalman.linear_gaussian({**parts, "A": 0 * of.A, "Q": of.Q + 3 * np.eye(2)}), x)
    assert "remember earlier ones" in stiff.sentence
    assert judged(of, x[:10]).word == "too few"


def chain(seed: int = 0, k: int = 3) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    return (
        np.log(random.dirichlet(np.ones(k))),
        np.log(random.dirichlet(np.ones(k), k)),
        random.normal(size=(STEPS, k)) * 2,
    )


def test_posteriors_and_viterbi_sum_over_every_path() -> None:
    parts = chain()
    initial, transition, emission = parts
    paths = list(itertools.product(range(3), repeat=STEPS))

    def weight(path: tuple[int, ...], known: int = STEPS) -> float:
        moves = sum(transition[a, b] for a, b in itertools.pairwise(path))
        return math.exp(initial[path[0]] + moves + sum(emission[t, path[t]] for t in range(known)))

    found = hidden_markov.posteriors(*parts)
    totals = [sum(weight(path, known) for path in paths) for known in range(STEPS + 1)]
    np.testing.assert_allclose(np.exp(found.log_likelihood), np.array(totals[1:]) / totals[:-1])
    for t, k in itertools.product(range(STEPS), range(3)):
        through = [path for path in paths if path[t] == k]
        assert found.smoothed[t, k] == pytest.approx(sum(map(weight, through)) / totals[-1])
        assert found.filtered[t, k] == pytest.approx(sum(weight(path, t + 1) for path in through) / totals[t + 1])
    for a, b in itertools.product(range(3), repeat=2):
        counts = [sum(pair == (a, b) for pair in itertools.pairwise(path)) * weight(path) for path in paths]
        assert found.pairs[a, b] == pytest.approx(sum(counts) / totals[-1])
    assert tuple(hidden_markov.viterbi(*parts)) == max(paths, key=weight)


def test_impossible_steps_and_improper_rows_are_rejected() -> None:
    initial, transition, emission = chain()
    emission[2] = -np.inf
    with pytest.raises(NotAModel, match="Step 2 is impossible"):
        hidden_markov.posteriors(initial, transition, emission)
    with pytest.raises(NotAModel, match=r"The rows of A do not add up to 1"):
        hidden_markov.checked(initial, transition + 1, emission)
    with pytest.raises(NotAModel, match=r"expected \(k,\), \(k, k\) and \(steps, k\)"):
        hidden_markov.checked(initial, transition[:2], emission)


def test_a_left_to_right_chain_has_states_that_are_never_left() -> None:
    """Zeros among the probabilities: log 0 is −∞ and nothing becomes NaN."""
    with np.errstate(divide="ignore"):
        initial, transition = np.log([1.0, 0.0]), np.log([[0.5, 0.5], [0.0, 1.0]])
    emission = np.log([[0.9, 0.1], [0.5, 0.5], [0.1, 0.9]])
    found = hidden_markov.posteriors(*hidden_markov.checked(initial, transition, emission))
    weights = {(0, 0, 0): 0.25 * 0.9 * 0.5 * 0.1, (0, 0, 1): 0.25 * 0.9 * 0.5 * 0.9, (0, 1, 1): 0.5 * 0.9 * 0.5 * 0.9}
    assert found.smoothed[1, 0] == pytest.approx((weights[0, 0, 0] + weights[0, 0, 1]) / sum(weights.values()))
    assert hidden_markov.viterbi(initial, transition, emission).tolist() == [0, 1, 1]
    np.testing.assert_allclose(hidden_markov.expected_dwell(transition), [2, np.inf])
    np.testing.assert_allclose(hidden_markov.stationary(transition), [0, 1], atol=1e-12)


def test_dwells_are_runs_and_the_stationary_distribution_is_left_alone() -> None:
    path = np.array([2, 2, 0, 1, 1, 1, 0, 0, 2])
    runs = [(key, len(list(group))) for key, group in itertools.groupby(path.tolist())]
    assert [own.tolist() for own in hidden_markov.dwells(path, 4)] == [
        [length for key, length in runs if key == state] for state in range(4)
    ]
    transition = chain(4)[1]
    np.testing.assert_allclose(hidden_markov.stationary(transition), np.linalg.matrix_power(np.exp(transition), 400)[0])
    stay = np.exp(np.diagonal(transition))
    series = sum(n * stay ** (n - 1) * (1 - stay) for n in range(1, 2000))
    np.testing.assert_allclose(hidden_markov.expected_dwell(transition), series)
