"""An array that grows while it is read: what is read is what was written, and no look has thousands of rows to make up
for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from inspector.capture import Capture, Writer, open_capture
from inspector.capture.layout import SUFFIX
from inspector.capture.room import AHEAD_BYTES, PLAIN_BYTES, rows_ahead, unwritten
from inspector.records import Channel, Page, RunStart

NAME, UNITS = "a:h", 3


@pytest.fixture
def live(tmp_path: Path) -> Iterator[tuple[Writer, Capture]]:
    with Writer(tmp_path / f"a{SUFFIX}", RunStart(run="r", title="t")) as writer:
        writer.write(Channel(name=NAME, kind="state", dims=("step", "unit"), shape=(None, UNITS)))
        writer.flush()
        with open_capture(tmp_path / f"a{SUFFIX}") as capture:
            yield writer, capture


def test_levels_of_an_array_that_grows_with_gaps_are_those_of_all_of_it(live: tuple[Writer, Capture]) -> None:
    writer, capture = live
    drawn = np.random.default_rng(0)
    expected = np.full((9_000, UNITS), np.nan, np.float32)
    for first, rows in (
        (0, 2_500),
        (2_600, 30),
        (2_500, 100),
        (2_700, 1_002),
        (8_000, 900),
        (4_000, 200),
        (8_900, 100),
    ):
        values = drawn.normal(size=(rows, UNITS)).astype(np.float32)
        expected[first : first + rows] = values
        writer.write(Page(NAME, 0, (first, 0), values))
        writer.flush()
        capture.refresh()
        stop = capture.extent(NAME, 0)[0]
        np.testing.assert_array_equal(np.asarray(capture.array(NAME, 0)), expected[:stop])
        low, high = capture.overview(NAME, 0, size=(-(-stop // 4), UNITS))
        cells = [expected[at : min(at + 4, stop)] for at in range(0, stop, 4)]
        np.testing.assert_array_equal(low, [np.min(cell, axis=0) for cell in cells])
        np.testing.assert_array_equal(high, [np.max(cell, axis=0) for cell in cells])


def test_looks_at_what_is_new_keep_the_levels_up_to_date(
    live: tuple[Writer, Capture], monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, capture = live
    values = np.random.default_rng(1).normal(size=(9_000, UNITS)).astype(np.float32)
    writer.write(Page(NAME, 0, (0, 0), values[:3_000]))
    writer.flush()
    capture.refresh()
    capture.overview(NAME, 0, size=(50, UNITS))
    for first in range(3_000, 9_000, 50):
        writer.write(Page(NAME, 0, (first, 0), values[first : first + 50]))
        writer.flush()
        capture.refresh()
        capture.overview(NAME, 0, region=(slice(first, first + 50),), size=(50, UNITS))
    read: list[int] = []
    rows = Capture._rows

    def counted(self: Capture, name: str, data: object, frame: int, first: int, stop: int) -> object:
        read.append(stop - first)
        return rows(self, name, data, frame, first, stop)  # type: ignore[arg-type]

    monkeypatch.setattr(Capture, "_rows", counted)
    low, high = capture.overview(NAME, 0, size=(50, UNITS))
    assert sum(read) <= 60
    assert (low.min(), high.max()) == (values.min(), values.max())


def test_room_is_many_times_what_is_needed_only_while_that_is_little() -> None:
    assert rows_ahead(100, 50, 2_048) == 800
    assert rows_ahead(51_000, 50_000, 2_048) == 100_000
    assert rows_ahead(300_000, 50_000, 2_048) == 300_000
    assert rows_ahead(1, 0, AHEAD_BYTES) == 1


@pytest.mark.parametrize("rows", [10, PLAIN_BYTES])
def test_room_can_be_written_whatever_its_size(rows: int) -> None:
    array = unwritten((rows, 2), np.dtype(np.float32))
    array[-1] = (1.0, 2.0)
    assert (array.shape, array.dtype, array[-1].tolist()) == ((rows, 2), np.float32, [1.0, 2.0])
