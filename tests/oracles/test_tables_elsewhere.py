"""Exported numbers as other programs read them: pandas and netCDF4."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import inspector
from inspector.capture import Capture, export_channel

NAME = "gru.l0:gate/update"


@pytest.fixture
def capture(tmp_path: Path) -> Any:
    torch.manual_seed(0)
    with inspector.run(nn.GRU(3, 5, batch_first=True), torch.randn(7, 3), only=("states", "gates")) as found:
        yield found


@pytest.mark.parametrize("library", ["pandas"], indirect=True)
def test_pandas_reads_a_csv(library: Any, capture: Capture, tmp_path: Path) -> None:
    table = library.read_csv(export_channel(capture, NAME, -1, tmp_path / "x.csv"), comment="#")
    rows = table.iloc[:, -5:].to_numpy().astype(np.float32)  # a row a step, a column a unit
    np.testing.assert_array_equal(rows, capture.array(NAME))


@pytest.mark.parametrize("library", ["pandas"], indirect=True)
def test_pandas_reads_a_parquet_file(library: Any, capture: Capture, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    table = library.read_parquet(export_channel(capture, NAME, -1, tmp_path / "x.parquet"))
    values = table[table.columns[-1]].to_numpy().reshape(7, 5)
    np.testing.assert_array_equal(values.astype(np.float32), capture.array(NAME))
    assert list(table["step"]) == [step for step in range(7) for _ in range(5)]
    assert list(table["unit"]) == list(range(5)) * 7


@pytest.mark.parametrize("library", ["netCDF4"], indirect=True)
def test_netcdf_reads_the_numbers(library: Any, capture: Capture, tmp_path: Path) -> None:
    pytest.importorskip("xarray")
    target = export_channel(capture, NAME, -1, tmp_path / "x.nc")
    with library.Dataset(target) as dataset:
        (variable,) = [one for one in dataset.variables.values() if one.ndim == 2]
        assert variable.dimensions == ("step", "unit")
        np.testing.assert_array_equal(np.asarray(variable[:]), capture.array(NAME))
