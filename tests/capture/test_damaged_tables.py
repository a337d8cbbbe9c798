"""Exported numbers say what they lack: an empty cell, a null, a mask, a fill value, and never a 0."""

from __future__ import annotations

import csv
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from captures import NAME, change, flip, numbers, seal, write

from inspector.capture import CaptureError, DamagedError, export_channel, open_capture

LOST = slice(8, 16)


@pytest.fixture(params=["int64", "uint8", "bool", "float32"])
def dtype(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def damaged(tmp_path: Path, dtype: str) -> Path:
    path = write(tmp_path / "a.inspect", numbers(24, 4, "float64").astype(dtype))
    flip(path, 2, at=0)
    return path


def test_what_is_damaged_is_written_only_when_asked_for(damaged: Path, tmp_path: Path) -> None:
    for suffix in ("npy", "npz", "csv", "parquet", "nc"):
        with open_capture(damaged) as capture:
            with pytest.raises(DamagedError, match=rf"{NAME} is damaged: .*steps 8–15.*page 2"):
                export_channel(capture, NAME, -1, tmp_path / f"x.{suffix}")
            assert not (tmp_path / f"x.{suffix}").exists()


def test_csv_has_empty_cells(damaged: Path, tmp_path: Path, dtype: str) -> None:
    with open_capture(damaged) as capture:
        text = export_channel(capture, NAME, -1, tmp_path / "x.csv", damaged=True).read_text(encoding="utf-8")
    rows = list(csv.reader(text.splitlines()))[1:]
    assert all(cell == "" for row in rows[LOST] for cell in row[2:])
    assert all(cell != "" for row in rows[:8] + rows[16:] for cell in row[2:])


def test_npy_holds_nan_or_is_refused(damaged: Path, tmp_path: Path, dtype: str) -> None:
    with open_capture(damaged) as capture:
        if dtype != "float32":
            with pytest.raises(CaptureError, match=r"32 cells of rnn.l0:h are not known.*\.npz.*\.csv"):
                export_channel(capture, NAME, -1, tmp_path / "x.npy", damaged=True)
            assert not (tmp_path / "x.npy").exists()
        else:
            array = np.load(export_channel(capture, NAME, -1, tmp_path / "x.npy", damaged=True))
            assert np.isnan(array[LOST]).all() and np.isfinite(array[16:]).all()


def test_npz_has_a_mask(damaged: Path, tmp_path: Path, dtype: str) -> None:
    with open_capture(damaged) as capture:
        found = np.load(export_channel(capture, NAME, -1, tmp_path / "x.npz", damaged=True), allow_pickle=False)
    assert found["missing"][LOST].all() and found["missing"].sum() == 32
    np.testing.assert_array_equal(found["values"][16:], numbers(24, 4, "float64").astype(dtype)[16:])


def test_parquet_has_nulls(damaged: Path, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    with open_capture(damaged) as capture:
        table = parquet.read_table(export_channel(capture, NAME, -1, tmp_path / "x.parquet", damaged=True))
    nulls = np.array(table["h"].is_null()).reshape(24, 4)
    assert nulls[LOST].all() and nulls.sum() == 32


def test_netcdf_and_xarray_have_nan(damaged: Path, tmp_path: Path) -> None:
    xarray = pytest.importorskip("xarray")
    with open_capture(damaged) as capture:
        assert np.isnan(capture.to_xarray()[NAME].values[LOST]).all()
        target = export_channel(capture, NAME, -1, tmp_path / "x.nc", damaged=True)
    with xarray.open_dataset(target) as data:
        values = data["rnn_l0_h"].values
        assert np.isnan(values[LOST]).all() and np.isfinite(values[:8]).all() and np.isfinite(values[16:]).all()


def test_a_gap_that_is_no_damage_is_written_without_asking_and_is_no_number(tmp_path: Path) -> None:
    """A run that ended early: what never came is empty too."""
    path = write(tmp_path / "a.inspect", numbers(24, 4, "int64"), skip=(8,))
    with open_capture(path) as capture:
        text = export_channel(capture, NAME, -1, tmp_path / "x.csv").read_text(encoding="utf-8")
        assert text.splitlines()[9] == "8,i,,,,"
        with pytest.raises(CaptureError, match="32 cells"):
            export_channel(capture, NAME, -1, tmp_path / "x.npy")


def test_a_page_whose_channel_cannot_be_told_may_be_of_any(tmp_path: Path) -> None:
    path = write(tmp_path / "a.inspect", numbers())
    change(path, "UPDATE pages SET channel = 77 WHERE id = 5")
    seal(path)
    with open_capture(path) as capture, pytest.raises(DamagedError, match="belongs to no channel"):
        export_channel(capture, NAME, -1, tmp_path / "x.csv")


def test_damage_elsewhere_holds_nothing_back(tmp_path: Path) -> None:
    path = write(tmp_path / "a.inspect", numbers())
    change(path, "UPDATE notes SET record = '{' WHERE id = 1")
    with open_capture(path) as capture:
        assert len(capture.verify()) == 1
        np.testing.assert_array_equal(np.load(export_channel(capture, NAME, -1, tmp_path / "x.npy")), numbers())


@pytest.mark.skipif(find_spec("netCDF4") is not None, reason="the newer NetCDF holds them")
def test_numbers_that_netcdf_cannot_hold_are_refused_in_a_sentence(tmp_path: Path) -> None:
    pytest.importorskip("xarray")
    values = numbers(24, 4, "uint64") + np.uint64(2**63)
    with open_capture(write(tmp_path / "a.inspect", values)) as capture, pytest.raises(CaptureError, match="NetCDF"):
        export_channel(capture, NAME, -1, tmp_path / "x.nc")
