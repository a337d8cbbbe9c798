"""The loss of plasticity: all that has to agree, one thing after the other taken away."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from inspector.capture import Writer, open_capture
from inspector.diagnosis import Diagnosis, Settings, diagnose
from inspector.records import Channel, Labels, Page, RunStart, RunStop

Floats = npt.NDArray[np.float64]
N = 400
NOISE = np.random.default_rng(5).normal(size=N)
WORSE = np.concatenate([[2.0], np.full(99, 0.3), np.linspace(0.3, 1.9, N - 100)]) + 0.005 * NOISE
SILENT = np.linspace(0.5, 0.9, N)
EVEN = 0.5 + 0.01 * NOISE
SHRINKS = np.geomspace(1.0, 0.1, N)


def judged(
    path: Path, loss: Floats = WORSE, zeros: Floats = SILENT, gradient: Floats | None = SHRINKS,
    settings: Settings | None = None, stop: bool = True, ranks: dict[str, Floats] | None = None,
) -> Diagnosis:  # fmt: skip
    """What the rules find in a training with this loss, share of zeros of one of two modules, and gradient norm."""
    series: dict[str, tuple[Floats, tuple[str, ...]]] = {
        "training:loss": (loss, ("iteration",)),
        "modules:activation/zero": (np.stack([zeros, EVEN[: len(zeros)]], 1), ("iteration", "module")),
    }
    for name, values in (ranks or {}).items():
        series[f"modules:activation/{name}"] = values[:, None], ("iteration", "module")
    if gradient is not None:
        series["training:gradient_norm"] = np.stack([gradient, gradient], 1), ("iteration", "statistic")
    with Writer(path, RunStart(run="r", title="t")) as writer:
        for name, (values, dims) in series.items():
            more: dict[str, Any] = {"labels": {"statistic": ("before", "after")}} if "statistic" in dims else {}
            title = "loss" if values.ndim == 1 else name
            shape = tuple(None if dim != "statistic" else 2 for dim in dims)
            writer.write(
                Channel(name=name, kind="series", dims=dims, shape=shape, dtype="float64", title=title, **more)
            )
            writer.write(Page(name, 0, (0,) * values.ndim, values))
        writer.write(Labels("module", ("head.1", "head.3")))
        if stop:
            writer.write(RunStop("done"))
    with open_capture(path) as capture:
        found = diagnose(capture, capture.frames, settings)
    assert not found.broken, found.broken
    return found


def fires(found: Diagnosis) -> bool:
    return "IN306" in {one.id for one in found.findings}


@pytest.mark.parametrize("stop", [True, False])
def test_a_net_that_learns_worse_while_its_units_fall_silent(tmp_path: Path, stop: bool) -> None:
    (one,) = [one for one in judged(tmp_path / "a.inspect", stop=stop).findings if one.id == "IN306"]
    assert one.severity == "warning" and one.place == "head.1" and one.evidence[0] == "training:loss"
    assert one.message.startswith("the loss rises from 0.298 around iteration 90 to 1.74, ")
    # medians of the first block and of the last two, of a line from 50 % to 90 %
    assert "outputs of head.1 fall silent: 51 % of them are 0 at the beginning, 89 % at the end" in one.message


@pytest.mark.parametrize(
    "given",
    [{"loss": WORSE[::-1].copy()}, {"loss": 4 * WORSE - 3 * np.eye(1, N)[0] * 2.0}, {"zeros": EVEN}, {"zeros": SILENT[::-1].copy()},
     {"zeros": np.full(N, np.nan)}, {"gradient": SHRINKS[::-1].copy()}, {"gradient": None}, {"gradient": np.full(N, np.nan)},
     {"loss": np.full(N, np.nan)}],
    ids=["the loss falls", "it rises far beyond where it began", "as many zeros", "fewer zeros", "NaN zeros",
         "the gradient grows", "no gradient", "NaN gradients", "NaN loss"],
)  # fmt: skip
def test_without_any_one_of_these_nothing_is_said(tmp_path: Path, given: dict[str, Any]) -> None:
    assert not fires(judged(tmp_path / "a.inspect", **given))


def test_both_sides_of_the_limits(tmp_path: Path) -> None:
    for n, (zeros, settings, expected) in enumerate([
        (np.linspace(0.5, 0.6, N), {}, False), (np.linspace(0.5, 0.62, N), {}, True),
        (np.linspace(0.5, 0.6, N), {"plasticity.zeros": 0.05}, True), (SILENT, {"plasticity.began": 0.8}, False),
    ]):  # fmt: skip
        found = judged(tmp_path / f"{n}.inspect", zeros=zeros, settings=Settings(limits=settings))
        assert fires(found) is expected, n


@pytest.mark.parametrize("count", [1, 59])
def test_too_few_points_are_said_to_be(tmp_path: Path, count: int) -> None:
    found = judged(tmp_path / "a.inspect", WORSE[:count], SILENT[:count], SHRINKS[:count])
    assert any(one.startswith("plasticity (") for one in found.short) and not fires(found)


RANK = np.linspace(24.0, 6.0, N) + 0.2 * NOISE


@pytest.mark.parametrize(
    ("rank", "spread", "limits", "fires"),
    [(RANK, 0.5, {}, True), (RANK, 9.0, {}, False), (RANK, np.nan, {}, False), (RANK + 18, 0.5, {}, False),
     (RANK + 18, 0.5, {"plasticity.rank": 0.7}, True), (RANK[::-1].copy(), 0.5, {}, False), (RANK * np.nan, 0.5, {}, False)],
    ids=["falls to a quarter", "within its spread", "no spread", "to less than a half", "another limit", "rises", "NaN"],
)  # fmt: skip
def test_outputs_that_take_fewer_directions_without_zeros(
    rank: Floats, spread: float, limits: dict[str, float], fires: bool, tmp_path: Path
) -> None:
    also = {"effective_rank": rank, "effective_rank_spread": np.full(N, spread)}
    found = judged(tmp_path / "a.inspect", zeros=EVEN, settings=Settings(limits=limits), ranks=also)
    told = [one for one in found.findings if one.id == "IN306"]
    assert bool(told) is fires
    if fires and not limits:
        # medians of the first block and of the last one, of a line from 24 to 6
        words = told[0].message.partition("outputs of head.1 take fewer directions: their effective rank falls from ")[
            2
        ]
        assert [float(words.split()[n]) for n in (0, 2)] == pytest.approx([23.6, 6.4], abs=0.2)
        assert "(± 0.5)" in told[0].message and "fall silent" not in told[0].message
        assert told[0].place == "head.1" and "modules:activation/effective_rank" in told[0].evidence
