"""Rules over long trainings: the same jumps as one by one, and no copies of large tables."""

from __future__ import annotations

import math
import statistics
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from inspector.analysis import loss_trend
from inspector.analysis.loss_trend import WINDOW, jumps_of
from inspector.capture import Writer, open_capture
from inspector.diagnosis import diagnose
from inspector.diagnosis.series import BLOCK, norms_beside_clipping
from inspector.records import Axis, Channel, Labels, Page, RunStart, RunStop

ITERATIONS, COLUMNS = 20_000, 40


def one_by_one(y: list[float], factor: float) -> list[tuple[int, float, int]]:
    """(index, distance, points until it was back) of each jump, by the definition: the 50 points before every point."""
    found, ends = [], -1
    for n in range(50, len(y)):
        before = y[n - 50 : n]
        if n <= ends or not all(math.isfinite(v) for v in [*before, y[n]]):
            continue
        middle = statistics.median(before)
        spread = max(statistics.median(abs(v - middle) for v in before), 0.01 * abs(middle), 1e-12)
        if (y[n] - middle) / spread > factor:
            back = next((at for at in range(n, len(y)) if y[at] <= middle + spread), None)
            found.append((n, (y[n] - middle) / spread, -1 if back is None else back - n))
            ends = len(y) if back is None else back
    return found


def restless(points: int, seed: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    y = 2 + np.cumsum(random.normal(scale=0.01, size=points)) + random.normal(scale=0.05, size=points)
    for at in random.integers(0, points, points // 40):
        y[at : at + random.integers(1, 130)] += random.uniform(0.2, 8)
    return y


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("points", [0, 50, 51, 400])
def test_jumps_are_those_of_the_definition(points: int, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loss_trend, "POINTS", 64)
    y = restless(points, seed)
    found = jumps_of(np.arange(points, dtype=float), y, 6.0)
    wanted = one_by_one(y.tolist(), 6.0)
    assert [(one.index, one.recovered) for one in found] == [(at, back) for at, _, back in wanted]
    assert [one.distance for one in found] == pytest.approx([distance for _, distance, _ in wanted])
    assert points < 400 or found


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_points_that_are_not_finite_are_no_jumps(bad: float) -> None:
    y = np.ones(3 * WINDOW)
    y[100] = bad
    assert not [one for one in jumps_of(np.arange(len(y), dtype=float), y, 10.0) if one.index == 100]
    y[120] = 5.0
    (jump,) = [one for one in jumps_of(np.arange(len(y), dtype=float), y, 10.0) if one.index == 120] or [None]
    assert (jump is None) == np.isnan(bad)  # a window with a NaN has no median


def test_large_tables_are_not_copied(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    table = (1e-3 + 1e-4 * random.random((ITERATIONS, COLUMNS))).astype(np.float32)
    names = ("gradient/norm", "gradient/norm_clipped", "update/norm", "update/ratio", "adam/rms", "weight/norm")
    with Writer(tmp_path / "a.inspect", RunStart(run="r", title="t")) as writer:
        writer.write(Axis(name="iteration", title="iteration", unit="iteration"))
        writer.write(Channel(name="training:iteration", kind="coordinate", dims=("iteration",), shape=(None,),
                             dtype="float64", title="iteration"))  # fmt: skip
        writer.write(Page("training:iteration", 0, (0,), np.arange(ITERATIONS, dtype=np.float64)))
        for name, shape in (("loss", (None,)), ("gradient_norm", (None, None))):
            dims = ("iteration", "side")[: len(shape)]
            writer.write(Channel(name=f"training:{name}", kind="series", dims=dims, shape=shape, title=name))
            values = np.ones((ITERATIONS, 2)[: len(shape)], dtype=np.float32)
            writer.write(Page(f"training:{name}", 0, (0,) * len(shape), values))
        for name in names:
            writer.write(Channel(name=f"parameters:{name}", kind="series", dims=("iteration", "parameter"),
                                 shape=(None, None), title=name))  # fmt: skip
            writer.write(Page(f"parameters:{name}", 0, (0, 0), table))
        writer.write(RunStop("done"))
    with open_capture(tmp_path / "a.inspect") as capture:
        diagnose(capture, capture.frames)  # imports, and what is kept of the first reading
        tracemalloc.start()
        try:
            found = diagnose(capture, capture.frames)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    wanted = {"unmoved", "no-gradient", "step-size", "stale-second-moment", "clipping-always", "norms-drift"}
    assert wanted <= set(found.asked) and not found.broken
    assert peak < 3 * table.nbytes, f"{peak / table.nbytes:.1f} times the largest table"


def test_norms_beside_clipping_are_those_of_a_plain_loop(tmp_path: Path) -> None:
    """More rows than are read at a time; a parameter that has no number after clipping, and rows without any."""
    random = np.random.default_rng(0)
    before = random.random((BLOCK + 7, 3)).astype(np.float32)
    after = (0.5 * before[:, [2, 0]]).astype(np.float32)
    before[3], after[BLOCK + 1, 0] = np.nan, np.nan
    tables = {"parameters:gradient/norm": (before, "abc"), "parameters:gradient/norm_clipped": (after, "ca")}
    with Writer(tmp_path / "a.inspect", RunStart(run="r", title="t")) as writer:
        writer.write(Axis(name="iteration", title="iteration", unit="iteration"))
        writer.write(Channel(name="training:gradient_norm", kind="series", dims=("iteration", "side"),
                             shape=(None, None), title="norm"))  # fmt: skip
        writer.write(Page("training:gradient_norm", 0, (0, 0), before[:, :2]))
        for name, (values, letters) in tables.items():
            writer.write(Channel(name=name, kind="series", dims=("iteration", "parameter"), shape=(None, None),
                                 title=name, domains={"parameter": name}))  # fmt: skip
            writer.write(Labels(name, tuple(letters)))
            writer.write(Page(name, 0, (0, 0), values))
        writer.write(RunStop("done"))
    with open_capture(tmp_path / "a.inspect") as capture:
        norms = norms_beside_clipping(capture)
    assert norms is not None
    for n in range(len(before)):
        pairs = [(float(before[n, i]), float(after[n, j])) for i, j in ((2, 0), (0, 1))]
        pairs = [pair for pair in pairs if not any(math.isnan(one) for one in pair)]
        wanted = [math.sqrt(sum(pair[side] ** 2 for pair in pairs)) if pairs else math.nan for side in (0, 1)]
        assert norms[n].tolist() == pytest.approx(wanted, nan_ok=True)
