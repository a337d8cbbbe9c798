"""Every number that a panel writes can be told from the others: columns, axes and statistics have names."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from inspector.capture import Writer, open_capture
from inspector.capture.tables import export_channel
from inspector.gui.export.figure_files import save_data
from inspector.gui.export.offscreen import Stage
from inspector.records import STEP_DOMAIN, Channel, Frame, Labels, Page, RunStart, RunStop

TEXT = "abacabadabacabae"
STEPS, HEADS, UNITS = len(TEXT), 2, 5
RANDOM = np.random.default_rng(5)
WEIGHTS = np.tril(RANDOM.random((HEADS, STEPS, STEPS))).astype(np.float32)
MAP = np.tril(RANDOM.random((STEPS, STEPS)) + 0.1).astype(np.float32)
STATE = RANDOM.normal(size=(STEPS, UNITS)).astype(np.float32)
LAG = RANDOM.random((2, STEPS)).astype(np.float32)


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    path = tmp_path / "a.inspect"
    with Writer(path, RunStart(run="r", title="t")) as writer:
        writer.write(Frame(index=0))
        writer.write(Labels(STEP_DOMAIN, tuple(TEXT), 0, 0))
        for name, kind, dims, values, labels in (
            ("a:attention", "attention", ("head", "query", "key"), WEIGHTS, {}),
            ("l:gradient/lag_map", "map", ("step", "source"), MAP, {}),
            ("l:h", "state", ("step", "unit"), STATE, {}),
            ("l:jacobian/lag", "lag", ("statistic", "lag"), LAG, {"statistic": ("median", "p10")}),
        ):
            domains = {one: STEP_DOMAIN for one in dims if one in ("query", "key", "source")}
            writer.write(Channel(name=name, kind=kind, dims=dims, shape=values.shape, title=name, labels=labels,
                                 domains=domains))  # fmt: skip
            writer.write(Page(name, 0, (0,) * values.ndim, values))
        writer.write(RunStop("done"))
    with open_capture(path) as capture:
        made = Stage(capture, (900, 600))
        yield made
        made.close()


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        read = csv.reader(file)
        head = next(read)
        assert len(set(head)) == len(head), f"columns that cannot be told apart: {head}"
        return [dict(zip(head, row, strict=True)) for row in read]


def written(stage: Stage, panel: Any, tmp_path: Path, name: str) -> list[dict[str, str]]:
    return [row for row in rows(save_data(panel, tmp_path / "x.csv")) if row["channel"] == name]


def test_columns_of_a_map_over_a_text_say_which_of_equal_tokens_they_are(stage: Stage, tmp_path: Path) -> None:
    found = rows(export_channel(stage.capture, "l:gradient/lag_map", 0, tmp_path / "map.csv"))
    for step, row in enumerate(found):
        values = [float(row[f"source {source} {TEXT[source]}"]) for source in range(STEPS)]
        np.testing.assert_allclose(values, MAP[step], rtol=1e-6)
    part = {"step": (3, 5), "source": (2, 6)}
    found = rows(export_channel(stage.capture, "l:gradient/lag_map", 0, tmp_path / "part.csv", slices=part))
    np.testing.assert_allclose(
        [[float(row[f"source {n} {TEXT[n]}"]) for n in range(2, 6)] for row in found], MAP[3:5, 2:6], rtol=1e-6
    )


def test_statistics_have_their_names(stage: Stage, tmp_path: Path) -> None:
    panel = stage.panel("lags")
    for row in written(stage, panel, tmp_path, "l:jacobian/lag"):
        want = LAG[("median", "p10").index(row["statistic"]), int(row["lag"])]
        assert float(row["value"]) == pytest.approx(want, rel=1e-6)
    told = json.loads(save_data(panel, tmp_path / "x.json").read_text("utf-8"))
    (own,) = [one for one in told["numbers"] if one["name"] == "l:jacobian/lag"]
    assert own["labels"] == {"statistic": ["median", "p10"]} and own["dims"] == ["statistic", "lag"]


def test_a_token_and_a_head_have_steps_queries_and_keys(stage: Stage, tmp_path: Path) -> None:
    panel: Any = stage.panel("lens")
    stage.cursor.move(step=6, head=1)
    found = written(stage, panel, tmp_path, "from step to step: from other steps to it")
    np.testing.assert_allclose([float(row["value"]) for row in found], MAP[6], rtol=1e-6)
    assert [int(row["step"]) for row in found] == list(range(STEPS))
    panel = stage.panel("attention", place="a")
    (place, head) = panel.picked[0]
    found = written(stage, panel, tmp_path, f"{place}:attention head {head}")
    assert len(found) == STEPS * STEPS
    for row in found:
        want = WEIGHTS[head, int(row["query"]), int(row["key"])]
        assert float(row["value"]) == pytest.approx(want, rel=1e-6)


def test_a_ranking_is_not_written_as_if_it_were_the_state(stage: Stage, tmp_path: Path) -> None:
    panel: Any = stage.panel("ask")
    panel.field.setText("a")
    panel.ask()
    panel.complete()
    found = written(stage, panel, tmp_path, "l:h")
    assert all(row["rank"] and not row.get("step") for row in found)
    for rank in range(UNITS):
        number, delay, r = (
            float(next(row["value"] for row in found if (row["rank"], row["what"]) == (str(rank), what)))
            for what in ("number", "delay", "r")
        )
        mark = np.array([letter == "a" for letter in TEXT[: STEPS - int(delay)]], float)
        assert r == pytest.approx(np.corrcoef(mark, STATE[int(delay) :, int(number)])[0, 1], rel=1e-5)


def test_found_units_have_a_column_for_what_each_number_is(stage: Stage, tmp_path: Path) -> None:
    panel: Any = stage.panel("units")
    found = written(stage, panel, tmp_path, "units")
    listed = [int(float(row["value"])) for row in found if row["what"] == "unit"]
    assert listed == [match.unit for match in panel.matches] and listed
    assert {row["what"] for row in found} == {"unit", "sign", "F1", "exact", "searched"}
