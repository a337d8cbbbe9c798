"""Scores of attention that grow over a training: on both sides of each border, with slopes from plain loops."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from inspector.analysis.slope import slope_of
from inspector.capture import Writer, open_capture
from inspector.diagnosis import Diagnosis, Settings, diagnose
from inspector.records import Channel, Finding, Labels, Page, RunStart, RunStop

Floats = npt.NDArray[np.float64]
N = 400
ENTROPY, LOGIT = "modules:attention/entropy", "modules:attention/largest_logit"
RISING = np.concatenate([np.linspace(2, 0.5, 100), np.linspace(0.5, 3, N - 100)])
FALLING = 0.1 + 2 * np.exp(-np.arange(N) / 80)
STAYING = np.full(N, 2.0) + 0.01 * np.random.default_rng(3).normal(size=N)
BETWEEN = np.where((np.arange(N) > 150) & (np.arange(N) < 250), 9.0, FALLING)
NOISE = np.random.default_rng(5).normal(size=N)
GROWS = 10 + 0.5 * np.arange(N) + NOISE
"""From 15 in the first block to 205 in the last."""
STAYS = 20 + NOISE
SHARP = 2 * np.exp(-np.arange(N) / 60)
EVEN = np.full(N, 1.9)


def judged(
    path: Path, scores: Floats, loss: Floats | None = STAYING, entropy: Floats | None = SHARP,
    limits: Mapping[str, float] | None = None, *, stop: bool = True,
) -> tuple[list[Finding], Diagnosis]:  # fmt: skip
    """What is found of a head with these scores (n,), beside one whose scores stay."""
    series = {"training:loss": loss, LOGIT: np.stack([scores, STAYS[: len(scores)]], 1)}
    if entropy is not None:
        series[ENTROPY] = np.stack([entropy[: len(scores)], EVEN[: len(scores)]], 1)
    with Writer(path, RunStart(run="r", title="t")) as writer:
        for name, values in series.items():
            if values is None:
                continue
            dims = ("iteration", "head")[: values.ndim]
            shape = (None,) * len(dims)
            title = "loss" if values.ndim == 1 else "heads"
            writer.write(Channel(name=name, kind="series", dims=dims, shape=shape, dtype="float64", title=title))
            writer.write(Page(name, 0, (0,) * values.ndim, values))
        writer.write(Labels("head", ("a head 0", "a head 1")))
        if stop:
            writer.write(RunStop("done"))
    with open_capture(path) as capture:
        found = diagnose(capture, capture.frames, Settings(limits=limits or {}))
    assert not found.broken, found.broken
    return [one for one in found.findings if one.id == "IN309"], found


@pytest.mark.parametrize(
    ("loss", "says"),
    [
        (RISING, "the loss rises from 0.5"),
        (STAYING, "the loss hardly falls ("),
        (BETWEEN, "the loss rises to 9 around iteration 170, above where it began (2.1)"),
    ],
    ids=["rises", "stays", "rises for a while"],
)
def test_scores_that_grow_while_the_loss_suffers_are_a_warning(tmp_path: Path, loss: Floats, says: str) -> None:
    (one,), _ = judged(tmp_path / "a.inspect", GROWS, loss)
    assert one.severity == "warning" and one.evidence == (LOGIT, ENTROPY, "training:loss")
    assert "grows in 1 of 2 heads: that of a head 0 from 14." in one.message and "to the end" in one.message
    assert "by 0.5 an iteration (0.5 to 0.5 with 95 %)" in one.message and says in one.message
    assert "its entropy went from 2 to " in one.message and "95 %" in one.sure and "offset" in one.unless


@pytest.mark.parametrize(
    ("loss", "entropy"),
    [
        (FALLING, SHARP),
        (np.minimum(BETWEEN, 2.9), SHARP),
        (STAYING, EVEN),
        (STAYING, None),
        (None, SHARP),
        (RISING, 1.1 + 0.5 * SHARP),
    ],
    ids=[
        "it learns",
        "it rose a little",
        "the softmax does not see it",
        "no entropy known",
        "no loss",
        "not sharp enough",
    ],
)
def test_scores_that_grow_and_harm_nothing_that_is_seen_are_information(
    tmp_path: Path, loss: Floats | None, entropy: Floats | None
) -> None:
    (one,), _ = judged(tmp_path / "a.inspect", GROWS, loss, entropy)
    assert one.severity == "info"


RISEN = np.concatenate([np.linspace(10, 300, 200), np.full(N - 200, 250.0)]) + NOISE


def test_scores_that_rose_and_stay_high_are_told_with_when(tmp_path: Path) -> None:
    (one,), _ = judged(tmp_path / "a.inspect", RISEN)
    assert "until iteration 190, and is 250.2 at the end" in one.message
    back = np.concatenate([RISEN[:200], np.full(N - 200, 60.0)])
    assert not judged(tmp_path / "b.inspect", back)[0]


@pytest.mark.parametrize(
    ("scores", "limits", "fires"),
    [
        (GROWS, {"score": 195.0}, True), (GROWS, {"score": 205.0}, False),
        (GROWS, {"times": 13.0}, True), (GROWS, {"times": 15.0}, False),
        (300 + 40 * np.abs(NOISE), {}, False),  # large, and does not grow
        (300 * np.abs(NOISE) + GROWS, {}, False),  # within the noise of the head
        (np.random.default_rng(1).permutation(GROWS), {}, False),  # no order
        (np.where(np.arange(N) < 20, 5.0, 500.0), {}, False),  # one step has no order that chance does not make
        (np.full(N, np.nan), {}, False), (np.full(N, np.inf), {}, False), (np.zeros(N), {}, False),
    ],
)  # fmt: skip
def test_both_sides_of_the_limits_and_what_is_no_growth(
    tmp_path: Path, scores: Floats, limits: Mapping[str, float], fires: bool
) -> None:
    found, every = judged(tmp_path / "a.inspect", scores, limits={f"logits-grow.{k}": v for k, v in limits.items()})
    assert bool(found) is fires and "logits-grow" in every.asked


def test_short_and_unfinished_trainings(tmp_path: Path) -> None:
    for count in (1, 59):
        found, every = judged(tmp_path / f"{count}.inspect", GROWS[:count], STAYING[:count])
        assert not found and any(one.startswith("logits-grow (") for one in every.short)
    assert judged(tmp_path / "u.inspect", GROWS, stop=False)[0]


def test_chance_grows_in_few_of_many_heads_without_order(tmp_path: Path) -> None:
    """Heads that wander: of 60 with scores near 150 the rule names none, since none is four times what it was."""
    walk = 150 + np.cumsum(np.random.default_rng(7).normal(size=(N, 60)), axis=0)
    assert not any(judged(tmp_path / f"{n}.inspect", walk[:, n])[0] for n in range(0, 60, 12))


def test_a_slope_is_the_median_of_all_pairs_and_its_interval_covers() -> None:
    rng = np.random.default_rng(2)
    x, y = np.sort(rng.normal(size=20)), rng.normal(size=20)
    pairs = sorted((y[b] - y[a]) / (x[b] - x[a]) for a in range(20) for b in range(a + 1, 20))
    found = slope_of(x, y)
    assert found.middle == pytest.approx((pairs[94] + pairs[95]) / 2)
    theirs = stats.theilslopes(y, x, 0.95)
    assert found.middle == pytest.approx(theirs.slope)
    places = [min(range(190), key=lambda n: abs(pairs[n] - one)) for one in (found.low, found.high)]
    scipys = [min(range(190), key=lambda n: abs(pairs[n] - one)) for one in (theirs.low_slope, theirs.high_slope)]
    assert all(abs(a - b) <= 1 for a, b in zip(places, scipys, strict=True))  # they round to the nearest pair
    inside = 0
    for _ in range(400):
        noise = slope_of(np.arange(20.0), 0.3 * np.arange(20) + rng.standard_t(2, size=20))
        inside += noise.low <= 0.3 <= noise.high
    assert 370 <= inside <= 398  # 95 %, also with heavy tails


def test_a_slope_of_what_has_none() -> None:
    for y in ([1.0, 2.0], [1.0, np.nan, 2.0], [1.0, np.inf, 2.0]):
        assert np.isnan(slope_of(np.arange(float(len(y))), np.array(y)).middle)
    flat = slope_of(np.arange(5.0), np.ones(5))
    assert (flat.middle, flat.low, flat.high) == (0, 0, 0)
