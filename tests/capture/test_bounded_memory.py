"""A reader takes memory for what the files hold, not for what an index claims."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from captures import NAME, START, change, channel, seal, write

from inspector.capture import CaptureError, Writer, assemble, open_capture
from inspector.capture.layout import PAGE_BYTES, TooLargeError
from inspector.capture.splitting import split
from inspector.records import Channel, Page, RunStop

READ_ALL = """
import resource, sys
import numpy as np
from inspector.capture import CaptureError, open_capture
with open_capture(sys.argv[1]) as capture:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    said = ""
    for name in capture.channels:
        for read in (capture.array, capture.known, capture.overview):
            try:
                read(name)
            except CaptureError as problem:
                said = str(problem)
        capture.block(name, region=(slice(0, 4),) * len(capture.channels[name].dims))
    capture.verify()
    print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024, said)
"""


def sparse(path: Path, channels: int, far: int, fill: float | None) -> Path:
    """Small pages at both ends of arrays that are said to be large."""
    with Writer(path, START) as writer:
        for number in range(channels):
            name = f"layer{number}:h"
            writer.write(channel(name, fill=fill))
            for start in (0, far):
                writer.write(Page(name, 0, (start, 0), np.ones((8, 4), np.float32)))
        writer.write(RunStop("done"))
    return path


@pytest.mark.parametrize("fill", [None, 0.0])
@pytest.mark.parametrize(("channels", "far"), [(1, 1 << 38), (1, 140_000_000), (25, 3_900_000)])
def test_what_an_index_claims_takes_no_memory(tmp_path: Path, fill: float | None, channels: int, far: int) -> None:
    """Terabytes, two gigabytes, and 25 times 62 megabytes."""
    path = sparse(tmp_path / "a.inspect", channels, far, fill)
    done = subprocess.run([sys.executable, "-c", READ_ALL, str(path)], capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    grown, _, said = done.stdout.partition(" ")
    assert int(grown) < 700 << 20
    assert ("read a region of it" in said) is (channels == 1)


def test_many_rows_that_claim_the_same_bytes_are_no_more_memory(tmp_path: Path) -> None:
    path = sparse(tmp_path / "a.inspect", 1, 30_000_000, None)
    change(
        path,
        "INSERT INTO pages WITH RECURSIVE n(x) AS (SELECT 3 UNION ALL SELECT x + 1 FROM n LIMIT 997) "
        "SELECT x, channel, frame, file, offset, nbytes, start, shape, crc, 0 FROM pages, n WHERE id = 1",
    )
    seal(path)
    with open_capture(path) as capture:
        assert capture._assembly("layer0:h", 0).held > 100_000 and not capture.verify()
        with pytest.raises(TooLargeError, match="458 MiB"):
            capture.array("layer0:h")


def test_axes_without_length_that_cross_claim_nothing(tmp_path: Path) -> None:
    with Writer(tmp_path / "a.inspect", START) as writer:
        writer.write(channel())
        writer.write(Page(NAME, 0, (1 << 39, 0), np.ones((0, 4), np.float32)))
        writer.write(Page(NAME, 0, (0, 1 << 39), np.ones((4, 0), np.float32)))
    with open_capture(tmp_path / "a.inspect") as capture:
        for read in (capture.array, capture.block, capture.known):
            with pytest.raises(CaptureError, match="GiB; read a region"):
                read(NAME)


def test_sparse_arrays_that_pages_account_for_are_read(tmp_path: Path) -> None:
    """A causal map of attention is twice what was written; others are read however sparse, while they are small."""
    size = 4000
    with Writer(tmp_path / "a.inspect", START) as writer:
        writer.write(Channel(name=NAME, kind="attention", dims=("query", "key"), shape=(size, size), fill=0.0))
        for first in range(0, size, 500):
            writer.write(Page(NAME, 0, (first, 0), np.ones((500, first + 500), np.float32)))
        writer.write(channel("a:h", fill=0.0))
        writer.write(Page("a:h", 0, (4_000_000, 0), np.ones((1, 4), np.float32)))
        writer.write(RunStop("done"))
    with open_capture(tmp_path / "a.inspect") as capture:
        array = capture.array(NAME)
        assert array.sum() == sum(500 * (first + 500) for first in range(0, size, 500)) and not np.isnan(array).any()
        assert capture.array("a:h").shape == (4_000_001, 4) and capture.array("a:h")[-1, 0] == 1


def test_arrays_that_are_not_kept_are_read_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assemble.Spare.__init__, "__defaults__", (0,))
    with open_capture(sparse(tmp_path / "a.inspect", 2, 10_000, 0.5)) as capture:
        low, high = capture.overview("layer1:h", size=(10, 4))
        for _ in range(2):
            array = capture.array("layer1:h")
            assert capture._assembly("layer1:h", 0)._buffer is None and not capture._pyramids
            assert (array[8:10_000] == 0.5).all() and (array[-8:] == 1).all()
            np.testing.assert_array_equal(capture.overview("layer1:h", size=(10, 4)), (low, high))
        assert low.min() == 0.5 and high.max() == 1


def test_four_times_the_pages_are_free_and_what_is_beyond_them_is_shared() -> None:
    spare = assemble.Spare(1000)
    first, second = (assemble.Assembly(channel(name), spare) for name in ("a:h", "b:h"))
    first.held = second.held = 100
    assert first.keeps("levels", 1400), "1000 beyond its pages"
    assert not first.keeps("levels", 1401) and first.keeps("levels", 1000)
    assert second.keeps("levels", 800) and not second.keeps("levels", 801)
    assert second.keeps("levels", 400) and first.keeps("levels", 1400), "nothing beyond"
    assert not second.keeps("levels", 401)


@pytest.mark.parametrize(
    "shape",
    [
        (3, 700, 2000),
        (1, 1, 5_000_000),
        (4_000_000, 1),
        (2_500_000,),
        (),
        (0, 3),
        (PAGE_BYTES // 8,),
        (1, 2_100_000, 1),
    ],
)
def test_pages_are_bounded_and_hold_all_numbers(tmp_path: Path, shape: tuple[int, ...]) -> None:
    values = np.random.default_rng(0).normal(size=shape)
    dims = ("head", "query", "key")[: len(shape)]
    pages = list(split(Page(NAME, 0, (0,) * len(shape), values)))
    assert all(page.array.nbytes <= PAGE_BYTES for page in pages)
    assert len(pages) <= max(1, 3 * values.nbytes // PAGE_BYTES)
    with Writer(tmp_path / "a.inspect", START) as writer:
        writer.write(Channel(name=NAME, kind="map", dims=dims, shape=shape, dtype="float64"))
        writer.write(Page(NAME, 0, (0,) * len(shape), values))
        writer.write(RunStop("done"))
    with open_capture(tmp_path / "a.inspect") as capture:
        np.testing.assert_array_equal(capture.array(NAME), values)
        assert not capture.verify() and capture.known(NAME).all()


def test_a_region_of_a_large_array_takes_the_memory_of_a_few_pages(tmp_path: Path) -> None:
    path = write(tmp_path / "a.inspect", np.ones((400_000, 64), np.float32), rows=400_000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    with open_capture(path) as capture:
        for start in range(0, 400_000, 100_000):
            assert (capture.block(NAME, region=(slice(start, start + 10),)) == 1).all()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before < 90 << 20


def test_arrays_that_are_released_are_read_again_and_what_was_given_out_stays(tmp_path: Path) -> None:
    rows = np.arange(4000 * 8, dtype=np.float32).reshape(4000, 8)
    with Writer(tmp_path / "a.inspect", START) as writer:
        for name, width in (("p:large", 8), ("p:small", 1)):
            writer.write(
                Channel(name=name, kind="series", dims=("iteration", "parameter"), shape=(None, None), title=name)
            )
            for first in range(0, 4000, 1000):
                writer.write(Page(name, 0, (first, 0), rows[first : first + 1000, :width]))
        writer.write(RunStop("done"))
    with open_capture(tmp_path / "a.inspect") as capture:
        given, small = capture.array("p:large"), capture.array("p:small")
        before = capture.revision("p:large")
        capture.release(small.nbytes)
        assert not np.shares_memory(capture.array("p:large"), given) and np.shares_memory(
            capture.array("p:small"), small
        )
        np.testing.assert_array_equal(given, rows)
        np.testing.assert_array_equal(capture.array("p:large"), rows)
        np.testing.assert_array_equal(capture.block("p:large", -1, (slice(1500, 2500),)), rows[1500:2500])
        assert capture.revision("p:large") == before
