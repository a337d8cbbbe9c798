"""What curves do in a range of steps, against numpy over the whole of it at once."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from panel_captures import channel, write_frames

from inspector.analysis import step_statistics
from inspector.analysis.step_statistics import COLUMNS, Statistics, curves_of, merged, read, step_axis
from inspector.capture import Writer, open_capture
from inspector.records import Channel, Frame, Page, RunStart, RunStop

RANGES = [((0, 299),), ((12, 57),), ((3, 3),), ((0, 9), (100, 180), (299, 299))]


def by_numpy(values: Any, ranges: Any) -> np.ndarray:
    """(curve, column) of (step, curve) numbers."""
    cut = np.concatenate([values[first : last + 1] for first, last in ranges]).astype(np.float64)
    rows = []
    for one in cut.T:
        finite = one[np.isfinite(one)]
        told = [finite.min(), finite.max(), finite.mean(), finite.std()] if len(finite) else [np.nan] * 4
        with np.errstate(invalid="ignore"):
            rows.append([one[0], one[-1], one[-1] - one[0], *told, np.isnan(one).sum(), np.isinf(one).sum(), 0])
    return np.array(rows)


def found_in(path: Path, name: str, ranges: Any) -> Statistics:
    with open_capture(path) as capture:
        about = capture.channels[name]
        found = Statistics(curves_of(capture, about, -1))
        for _ in read(capture, about, -1, ranges, found):
            pass
        return found


@pytest.mark.parametrize("ranges", RANGES)
@pytest.mark.parametrize("block", [7, 1 << 19])
def test_every_number_is_numpys(tmp_path: Path, ranges: Any, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_statistics, "BLOCK", block)
    random = np.random.default_rng(0)
    states = random.normal(1e4, 1e-2, (300, 5)).astype(np.float32)
    states[20, 1], states[30, 2], states[31, 2] = np.nan, np.inf, -np.inf
    states[:, 4] = np.nan
    layers = random.normal(size=(4, 300))
    norms, counts = random.exponential(size=300), random.integers(0, 9, (300, 2)).astype(np.int32)
    path = write_frames(
        tmp_path, channel("l:h", "state", ("step", "unit"), states), channel("l:n", "jacobian", ("step",), norms),
        channel("m:norm", "residual", ("layer", "step"), layers), channel("l:c", "health", ("step", "count"), counts),
    )  # fmt: skip
    for name, values in (("l:h", states), ("l:n", norms[:, None]), ("m:norm", layers.T), ("l:c", counts)):
        found = found_in(path, name, ranges)
        np.testing.assert_allclose(found.table(), by_numpy(values, ranges), rtol=1e-12, atol=1e-9)
        assert found.steps == sum(last - first + 1 for first, last in ranges)
    assert found_in(path, "l:h", ranges).table().shape == (5, len(COLUMNS))


def test_the_deviation_of_numbers_far_from_0_has_its_digits(tmp_path: Path) -> None:
    values = 1e9 + np.random.default_rng(1).normal(size=(5000, 1))
    path = write_frames(tmp_path, channel("l:n", "state", ("step", "unit"), values))
    assert found_in(path, "l:n", ((0, 4999),)).deviation[0] == pytest.approx(values.std(), rel=1e-9)


def test_what_is_not_written_is_counted_and_is_no_nan(tmp_path: Path) -> None:
    path = tmp_path / "a.inspect"
    about = Channel(name="l:h", kind="state", dims=("step", "unit"), shape=(10, 2), dtype="float64")
    values = np.arange(20.0).reshape(10, 2)
    values[1, 0] = np.nan
    with Writer(path, RunStart(run="r", title="t")) as writer:
        writer.write(Frame(index=0))
        writer.write(about)
        writer.write(Page("l:h", 0, (0, 0), values[:3]))
        writer.write(Page("l:h", 0, (5, 0), values[5:8]))
        writer.write(RunStop("done"))
    found = found_in(path, "l:h", ((0, 9),))
    table = dict(zip(COLUMNS, found.table()[0], strict=True))
    assert (table["NaN"], table["not there"], table["first"]) == (1, 2 + 2, 0.0)
    assert np.isnan(table["last"]) and found.ends[:, 0].tolist() == [True, False], "step 9 has not come"
    known = values[[0, 2, 5, 6, 7], 0]
    assert (table["mean"], table["sd"]) == (pytest.approx(known.mean()), pytest.approx(known.std()))
    assert found_in(path, "l:h", ((8, 9),)).unknown.tolist() == [2, 2]


def test_which_channels_have_curves_over_steps() -> None:
    def axis(*dims: str, **more: Any) -> int | None:
        return step_axis(Channel(name="l:x", kind="state", dims=dims, shape=(None,) * len(dims), **more))

    assert [axis("step"), axis("step", "unit"), axis("layer", "step"), axis("head", "query")] == [0, 0, 1, 1]
    assert axis("unit") is axis("query", "key") is axis("head", "query", "key") is axis("start", "lag") is None
    assert axis("step", "rank", value_domain="class") is None, "words have no mean"


def test_ranges_that_overlap_count_once() -> None:
    assert merged([(12, 20), (15, 30), (31, 40), (50, 50)]) == ((12, 40), (50, 50))


@pytest.mark.parametrize("block", [1, 2, 9])
def test_numbers_whose_squares_no_float_holds(block: int) -> None:
    """Beside ordinary ones, against whole fractions."""
    curves = [
        [1e308, 1.5e308, -3e307, 1e308, 0.0],
        [1e-200, 3e-200, 0.0, 2e-200, -7e-200],
        [5e-324, 1e-310, 0.0, 5e-324, 1e-320],
        [1e-300, 1.0, 2.0, 1e-300, 4.0],
        [3e200, 1e200, -1e200, 7.0, 1e-250],
        [0.0, 0.0, 0.0, 0.0, 0.0],
        [1.0, 2.0, 4.0, 8.0, 16.0],
    ]
    values, found = np.array(curves).T, Statistics(len(curves))
    for first in range(0, len(values), block):
        found.add(values[first : first + block])
    for curve, mean, deviation in zip(curves, found.mean, found.deviation, strict=True):
        exact = [Fraction(one) for one in curve]
        middle = sum(exact) / len(exact)
        squares = sum((one - middle) ** 2 for one in exact) / len(exact)
        assert mean == pytest.approx(float(middle), rel=1e-12, abs=5e-324)
        assert deviation == pytest.approx(_root(squares), rel=1e-12, abs=5e-324)


def _root(value: Fraction) -> float:
    """The square root of a fraction that may be beyond every float."""
    shift = (value.numerator.bit_length() - value.denominator.bit_length()) // 2
    return math.ldexp(math.sqrt(value / Fraction(4) ** shift), shift) if value else 0.0
