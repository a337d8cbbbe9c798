"""Whatever is written is read back, live and finished, from a folder and from one file."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from inspector.capture import Capture, CaptureError, Writer, open_capture, pack
from inspector.records import DTYPES, Channel, Frame, Labels, Log, Page, Refusal, RunStart, RunStop, Scalar

START = RunStart(run="r", title="a run")


def channel(name: str = "rnn.l0:h", shape: tuple[int | None, ...] = (None, 4), dtype: str = "float32") -> Channel:
    dims = ("step", "unit", "feature")[: len(shape)]
    return Channel(name=name, kind="state", dims=dims, shape=shape, dtype=dtype, title="h")


def test_a_reader_follows_a_growing_run(tmp_path: Path) -> None:
    with Writer(tmp_path / "a.inspect", START) as writer:
        writer.write(channel())
        writer.write(Frame(index=0))
        writer.write(Page("rnn.l0:h", 0, (0, 0), np.ones((3, 4), np.float32)))
        writer.flush()
        with open_capture(tmp_path / "a.inspect") as capture:
            assert capture.status == "running"
            assert capture.extent("rnn.l0:h") == (3, 4)
            assert not capture.changed()
            writer.write(Page("rnn.l0:h", 0, (3, 0), np.full((2, 4), 2, np.float32)))
            writer.write(Labels("step", ("<s>", "b"), 0))
            writer.flush()
            assert capture.changed()
            assert capture.refresh() == {"rnn.l0:h"}
            np.testing.assert_array_equal(capture.array("rnn.l0:h")[:, 0], [1, 1, 1, 2, 2])
            assert capture.labels("step") == ("<s>", "b")
            writer.write(RunStop("done"))
            writer.flush()
            capture.refresh()
            assert capture.status == "done"


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    dtype=st.sampled_from(DTYPES),
    shape=st.lists(st.integers(1, 7), min_size=1, max_size=3),
    cuts=st.lists(st.integers(1, 3), max_size=3),
)
def test_arrays_of_every_dtype_split_anyhow(
    tmp_path_factory: pytest.TempPathFactory, dtype: str, shape: list[int], cuts: list[int]
) -> None:
    path = tmp_path_factory.mktemp("c") / "a.inspect"
    values = np.random.default_rng(0).integers(0, 2, shape).astype(dtype)
    with Writer(path, START) as writer:
        writer.write(channel(shape=tuple(shape), dtype=dtype))
        edges = sorted({0, shape[0], *(min(sum(cuts[:i]), shape[0]) for i in range(len(cuts)))})
        for low, high in pairwise(edges):
            writer.write(Page("rnn.l0:h", 0, (low, *[0] * (len(shape) - 1)), values[low:high]))
        writer.write(RunStop("done"))
    with open_capture(path) as capture:
        read = capture.array("rnn.l0:h")
        assert read.dtype == values.dtype and not read.flags.writeable
        np.testing.assert_array_equal(read, values)
        region = tuple(slice(n // 3, n) for n in shape)
        np.testing.assert_array_equal(capture.block("rnn.l0:h", region=region), values[region])
    with open_capture(pack(path)) as packed:
        np.testing.assert_array_equal(packed.array("rnn.l0:h"), values)


def test_gaps_are_nan_and_pages_may_come_in_any_order(tmp_path: Path) -> None:
    with Writer(tmp_path / "a.inspect", START) as writer:
        writer.write(channel())
        writer.write(Page("rnn.l0:h", 0, (6, 0), np.full((2, 4), 3, np.float32)))
        writer.write(Page("rnn.l0:h", 0, (0, 0), np.full((2, 4), 1, np.float32)))
    with open_capture(tmp_path / "a.inspect") as capture:
        column = capture.array("rnn.l0:h")[:, 0]
    np.testing.assert_array_equal(np.isnan(column), [False] * 2 + [True] * 4 + [False] * 2)


def test_declared_fill_stands_between_pages(tmp_path: Path) -> None:
    with Writer(tmp_path / "a.inspect", START) as writer:
        writer.write(Channel(name="a:x", kind="map", dims=("step", "source"), shape=(2, 3), title="x", fill=0.0))
        writer.write(Page("a:x", 0, (1, 0), np.ones((1, 3), np.float32)))
    with open_capture(tmp_path / "a.inspect") as capture:
        np.testing.assert_array_equal(capture.array("a:x"), [[0, 0, 0], [1, 1, 1]])


def test_frames_scalars_notes_and_the_newest_frame(tmp_path: Path) -> None:
    with Writer(tmp_path / "a.inspect", START) as writer:
        writer.write(channel())
        for index in range(3):
            writer.write(Frame(index=index, label=f"step {index}"))
            writer.write(Page("rnn.l0:h", index, (0, 0), np.full((1, 4), index, np.float32)))
        writer.write(Scalar("loss", 1, float("nan")))
        writer.write(Refusal("rnn.l0:gate/input", "The gates do not fit."))
        writer.write(Log("said <b>something</b>"))
    with open_capture(tmp_path / "a.inspect") as capture:
        assert [frame.label for frame in capture.frames] == ["step 0", "step 1", "step 2"]
        assert capture.array("rnn.l0:h")[0, 0] == 2
        assert capture.array("rnn.l0:h", frame=0)[0, 0] == 0
        assert np.isnan(capture.scalars[0].value)
        assert capture.refusals[0].reason == "The gates do not fit."
        assert capture.logs[0].text == "said <b>something</b>"
        assert capture.status == "unfinished"


@pytest.mark.parametrize("rows", [1, 10, 3000, 40_000])
def test_overview_holds_the_extremes_and_never_hides_nan(tmp_path: Path, rows: int) -> None:
    values = np.random.default_rng(1).normal(size=(rows, 3)).astype(np.float32)
    if rows > 100:
        values[77, 1] = np.nan
    with Writer(tmp_path / "a.inspect", START) as writer:
        writer.write(channel(shape=(None, 3)))
        for start in range(0, rows, 700):
            writer.write(Page("rnn.l0:h", 0, (start, 0), values[start : start + 700]))
    with open_capture(tmp_path / "a.inspect") as capture:
        low, high = capture.overview("rnn.l0:h", size=(200, 3))
        assert low.shape[0] <= 200
        for column in (0, 2):
            assert low[:, column].min() == values[:, column].min()
            assert high[:, column].max() == values[:, column].max()
        assert bool(np.isnan(low[:, 1]).any()) == bool(rows > 100)
        part, _ = capture.overview("rnn.l0:h", region=(slice(0, min(rows, 5)),), size=(100, 3))
        np.testing.assert_array_equal(part, values[: min(rows, 5)])


@pytest.mark.parametrize("dtype", ["uint8", "int64", "bool"])
def test_overview_of_a_long_channel_of_whole_numbers(tmp_path: Path, dtype: str) -> None:
    values = np.zeros((30_000, 2), dtype)
    values[12_345, 1] = 1
    with Writer(tmp_path / "a.inspect", START) as writer:
        writer.write(channel(shape=(30_000, 2), dtype=dtype))
        writer.write(Frame(index=0))
        writer.write(Page("rnn.l0:h", 0, (0, 0), values))
    with open_capture(tmp_path / "a.inspect") as capture:
        low, high = capture.overview("rnn.l0:h", size=(100, 2))
        assert not low.any() and not high[:, 0].any() and high[:, 1].sum() == 1


def test_overview_of_a_growing_run_equals_that_of_the_finished_one(tmp_path: Path) -> None:
    values = np.random.default_rng(2).normal(size=(9000, 2)).astype(np.float32)
    with Writer(tmp_path / "a.inspect", START) as writer:
        writer.write(channel(shape=(None, 2)))
        writer.flush()
        with open_capture(tmp_path / "a.inspect") as live:
            for start in range(0, 9000, 333):
                writer.write(Page("rnn.l0:h", 0, (start, 0), values[start : start + 333]))
                writer.flush()
                live.refresh()
                live.overview("rnn.l0:h", size=(100, 2))
            seen = live.overview("rnn.l0:h", size=(100, 2))
    with open_capture(tmp_path / "a.inspect") as finished:
        for ours, theirs in zip(seen, finished.overview("rnn.l0:h", size=(100, 2)), strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_one_page_is_not_copied(tmp_path: Path) -> None:
    with Writer(tmp_path / "a.inspect", START) as writer:
        writer.write(channel())
        writer.write(Page("rnn.l0:h", 0, (0, 0), np.ones((5, 4), np.float32)))
    with open_capture(tmp_path / "a.inspect") as capture:
        first, second = capture.array("rnn.l0:h"), capture.array("rnn.l0:h")
        assert np.shares_memory(first, second)


def test_a_second_writer_is_refused_while_the_first_writes(tmp_path: Path) -> None:
    with Writer(tmp_path / "a.inspect", START), pytest.raises(CaptureError, match="another run"):
        Writer(tmp_path / "a.inspect", START, overwrite=True)


def test_overwriting_needs_to_be_asked_for_and_spares_other_folders(tmp_path: Path) -> None:
    Writer(tmp_path / "a.inspect", START).close()
    with pytest.raises(CaptureError, match="already holds"):
        Writer(tmp_path / "a.inspect", START)
    Writer(tmp_path / "a.inspect", START, overwrite=True).close()
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "thesis.tex").write_text("precious")
    with pytest.raises(CaptureError, match="other files"):
        Writer(tmp_path / "own", START, overwrite=True)
    assert (tmp_path / "own" / "thesis.tex").exists()


def test_a_page_before_its_channel_is_an_error_that_surfaces(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "a.inspect", START)
    writer.write(Page("x:y", 0, (0,), np.zeros(3, np.float32)))
    with pytest.raises(CaptureError, match="before its channel"):
        writer.flush()
    with pytest.raises(CaptureError):
        writer.close()


def test_two_readers_at_once(tmp_path: Path) -> None:
    with Writer(tmp_path / "a.inspect", START) as writer:
        writer.write(channel())
        writer.write(Page("rnn.l0:h", 0, (0, 0), np.ones((5, 4), np.float32)))
        writer.flush()
        with Capture(tmp_path / "a.inspect") as one, Capture(tmp_path / "a.inspect") as two:
            np.testing.assert_array_equal(one.array("rnn.l0:h"), two.array("rnn.l0:h"))
