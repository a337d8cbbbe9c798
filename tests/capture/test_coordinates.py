"""Numbers of the positions along an axis: read back, put into exported numbers, and found in older tables."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
from panel_captures import Written, channel, write_frames

from inspector.capture import Capture, coordinate_of, export_channel, numbers_along, open_capture, series

TABLE = np.array([[4.0, 2.0, 1.0], [0.5, 0.25, 0.125]])
NUMBERS = np.array([0.0, 100.0, 250.0])
NAMES = {"labels": {"statistic": ("loss", "rate")}}


def captured(folder: Path, *parts: Written) -> Capture:
    return open_capture(write_frames(folder, *parts))


def cells(path: Path) -> list[list[str]]:
    return list(csv.reader(path.read_text(encoding="utf-8").splitlines()))


def numbered(axis: str, values: np.ndarray) -> Written:
    return channel(f"parameters:{axis}", "coordinate", ("iteration",), values, domains={"iteration": axis})


def test_a_coordinate_belongs_to_the_axis_that_it_names(tmp_path: Path) -> None:
    own = {"domains": {"iteration": "iteration/measured"}}
    with captured(
        tmp_path,
        channel("parameters:training", "training", ("statistic", "iteration"), TABLE, **NAMES),
        channel("parameters:training/measured", "training", ("statistic", "iteration"), TABLE, **NAMES, **own),
        numbered("iteration", NUMBERS), numbered("iteration/measured", 2 * NUMBERS),
    ) as capture:  # fmt: skip
        for name, expected in (("training", NUMBERS), ("training/measured", 2 * NUMBERS)):
            numbers, rows = series(capture, capture.channels[f"parameters:{name}"])
            np.testing.assert_array_equal(numbers, expected)
            assert list(rows) == ["loss", "rate"]
            np.testing.assert_array_equal(rows["rate"], TABLE[1])
        found = coordinate_of(capture, "iteration/measured")
        assert found is not None and found.name == "parameters:iteration/measured"
        assert coordinate_of(capture, "step") is None and numbers_along(capture, "step") is None


def test_tables_of_older_captures_have_a_row_of_steps(tmp_path: Path) -> None:
    table = np.vstack((TABLE[0], NUMBERS))
    with captured(
        tmp_path,
        channel("p:training", "training", ("statistic", "iteration"), table, labels={"statistic": ("loss", "step")}),
    ) as capture:
        numbers, rows = series(capture, capture.channels["p:training"])
        np.testing.assert_array_equal(numbers, NUMBERS)
        assert list(rows) == ["loss"]


def test_without_numbers_positions_are_counted(tmp_path: Path) -> None:
    with captured(tmp_path, channel("p:training", "training", ("statistic", "iteration"), TABLE, **NAMES)) as capture:
        assert series(capture, capture.channels["p:training"])[0].tolist() == [0, 1, 2]


def test_exported_numbers_carry_those_of_their_positions(tmp_path: Path) -> None:
    loss = channel("p:loss", "training", ("iteration",), TABLE[0])
    with captured(
        tmp_path,
        channel("p:training", "training", ("statistic", "iteration"), TABLE, **NAMES), loss,
        numbered("iteration", NUMBERS),
    ) as capture:  # fmt: skip
        rows = cells(export_channel(capture, "p:training", -1, tmp_path / "a.csv"))
        assert rows == [
            ["statistic", "label", "0", "100", "250"], ["0", "loss", "4.0", "2.0", "1.0"],
            ["1", "rate", "0.5", "0.25", "0.125"],
        ]  # fmt: skip
        rows = cells(export_channel(capture, "p:loss", -1, tmp_path / "b.csv"))
        assert rows == [["iteration", "label", "loss"], ["0", "0", "4.0"], ["1", "100", "2.0"], ["2", "250", "1.0"]]
        with np.load(export_channel(capture, "p:loss", -1, tmp_path / "b.npz")) as saved:
            assert saved["iteration_labels"].tolist() == ["0", "100", "250"]
