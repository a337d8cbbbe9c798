"""Exported numbers equal the captured ones in every format."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from panel_captures import channel, write_frames

import inspector.capture
from inspector.capture import Capture, CaptureError, Writer, export_channel, open_capture
from inspector.capture.tables import csv_bytes, safe_cell
from inspector.records import Channel, Frame, Labels, Page, RunStart, RunStop

VALUES = np.array([[1.5, -2.0], [np.nan, np.inf], [0.25, 3.0]], np.float32)


@pytest.fixture
def capture(tmp_path: Path) -> Capture:
    with Writer(tmp_path / "a.inspect", RunStart(run="r", title="t")) as writer:
        writer.write(Channel(name="a:h", kind="state", dims=("step", "unit"), shape=(3, 2), title="h"))
        writer.write(
            Channel(name="a:attention", kind="attention", dims=("head", "query", "key"), shape=(2, 2, 2), title="x")
        )
        writer.write(Frame(index=0))
        writer.write(Labels("step", ("=cmd()", "<s>", "b,\n"), 0))
        writer.write(Page("a:h", 0, (0, 0), VALUES))
        writer.write(Page("a:attention", 0, (0, 0, 0), np.arange(8, dtype=np.float32).reshape(2, 2, 2)))
        writer.write(RunStop("done"))
    return open_capture(tmp_path / "a.inspect")


def test_npy_and_npz(capture: Capture, tmp_path: Path) -> None:
    np.testing.assert_array_equal(np.load(export_channel(capture, "a:h", -1, tmp_path / "x.npy")), VALUES)
    with np.load(export_channel(capture, "a:h", 0, tmp_path / "x.npz"), allow_pickle=False) as archive:
        np.testing.assert_array_equal(archive["values"], VALUES)
        assert list(archive["dims"]) == ["step", "unit"]
    capture.close()


def test_csv_is_safe_for_spreadsheets(capture: Capture, tmp_path: Path) -> None:
    text = export_channel(capture, "a:h", -1, tmp_path / "x.csv").read_text(encoding="utf-8")
    rows = list(csv.reader(io.StringIO(text)))
    assert rows[0] == ["step", "label", "unit 0", "unit 1"]
    assert rows[1] == ["0", "'=cmd()", "1.5", "-2.0"]
    assert rows[2][2:] == ["nan", "inf"]
    long = list(csv.reader(io.StringIO(export_channel(capture, "a:attention", -1, tmp_path / "y.csv").read_text())))
    assert long[0] == ["head", "query", "key", "attention"] and long[-1] == ["1", "1", "1", "7.0"]
    capture.close()


def test_json_has_what_json_has_not(capture: Capture, tmp_path: Path) -> None:
    told = json.loads(export_channel(capture, "a:h", -1, tmp_path / "x.json").read_text(encoding="utf-8"))
    assert told["values"] == [[1.5, -2.0], ["nan", "inf"], [0.25, 3.0]]
    assert (told["schema"], told["dims"], told["first"]) == ("inspector-channel-1", ["step", "unit"], [0, 0])
    assert told["labels"] == {"step": ["=cmd()", "<s>", "b,\n"]}
    capture.close()


def test_a_part_keeps_its_positions(capture: Capture, tmp_path: Path) -> None:
    part = {"step": (1, 3), "unit": (1, 2)}
    told = json.loads(export_channel(capture, "a:h", -1, tmp_path / "x.json", slices=part).read_text())
    assert (told["values"], told["first"]) == ([["inf"], [3.0]], [1, 1]) and told["labels"]["step"] == ["<s>", "b,\n"]
    text = export_channel(capture, "a:h", -1, tmp_path / "x.csv", slices=part).read_text(encoding="utf-8")
    assert list(csv.reader(io.StringIO(text))) == [
        ["step", "label", "unit 1"], ["1", "<s>", "inf"], ["2", "b,\n", "3.0"],
    ]  # fmt: skip
    long = export_channel(capture, "a:attention", -1, tmp_path / "y.csv", slices={"key": (1, 2)}).read_text()
    assert list(csv.reader(io.StringIO(long)))[1] == ["0", "0", "1", "1.0"]
    with np.load(export_channel(capture, "a:h", -1, tmp_path / "x.npz", slices=part)) as archive:
        assert archive["first"].tolist() == [1, 1] and archive["values"].shape == (2, 1)
    for wrong, said in (
        ({"step": (2, 9)}, "step=2:9 does not lie in a:h, whose step"),
        ({"key": (0, 1)}, "no dim 'key'"),
    ):
        with pytest.raises(CaptureError, match=said):
            export_channel(capture, "a:h", -1, tmp_path / "z.json", slices=wrong)
    assert not (tmp_path / "z.json").exists()
    capture.close()


def test_parquet(capture: Capture, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    table = parquet.read_table(export_channel(capture, "a:h", -1, tmp_path / "x.parquet"))
    np.testing.assert_array_equal(np.array(table["h"]).reshape(3, 2), VALUES)
    capture.close()


def test_xarray(capture: Capture) -> None:
    pytest.importorskip("xarray")
    data = capture.to_xarray()
    np.testing.assert_array_equal(data["a:h"].values, VALUES)
    assert data["a:h"].attrs["long_name"] == "h" and data["a:attention"].dims == ("head", "query", "key")
    capture.close()


AXES = ("encoder:h", "step"), ("decoder:h", "answer step")


@pytest.fixture
def two_axes(tmp_path: Path) -> Iterator[Capture]:
    """States over the steps of the input and over those of the answer, of equal length."""
    parts = (channel(name, "state", ("step", "unit"), VALUES, domains={"step": axis}) for name, axis in AXES)
    with open_capture(write_frames(tmp_path, *parts)) as capture:
        yield capture


def test_axes_of_equal_length_are_not_taken_for_one(two_axes: Capture) -> None:
    pytest.importorskip("xarray")
    data = two_axes.to_xarray()
    assert data["encoder:h"].dims == ("step", "unit") and data["decoder:h"].dims == ("step (answer step)", "unit")


@pytest.mark.parametrize(("name", "axis"), AXES)
def test_exported_numbers_name_their_axis(two_axes: Capture, name: str, axis: str, tmp_path: Path) -> None:
    header = export_channel(two_axes, name, -1, tmp_path / "x.csv").read_text(encoding="utf-8").splitlines()[0]
    assert header.split(",")[0] == ("step" if axis == "step" else "step (answer step)")
    with np.load(export_channel(two_axes, name, -1, tmp_path / "x.npz")) as saved:
        assert saved["dims"].tolist() == ["step", "unit"] and saved["axes"].tolist() == [axis, "unit"]


def test_unknown_suffix_and_channel_say_what_exists(capture: Capture, tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match=r"\.xls.*\.csv"):
        export_channel(capture, "a:h", -1, tmp_path / "x.xls")
    with pytest.raises(CaptureError, match=r"no channel 'b:h'.*a:h"):
        export_channel(capture, "b:h", -1, tmp_path / "x.csv")
    with pytest.raises(CaptureError, match="Cannot write"):
        export_channel(capture, "a:h", -1, tmp_path / "missing" / "x.csv")
    capture.close()


@pytest.mark.parametrize(
    ("cell", "safe"),
    [
        ("=1", "'=1"), ("-2.5e-3", "-2.5e-3"), ("-inf", "-inf"), ("@a", "'@a"), ("a", "a"), ("+1", "+1"), ("+a", "'+a"), ("-a", "'-a"), ("\t=1", "'\t=1"),
        ("-1+cmd|x", "'-1+cmd|x"),
    ],
)  # fmt: skip
def test_safe_cell(cell: str, safe: str) -> None:
    assert safe_cell(cell) == safe
    assert csv_bytes([["x", cell]]) == f"x,{safe}\r\n".encode()


def test_every_table_is_written_by_the_one_function_that_quotes_formulas() -> None:
    package = Path(inspector.capture.__file__).parents[1]
    writers = {path.name for path in package.rglob("*.py") if "csv.writer" in path.read_text(encoding="utf-8")}
    assert writers == {"tables.py"}
