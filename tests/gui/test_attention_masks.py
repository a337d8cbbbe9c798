"""Masked keys are drawn as masked and read as masked, a weight of 0 as 0; rows that come one by one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from panel_captures import Written, channel, shown

from inspector.gui.widgets.theme import MASKED

T = 6


def map_of(weights: np.ndarray, signal: str = "attention") -> Written:
    return channel(
        f"a:{signal}", "attention", ("head", "query", "key"), weights.astype(np.float16), title="attention",
        domains={"query": "step", "key": "step"}, limits=(0, 1),
    )  # fmt: skip


def drawn_rows(panel: Any) -> np.ndarray:
    """The numbers of the large map."""
    ((_, choice),) = panel.choices()
    source = panel.levels.source(panel.capture, choice)
    rows: np.ndarray = source.rows(0, source.shape[0])
    return rows


def drawn(tmp_path: Path, weights: np.ndarray, *more: Written) -> tuple[np.ndarray, np.ndarray, str, str]:
    """What the large map holds (query, key), the first thumbnail, and the readouts at two masked-or-zero cells."""
    parts = (map_of(weights), *more)
    with shown(tmp_path, "attention", *parts, place="a") as (stage, panel):
        picture = panel.atlas._pictures[0, 0]
        masked = np.isneginf(drawn_rows(panel))
        said = []
        for query, key in ((0, 3), (4, 1)):
            stage.cursor.move(place="a", head=0, step=query, key=key)
            said.append(
                next(value for what, value in panel.readout(stage.cursor.position) if what.startswith("attention"))
            )
        return masked, picture, said[0], said[1]


def allowed(first: list[int], last: list[int]) -> Written:
    return channel(
        "a:attention/allowed", "attention", ("statistic", "query"), np.array([first, last], np.int32), title="allowed"
    )


def test_a_span_of_keys(tmp_path: Path) -> None:
    weights = np.tril(np.ones((1, T, T)) / np.arange(1, T + 1)[:, None])
    weights[0, 4, 1] = 0.0
    masked, picture, first, second = drawn(tmp_path, weights, allowed([0] * T, list(range(T))))
    np.testing.assert_array_equal(masked, np.triu(np.ones((T, T), dtype=bool), 1))
    assert first == "masked" and second.startswith("0")
    assert (picture == MASKED).any() and not (picture == MASKED).all()


def test_a_mask_that_is_no_span(tmp_path: Path) -> None:
    mask = (np.arange(T)[:, None] + np.arange(T)) % 2 == 1
    weights = np.where(mask, 0.0, 1 / 3)[None]
    whole = channel(
        "a:attention/mask", "attention", ("mask", "query", "key"), mask[None].astype(np.uint8), title="masked keys"
    )
    masked, picture, first, second = drawn(tmp_path, weights, allowed([0] * T, [T - 1] * T), whole)
    np.testing.assert_array_equal(masked, mask)
    assert first == second == "masked" and (picture == MASKED).mean() == pytest.approx(0.5, abs=0.05)


def test_rows_are_shown_until_the_map_is_there(tmp_path: Path) -> None:
    weights = np.full((1, T, T), 1 / T)
    rows = map_of(weights[:, :3], "attention/rows")
    with shown(tmp_path, "attention", rows, place="a") as (_, panel):
        assert [one.name for one in panel.maps()] == ["a:attention/rows"]
        assert drawn_rows(panel).shape == (3, T)
    (tmp_path / "b").mkdir()
    with shown(tmp_path / "b", "attention", rows, map_of(weights), place="a") as (_, panel):
        assert [one.name for one in panel.maps()] == ["a:attention"]
        assert drawn_rows(panel).shape == (T, T)
