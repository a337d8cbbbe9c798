"""Norms of layers that drift: on both sides of each border, and on what is missing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from inspector.capture import Writer, open_capture
from inspector.diagnosis import Diagnosis, Settings, diagnose
from inspector.records import Channel, Finding, Labels, Page, RunStart, RunStop

Floats = npt.NDArray[np.float64]
N = 400
WEIGHTS = "parameters:weight/norm"
NOISE = np.random.default_rng(5).normal(size=(N, 8)) * 0.003
RISING = np.concatenate([np.linspace(2, 0.5, 100), np.linspace(0.5, 1.8, N - 100)]) + NOISE[:, 0]
FALLING = 0.1 + 2 * np.exp(-np.arange(N) / 120)
STAYING = 1.0 + NOISE[:, 1]
NAMES = ("norm.weight", "head.bias", "rnn.weight_hh")
STILL = 2 * np.exp(NOISE[:, 2])


def to(factor: float) -> Floats:
    """A norm that goes to so many times its size from the median of the 11th block of twenty (iteration 209.5) to that of
    the last (389.5)."""
    return np.exp(np.log(factor) * np.arange(N) / 180 + NOISE[:, 3])


def judged(path: Path, loss: Floats, norms: Floats, limits: Mapping[str, float] | None = None) -> Diagnosis:
    """What the rules find in a training with this loss (n,) and these norms (n, 3)."""
    with Writer(path, RunStart(run="r", title="t")) as writer:
        for name, values in {"training:loss": loss, WEIGHTS: norms}.items():
            dims = ("iteration", "parameter")[: values.ndim]
            title = "loss" if values.ndim == 1 else "norms"
            form = (None,) * values.ndim
            writer.write(Channel(name=name, kind="series", dims=dims, shape=form, dtype="float64", title=title))
            writer.write(Page(name, 0, (0,) * values.ndim, values))
        writer.write(Labels("parameter", NAMES))
        writer.write(RunStop("done"))
    with open_capture(path) as capture:
        found = diagnose(capture, capture.frames, Settings(limits=limits or {}))
    assert not found.broken, found.broken
    return found


def told(path: Path, loss: Floats, *norms: Floats, limits: Mapping[str, float] | None = None) -> list[Finding]:
    return [one for one in judged(path, loss, np.stack(norms, 1), limits).findings if one.id == "IN308"]


@pytest.mark.parametrize(("factor", "word"), [(3.0, "grows"), (0.2, "shrinks")])
def test_a_scale_that_drifts_while_the_loss_rises_is_a_warning(tmp_path: Path, factor: float, word: str) -> None:
    (one,) = told(tmp_path / "a.inspect", RISING, to(factor), STILL, STILL)
    assert one.severity == "warning" and one.evidence == (WEIGHTS, "training:loss") and one.iterations == (209,)
    assert f"the norm of norm.weight {word} on" in one.message and "the loss rises from 0.5" in one.message
    said = float(one.message.partition(" to ")[2].split()[0])
    assert said == pytest.approx(factor, rel=0.01) and "(median of 2 layers: " in one.message


def test_where_the_loss_stands_still_it_is_information_and_where_it_falls_nothing(tmp_path: Path) -> None:
    (one,) = told(tmp_path / "a.inspect", STAYING, to(3), STILL, STILL)
    assert one.severity == "info" and "no longer falls" in one.message
    assert not told(tmp_path / "b.inspect", FALLING, to(3), STILL, STILL)
    beyond = np.concatenate([RISING[:100], np.linspace(0.5, 4, N - 100)])
    (one,) = told(tmp_path / "c.inspect", beyond, to(3), STILL, STILL)
    assert one.severity == "info"  # it diverges: norms may only follow


def test_both_sides_of_each_border(tmp_path: Path) -> None:
    noisy = np.exp(np.log(3.0) * np.arange(N) / 180 + 200 * NOISE[:, 4])
    falls_back = np.where(np.arange(N) < 300, to(3), to(3)[300] * to(1 / 3) / to(1 / 3)[300])
    for n, (norm, limits, fires) in enumerate([
        (to(1.45), {}, False), (to(1.55), {}, True), (to(1.45), {"norms-drift.factor": 1.4}, True),
        (noisy, {}, False), (noisy, {"norms-drift.distance": 0.1}, True), (falls_back, {}, False),
        (to(3), {"norms-drift.p": 1e-8}, False),
        (np.full(N, np.nan), {}, False), (np.zeros(N), {}, False), (np.full(N, 2.0), {}, False),
    ]):  # fmt: skip
        assert bool(told(tmp_path / f"{n}.inspect", RISING, STILL, STILL, norm, limits=limits)) is fires, n
    assert not told(tmp_path / "bias.inspect", RISING, STILL, to(3), STILL)


def test_short_trainings_say_so(tmp_path: Path) -> None:
    for count in (1, 59):
        found = judged(tmp_path / f"{count}.inspect", RISING[:count], np.stack([to(3)] * 3, 1)[:count])
        assert any(one.startswith("norms-drift (") for one in found.short) and "IN308" not in {
            one.id for one in found.findings
        }
