"""Heads whose attention collapses over a training: on both sides of each border, and on what is missing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from inspector.capture import Writer, open_capture
from inspector.diagnosis import Diagnosis, Settings, diagnose
from inspector.records import Channel, Labels, Page, RunStart, RunStop

Floats = npt.NDArray[np.float64]
N = 400
ENTROPY, LOGIT = "modules:attention/entropy", "modules:attention/largest_logit"
RISING = np.concatenate([np.linspace(2, 0.5, 100), np.linspace(0.5, 3, N - 100)])
FALLING = 0.1 + 2 * np.exp(-np.arange(N) / 80)
STAYING = np.full(N, 2.0) + 0.01 * np.random.default_rng(3).normal(size=N)
SHARP = 2 * np.exp(-np.arange(N) / 40)
"""From 2 nat to next to nothing; below a half from iteration 28 on."""
EVEN = np.full(N, 1.9) + 0.05 * np.random.default_rng(4).normal(size=N)


def judged(path: Path, loss: Floats, heads: Floats, settings: Settings | None = None, stop: bool = True) -> Diagnosis:
    """What the rules find in a training with this loss (n,) and these heads (n, a)."""
    series: Mapping[str, Floats] = {"training:loss": loss, ENTROPY: heads, LOGIT: 10 / np.maximum(heads, 0.1)}
    with Writer(path, RunStart(run="r", title="t")) as writer:
        for name, values in series.items():
            dims = ("iteration", "head")[: values.ndim]
            title = "loss" if values.ndim == 1 else "heads"
            writer.write(
                Channel(name=name, kind="series", dims=dims, shape=(None,) * len(dims), dtype="float64", title=title)
            )
            writer.write(Page(name, 0, (0,) * values.ndim, values))
        writer.write(Labels("head", ("a head 0", "a head 1")))
        if stop:
            writer.write(RunStop("done"))
    with open_capture(path) as capture:
        found = diagnose(capture, capture.frames, settings)
    assert not found.broken, found.broken
    return found


def pair(first: Floats, second: Floats = EVEN) -> Floats:
    return np.stack([first, second], 1)


@pytest.mark.parametrize("loss", [RISING, STAYING], ids=["rises", "stays"])
def test_a_head_that_collapses_while_the_loss_suffers_is_told(tmp_path: Path, loss: Floats) -> None:
    (one,) = [f for f in judged(tmp_path / "a.inspect", loss, pair(SHARP)).findings if f.id == "IN307"]
    assert one.severity == "warning" and one.evidence == (ENTROPY, LOGIT, "training:loss")
    assert one.message.startswith("attention collapsed in 1 of 2 heads, and the loss ")
    # highest: the first; half of that first at 40 ln 2 = 27.7
    assert "the entropy of a head 0 fell from 2 to" in one.message and one.iterations == (28,)
    assert "its largest score went from" in one.message and "also" not in one.message


@pytest.mark.parametrize(
    ("loss", "head"),
    [(FALLING, SHARP), (STAYING, EVEN), (RISING, 1.9 - 0.004 * np.arange(N)), (RISING, np.zeros(N)),
     (RISING, np.full(N, np.nan))],
    ids=["it has learned", "no head falls", "a slow fall to a sixth", "always one key", "NaN"],
)  # fmt: skip
def test_what_is_no_collapse_is_left_alone(tmp_path: Path, loss: Floats, head: Floats) -> None:
    found = judged(tmp_path / "a.inspect", loss, pair(head))
    assert "IN307" not in {one.id for one in found.findings} and "entropy-falls" in found.asked


def test_both_sides_of_what_is_left_and_of_what_the_loss_keeps(tmp_path: Path) -> None:
    left = np.where(np.arange(N) < 200, 2.0, 0.11)
    step = np.where(np.arange(N) < 200, 2.0, 1.58)
    for n, (loss, head, limits, fires) in enumerate([
        (STAYING, left, {}, False), (STAYING, left - 0.02 * (left < 1), {}, True),
        (STAYING, left, {"entropy-falls.left": 0.06}, True),
        (step, SHARP, {}, False), (step + 0.04 * (step < 2), SHARP, {}, True),
        (step, SHARP, {"entropy-falls.kept": 0.7}, True),
    ]):  # fmt: skip
        found = judged(tmp_path / f"{n}.inspect", loss, pair(head), Settings(limits=limits))
        assert ("IN307" in {one.id for one in found.findings}) is fires, n


def test_a_head_that_collapses_within_the_first_block_is_told(tmp_path: Path) -> None:
    """By its first step too, after which the loss rose and came back to a little below where it began."""
    loss = STAYING.copy()
    loss[1:20] += 3.0
    at_once = np.concatenate([[2.0], np.zeros(N - 1)])
    (one,) = [f for f in judged(tmp_path / "a.inspect", loss, pair(at_once)).findings if f.id == "IN307"]
    assert "fell from 2 to 0 nat" in one.message and f"hardly falls ({loss[0]:.4g} at the beginning" in one.message


def test_short_and_unfinished_trainings(tmp_path: Path) -> None:
    for count in (1, 59):
        found = judged(tmp_path / f"{count}.inspect", STAYING[:count], pair(SHARP)[:count])
        assert any(one.startswith("entropy-falls (") for one in found.short)
    unfinished = judged(tmp_path / "u.inspect", RISING, pair(SHARP), stop=False)
    assert "IN307" in {one.id for one in unfinished.findings}
