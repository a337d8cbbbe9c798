"""Kalman filters and hidden Markov models against statsmodels, pykalman and hmmlearn, on the series of the samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from inspector.analysis.latent import consistency, hidden_markov, kalman
from sample_models.base import FOLDER

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
NILE = np.loadtxt(FOLDER / "data" / "nile.csv", delimiter=",", skiprows=1)[:, 1:]
LEVEL, NOISE = 1469.1, 15099.0
"""Variances of Durbin & Koopman 2012, section 2.2.2, in (10⁸ m³)²."""


def local_level() -> kalman.LinearGaussian:
    one = np.ones((1, 1))
    return kalman.linear_gaussian({
        "A": one, "Q": LEVEL * one, "C": one, "R": NOISE * one, "initial_mean": np.zeros(1), "initial_covariance": 1e7 * one,
    })  # fmt: skip


def turning() -> dict[str, np.ndarray]:
    """Two states that are measured twice, with an offset."""
    random = np.random.default_rng(0)
    q, r = random.normal(size=(2, 2, 2))
    return {
        "A": np.array([[0.9, 0.4], [-0.5, 0.7]]), "Q": q @ q.T, "C": random.normal(size=(2, 2)), "d": random.normal(size=2),
        "R": r @ r.T, "initial_mean": random.normal(size=2), "initial_covariance": np.eye(2),
    }  # fmt: skip


@pytest.mark.parametrize("library", ["statsmodels.api"], indirect=True)
def test_the_nile_as_in_statsmodels(library: Any) -> None:
    theirs = library.tsa.UnobservedComponents(NILE[:, 0], "llevel")
    theirs.ssm.initialize_known(np.zeros(1), 1e7 * np.eye(1))
    theirs = theirs.smooth([NOISE, LEVEL])
    of = local_level()
    ours = kalman.filtered(of, NILE)
    smooth, spread = kalman.smoothed(of, ours)
    np.testing.assert_allclose(ours.mean.T, theirs.filtered_state, rtol=1e-8)
    np.testing.assert_allclose(ours.predicted_covariance[:, 0, 0], theirs.predicted_state_cov[0, 0, :-1], rtol=1e-8)
    np.testing.assert_allclose(smooth.T, theirs.smoothed_state, rtol=1e-8)
    np.testing.assert_allclose(spread[:, 0, 0], theirs.smoothed_state_cov[0, 0], rtol=1e-7)
    np.testing.assert_allclose(ours.innovation.T, theirs.forecasts_error, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(ours.log_likelihood, theirs.llf_obs, rtol=1e-8)
    standard = consistency.standardised(ours.innovation, ours.innovation_covariance)[:, 0]
    table = library.stats.acorr_ljungbox(standard, lags=[5, 12])
    for lags in (5, 12):
        found = consistency.ljung_box(standard, lags)
        assert (found.statistic, found.p) == pytest.approx((table.lb_stat[lags], table.lb_pvalue[lags]))


@pytest.mark.parametrize("library", ["pykalman"], indirect=True)
def test_two_states_as_in_pykalman(library: Any) -> None:
    parts = turning()
    theirs = library.KalmanFilter(
        parts["A"],
        parts["C"],
        parts["Q"],
        parts["R"],
        None,
        parts["d"],
        parts["initial_mean"],
        parts["initial_covariance"],
    )
    x = np.random.default_rng(1).normal(size=(40, 2)) * 2
    of = kalman.linear_gaussian(parts)
    ours = kalman.filtered(of, x)
    for (mean, covariance), (wanted, spread) in (
        ((ours.mean, ours.covariance), theirs.filter(x)), (kalman.smoothed(of, ours), theirs.smooth(x)),
    ):  # fmt: skip
        np.testing.assert_allclose(mean, wanted, atol=1e-9)
        np.testing.assert_allclose(covariance, spread, atol=1e-9)
    assert ours.log_likelihood.sum() == pytest.approx(theirs.loglikelihood(x))


@pytest.mark.parametrize("library", ["hmmlearn.hmm"], indirect=True)
def test_states_as_in_hmmlearn(library: Any) -> None:
    random = np.random.default_rng(2)
    initial, transition, emission = (
        random.dirichlet(np.ones(3)),
        random.dirichlet(np.ones(3), 3),
        random.dirichlet(np.ones(5), 3),
    )
    theirs = library.CategoricalHMM(n_components=3)
    theirs.startprob_, theirs.transmat_, theirs.emissionprob_, theirs.n_features = initial, transition, emission, 5
    x = random.integers(0, 5, 60)
    ours = hidden_markov.checked(np.log(initial), np.log(transition), np.log(emission).T[x])
    found = hidden_markov.posteriors(*ours)
    np.testing.assert_allclose(found.smoothed, theirs.predict_proba(x[:, None]), atol=1e-10)
    assert found.log_likelihood.sum() == pytest.approx(theirs.score(x[:, None]))
    assert hidden_markov.viterbi(*ours).tolist() == theirs.decode(x[:, None])[1].tolist()
    np.testing.assert_allclose(hidden_markov.stationary(ours[1]), theirs.get_stationary_distribution(), atol=1e-10)
