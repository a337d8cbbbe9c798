"""Rules on what the loss asks for, at both sides of their limits, on series that were made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.training_series import NOISE, RNG, N, falling, judged, of, ones

OWN, OTHERS, OUTPUTS, DIFFER = (f"training:asked/{word}" for word in ("own", "others", "outputs", "differ"))
COLUMNS = (
    "mean of targets", "deviation of targets", "mean of predictions", "deviation of predictions", "correlation",
)  # fmt: skip


def asked(more: float, apart: float = 0.3, differ: float = 0.8, n: int = N, noise: float = 0.01) -> Any:
    own = 2 + noise * RNG.normal(size=n)
    return {
        OWN: own, OTHERS: own + more + noise * RNG.normal(size=n), OUTPUTS: np.full(n, apart), DIFFER: np.full(n, differ),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("series", "severity"),
    [
        (asked(0.0), "info"), (asked(0.5), ""), (asked(0.02), ""), (asked(0.0, apart=1e-6), "warning"), (asked(0.5, apart=1e-6), ""),
        (asked(0.0, apart=1e-6, differ=0.01), ""), (asked(0.0, apart=4e-6), "info"), (asked(0.0, n=20), ""),
        (asked(0.0, noise=3.0), ""), (asked(np.nan), ""), (asked(0.0, apart=1e-6, n=1), ""),
    ],
)  # fmt: skip
def test_an_input_that_is_ignored(tmp_path: Path, series: Any, severity: str) -> None:
    found = judged(tmp_path / "a.inspect", falling(), series)
    assert [one.severity for one in of(found, "input-ignored")] == [severity] * bool(severity)


def test_what_was_so_in_the_first_half_alone_is_not_told(tmp_path: Path) -> None:
    series = asked(0.5)
    series[OTHERS][: N // 2] = series[OWN][: N // 2]
    series[OUTPUTS][: N // 2] = 0
    assert not of(judged(tmp_path / "a.inspect", falling(), series), "input-ignored")


def numbers(mean: float, spread: float, own: float, varied: float, together: float, n: int = N) -> Any:
    return {"training:asked/numbers": np.tile([mean, spread, own, varied, together], (n, 1))}


@pytest.mark.parametrize(
    ("series", "fires"),
    [
        (numbers(500, 5, 20, 0.1, 0.5), True),  # far from reached
        (numbers(0, 100, 0, 10, 0.9), True),  # too flat, and right in kind
        (numbers(0, 100, 0, 10, 0.05), False),  # too flat, since nothing tells them
        (numbers(500, 5, 500, 4, 0.9), False),  # learned
        (numbers(500, 5, 500, 0.1, np.nan), False),  # the mean alone, of targets that nothing tells
        (numbers(3, 1, 0, 0.1, 0.5), False),  # usual numbers, not learned yet
        (numbers(0, 0.01, 0, 0.3, 0.0), True),  # noise of the outputs above small targets
        (numbers(0, 0.01, 0, 0.001, 0.0), False),  # small, and nothing tells them
        (numbers(500, 5, 20, 0.1, 0.5, n=31), False), (numbers(np.nan, 5, 20, 0.1, 0.5), False),
        (numbers(500, 5, 20, 0.1, 0.5, n=1), False),
    ],
)  # fmt: skip
def test_the_scale_of_targets(tmp_path: Path, series: Any, fires: bool) -> None:
    found = of(judged(tmp_path / "a.inspect", falling(), series, COLUMNS), "target-scale")
    assert [one.severity for one in found] == ["warning"] * fires


@pytest.mark.parametrize(
    ("codes", "fires"),
    [([1.0] * 5, True), ([1.0, 1.0], False), ([1.0, 0.0, 1.0, 1.0], False), ([0.0] * 9, False), ([np.nan] * 9, False),
     ([4.0, np.nan, 4.0, 4.0], True)],
)  # fmt: skip
def test_what_the_loss_is_given(tmp_path: Path, codes: list[float], fires: bool) -> None:
    found = judged(tmp_path / "a.inspect", falling(), {"training:asked/given": np.array(codes)})
    assert bool(of(found, "loss-input")) is fires


@pytest.mark.parametrize(
    ("shares", "severity"),
    [
        ([0.1, 0.2, 1.0, 0.2], "warning"), ([0.1, 1.0, 0.1, 0.1], ""), ([1.0, 0.1, 0.1, 0.1], "info"),
        ([0.1, 0.95, 1.0, 0.2], ""), ([0.1, 0.2, 0.99, 0.2], ""), ([np.nan] * 4, ""), ([0.1, 0.1, 0.1, 1.0], "warning"),
    ],
)  # fmt: skip
def test_how_far_ahead_targets_lie(tmp_path: Path, shares: list[float], severity: str) -> None:
    for n, some in ((5, True), (1, False)):
        series = {"training:asked/ahead": np.tile(shares, (n, 1))}
        found = of(judged(tmp_path / f"{n}.inspect", falling(), series, ("0", "1", "2", "3")), "shifted-targets")
        assert [one.severity for one in found] == [severity] * (bool(severity) and some)


@pytest.mark.parametrize(
    ("shares", "rows", "fires"),
    [([1.0, 1.0], 4, True), ([1.0, np.nan], 2, True), ([1.0, 0.9], 4, False), ([np.nan, np.nan], 4, False),
     ([1.0, np.nan], 0.5, False), ([0.0, 0.0], 4, False)],
)  # fmt: skip
def test_a_mask_that_shows_padding_alone(tmp_path: Path, shares: list[float], rows: float, fires: bool) -> None:
    series = {
        "training:padding/keys_shown": np.array(shares), "training:padding/sequences_masked": np.full(2, float(rows)),
    }  # fmt: skip
    assert bool(of(judged(tmp_path / "a.inspect", falling(), series), "padding-read")) is fires


@pytest.mark.parametrize(("change", "fires"), [(0.5, True), (1e-6, False), (np.nan, False)])
def test_an_input_that_is_read_before_it_is_predicted(tmp_path: Path, change: float, fires: bool) -> None:
    series = {
        "training:asked/reads_ahead": np.array([np.nan, change]), "training:asked/reads_ahead_step": np.array([np.nan, 1.0]),
        OWN: 0.1 + 0 * NOISE,
    }  # fmt: skip
    found = of(judged(tmp_path / "a.inspect", falling(), series), "next-input-read")
    assert bool(found) is fires
    if fires:
        assert found[0].message.startswith(
            "the targets are the next inputs, and the model reads them: an output changes, by up to 0.5 of the "
            "largest output, when inputs after its step are replaced, up to 1 step ahead; the loss is "
        )


@pytest.mark.parametrize(
    ("codes", "rows", "fires"), [(411.0, 9, True), (411.0, 7, False), (0.0, 9, False), (np.nan, 9, False), (202.0, 9, True)]
)  # fmt: skip
def test_blocks_without_a_gradient(tmp_path: Path, codes: float, rows: int, fires: bool) -> None:
    series = {"parameters:gradient/unused_block": np.tile([codes, 0.0, np.nan], (rows, 1))}
    found = of(judged(tmp_path / "a.inspect", falling(), series), "unused-gate")
    assert bool(found) is fires and all(one.place == "a.weight" for one in found)


def test_a_block_that_gets_its_gradient_later_is_left_alone(tmp_path: Path) -> None:
    codes = np.tile([411.0, 0.0, 0.0], (20, 1))
    codes[-1] = 0
    found = judged(tmp_path / "a.inspect", falling(), {"parameters:gradient/unused_block": codes})
    assert not of(found, "unused-gate")


@pytest.mark.parametrize(
    ("fresh", "fires"), [([1, 1], True), ([1], False), ([1, 0, 1], False), ([0, 0], False), ([np.nan, np.nan], False)]
)  # fmt: skip
def test_states_that_begin_anew(tmp_path: Path, fresh: list[float], fires: bool) -> None:
    table = np.stack([np.array(fresh, float), np.zeros(len(fresh)), np.full(len(fresh), np.nan)], 1)
    found = of(judged(tmp_path / "a.inspect", falling(), {"modules:state/fresh": table}), "state-set-back")
    assert bool(found) is fires and all(one.place == "a.weight" for one in found)


def weights(before: Any, after: Any) -> Any:
    return {"training:weights/before": np.array(before, float), "training:weights/after": np.array(after, float)}


@pytest.mark.parametrize(
    ("series", "severity"),
    [
        (weights(np.ones(20), 1 + np.arange(20) + 1), "error"), (weights(np.arange(20), np.arange(20) + 1), ""),
        (weights(np.ones(20), np.ones(20)), ""), (weights(np.ones(10), np.arange(10) + 2), ""),
        (weights(np.arange(40) % 5, np.arange(40) % 5 + 1), "info"), (weights(np.full(20, np.nan), np.ones(20)), ""),
        (weights([1.0], [2.0]), ""),
    ],
)  # fmt: skip
def test_weights_that_come_back(tmp_path: Path, series: Any, severity: str) -> None:
    found = of(judged(tmp_path / "a.inspect", falling(), series), "weights-put-back")
    assert [one.severity for one in found] == [severity] * bool(severity)


@pytest.mark.parametrize(
    ("share", "loss", "severity"),
    [
        (0.95, 3 + 0.01 * NOISE, "warning"), (0.95, falling(), "info"), (0.85, 3 + 0.01 * NOISE, "info"),
        (0.79, 3 + 0.01 * NOISE, ""), (0.95, None, "info"), (0.95, np.full(N, np.nan), "info"), (0.95, falling()[:1], "info"),
    ],
)  # fmt: skip
def test_strong_dropout(tmp_path: Path, share: float, loss: Any, severity: str) -> None:
    found = judged(tmp_path / "a.inspect", loss, {"training:x": ones(1.0)[:, 0]}, about={"dropout": {"drop": share}})
    assert [one.severity for one in of(found, "strong-dropout")] == [severity] * bool(severity)


NODES, FAILED = "training:graph/nodes", "training:graph/failed"
PARTS = ("all", "of earlier iterations", "iterations that they are of")


@pytest.mark.parametrize(
    ("back", "severity"),
    [
        ([*range(9), 9], ""), ([*range(10), 10], "warning"), ([10.0] * 20, "info"), ([9.0] * 20, ""), ([0.0] * 20, ""),
        ([*range(12), *range(12)], "warning"), ([10.0], "info"), ([np.nan] * 20, ""), ([np.nan, 10.0, 11.0], "warning"),
    ],
)  # fmt: skip
def test_graphs_that_go_back_into_earlier_iterations(tmp_path: Path, back: list[float], severity: str) -> None:
    table = np.array([[50 + 40 * one, 40 * one, one] for one in back], np.float64)
    found = of(judged(tmp_path / "a.inspect", falling(), {NODES: table}, PARTS), "earlier-graphs")
    assert [one.severity for one in found] == [severity] * bool(severity)
    if severity == "warning" and len(back) == 11:
        assert "10 earlier iterations: 400 of its 450 nodes" in found[0].message and found[0].iterations == (10,)


@pytest.mark.parametrize(
    ("back", "failed", "why"),
    [(1.0, 1.0, "freed"), (1.0, 2.0, "changed by the step"), (0.0, 1.0, ""), (1.0, np.nan, ""), (1.0, 3.0, "")],
)
def test_a_pass_that_failed_by_it(tmp_path: Path, back: float, failed: float, why: str) -> None:
    tables = {NODES: np.array([[50, 0, 0], [90, 40 * back, back]]), FAILED: np.array([np.nan, failed])}
    found = of(judged(tmp_path / "a.inspect", None, tables, PARTS), "earlier-graphs")
    assert [one.severity for one in found] == ["error"] * bool(why)
    assert not why or why in found[0].message


SUBNORMAL, ZERO = "parameters:gradient/float16_subnormal", "parameters:gradient/float16_zero"


@pytest.mark.parametrize(
    ("small", "zero", "looks", "severity"),
    [
        (0.91, 0.51, 3, "warning"), (0.91, 0.49, 3, "info"), (0.89, 0.51, 3, ""), (0.91, 0.11, 3, "info"),
        (0.91, 0.09, 3, ""), (0.91, 0.51, 2, ""), (0.0, 1.0, 3, ""), (np.nan, 1.0, 3, ""), (np.nan, np.nan, 3, ""),
    ],
)  # fmt: skip
def test_gradients_that_fall_below_what_float16_has(
    tmp_path: Path, small: float, zero: float, looks: int, severity: str
) -> None:
    tables = {SUBNORMAL: np.tile([small, 0.1, np.nan], (looks, 1)), ZERO: np.tile([zero, 0.0, 1.0], (looks, 1))}
    found = of(judged(tmp_path / "a.inspect", falling(), tables), "precision-headroom")
    assert [one.severity for one in found] == [severity] * bool(severity)
    assert all(one.place == "a.weight" and "1 parameter more has only zeros" in one.message for one in found)


@pytest.mark.parametrize(
    ("used", "severity"),
    [
        ([0.1, 0.2, 0.26], "warning"), ([0.1, 0.2, 0.24], ""), ([0.1, 0.3, 0.2], "info"), ([np.nan] * 3, ""),
        ([0.1, np.inf, np.nan], "warning"), ([0.3], "warning"),
    ],
)  # fmt: skip
def test_outputs_near_the_largest_number_of_float16(tmp_path: Path, used: list[float], severity: str) -> None:
    table = np.stack([np.array(used), np.full(len(used), 0.01), np.full(len(used), np.nan)], 1)
    found = of(
        judged(tmp_path / "a.inspect", falling(), {"modules:activation/float16_used": table}), "precision-headroom"
    )
    assert [one.severity for one in found] == [severity] * bool(severity)
    assert all(one.place == "a.weight" for one in found)
