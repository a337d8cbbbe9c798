"""Logs with holes, with rows of zeros, with two columns of one name, and with many names."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from log_files import BEGIN, event, record, scalar

from inspector.capture import open_log


@pytest.mark.skipif(not hasattr(os, "SEEK_DATA"), reason="this system does not tell where holes are")
def test_a_hole_of_terabytes_behind_the_records_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "events.out.tfevents.1"
    path.write_bytes(BEGIN + record(event(1, scalar("loss", 2.0))))
    os.truncate(path, 1 << 42)
    with path.open("ab") as file:
        file.write(record(event(2, scalar("loss", 3.0))))
    with open_log(path) as log:
        np.testing.assert_array_equal(log.array("log:loss"), [2, 3])
        assert any("the length of a record is damaged" in sentence for sentence in log.verify())


def test_columns_of_one_name_are_curves_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("step,loss,loss\n1,2,30\n2,3,40\n")
    with open_log(tmp_path / "log.csv") as log:
        np.testing.assert_array_equal(log.array("log:loss"), [2, 3])
        np.testing.assert_array_equal(log.array("log:loss (column 3)"), [30, 40])


def test_a_row_of_zeros_is_told(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_bytes(b"step,loss\n1,2\n2,\x00\x00\x00\n3,4\n")
    with open_log(tmp_path / "log.csv") as log:
        np.testing.assert_array_equal(log.array("log:loss"), [2, 4])
        assert any("a row has bytes of zero, as a crash leaves them" in sentence for sentence in log.verify())


def test_the_channels_of_a_log_are_described_once(tmp_path: Path) -> None:
    """Each look at one curve made a description of all, so that a list of 20,000 took minutes."""
    (tmp_path / "log.csv").write_text("step,a,b\n1,2,3\n")
    with open_log(tmp_path / "log.csv") as log:
        before = log.channels
        assert log.channels is before
        with (tmp_path / "log.csv").open("a") as file:
            file.write("2,3,4\n")
        log.refresh()
        assert log.channels is not before and set(log.channels) == set(before)
