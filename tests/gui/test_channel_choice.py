"""Titles are no keys: channels of the same title are told apart, and a choice stays where a frame has another title."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from captures import flip
from panel_captures import Written, channel, shown, write_frames

from inspector.gui.export.offscreen import Stage
from inspector.gui.panel.attention.strip import BY_DIMENSION
from inspector.gui.state.cursor import Position

KS = {"statistic": ("K", "relative error", "cosine", "share of the cost")}
LAGS = {"statistic": ("median", "p10", "p90", "mean")}


def numbers(*shape: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).random(shape) + 0.1


def two(
    kind: str, dims: tuple[str, ...], shape: tuple[int, ...], first: str, second: str, **more: Any
) -> list[Written]:
    """Two channels of other numbers."""
    return [channel(name, kind, dims, numbers(*shape, seed=i), **more) for i, name in enumerate((first, second))]


CASES: dict[str, tuple[list[Written], list[Written]]] = {
    "openers": (
        two("opener", ("token", "unit"), (3, 2), "m:gate/a/by_token", "m:gate/b/by_token",
            labels={"token": ("x", "y", "z")}),
        [channel("m:gate/tokens", "opener", ("token",), np.array([2, 2, 2]))],
    ),
    "truncation": (
        two("truncation", ("statistic", "truncation"), (4, 5), "m:truncation/all", "m:truncation/w", labels=KS), []
    ),
    "attention": (
        two("attention_statistic", ("head", "query"), (1, 4), "m:attention/entropy", "m:attention/distance"),
        [channel("m:attention", "attention", ("head", "query", "key"), numbers(1, 4, 4, seed=2))],
    ),
    "lags": (
        two("map", ("start", "lag"), (2, 5), "m:jacobian/lag_map", "m:jacobian/other_map", labels={"start": ("0", "1")},
            scale="log"),
        [channel("m:jacobian/lag", "lag", ("statistic", "lag"), numbers(4, 5, seed=2), labels=LAGS, scale="log")],
    ),
    "spectra": (
        two("spectrum", ("eigenvalue", "part"), (3, 2), "m:weight/a/eigenvalues", "m:weight/b/eigenvalues",
            labels={"part": ("re", "im")}), []
    ),
    "sequences": (
        two("sequences", ("sequence",), (4,), "sequences:loss", "sequences:norm"), []
    ),
}  # fmt: skip


DRAWN: dict[str, Callable[[Any], Any]] = {
    "openers": lambda panel: panel.bars.plot.isVisible() and panel.sorted_table()[1].tolist(),
    "truncation": lambda panel: panel.lines[1].getData()[1].tolist(),
    "attention": lambda panel: panel.trace.getData()[1].tolist(),
    "lags": lambda panel: sorted(panel.data()),
    "spectra": lambda panel: panel.eigenvalues()[0].tolist(),
    "sequences": lambda panel: panel.column,
}
"""What tells the two channels of a panel apart in what it shows."""


def entitled(parts: list[Written], *titles: str) -> list[Written]:
    return [(replace(part, title=title), values) for (part, values), title in zip(parts, titles, strict=True)]


@pytest.mark.parametrize("key", CASES)
def test_channels_of_one_title_can_each_be_chosen(tmp_path: Path, key: str) -> None:
    parts, others = CASES[key]
    with shown(tmp_path, key, *entitled(parts, "a title", "a title"), *others) as (_, panel):
        offered = [panel.which.itemText(i) for i in range(panel.which.count())]
        offered = [text for text in offered if text != BY_DIMENSION]  # of no channel alone
        assert len(offered) == 2 == len(set(offered))
        found = []
        for text in offered:
            panel.which.setCurrentText(text)
            found.append(DRAWN[key](panel))
        assert found[0] != found[1]


@pytest.mark.parametrize("key", [key for key in CASES if key != "sequences"])  # a data set has one frame
def test_a_choice_stays_in_a_frame_where_the_channel_has_another_title(tmp_path: Path, key: str) -> None:
    parts, others = CASES[key]
    before, after = entitled(parts, "first", "second"), entitled(parts, "edited first", "edited second")
    with shown(tmp_path, key, *before, *others, *after, *others) as (stage, panel):
        stage.cursor.move(frame=0)
        panel.which.setCurrentText("second")
        assert panel.which.currentText() == "second"
        drawn = DRAWN[key](panel)
        stage.cursor.move(frame=1)
        assert panel.which.currentText() == "edited second" and DRAWN[key](panel) == drawn


def test_curves_by_lag_of_one_title_each_say_why_a_number_is_missing(
    tmp_path: Path, stage_of: Callable[[Path], Stage]
) -> None:
    """One is not a number at the lag, the page of the other is damaged."""
    values = np.array([1, 0.5, 0.25, np.nan])
    about, _ = channel("m:path/lag_a", "path", ("lag",), values, title="a title", scale="log")
    path = write_frames(tmp_path, (about, values), (replace(about, name="m:path/lag_b"), values))
    flip(path, 2, at=0)
    panel = stage_of(path).panel("paths")
    panel.pointed(panel.lags.plot, 3.0, 0.0)
    told = [value for name, value in panel.readout(Position()) if name.startswith("a title")]
    assert told == ["NaN", "damaged"]
