"""A power cut at any moment, with any part of what was not yet synchronised on the disk, loses nothing acknowledged and
shows nothing wrong."""

from __future__ import annotations

import os
import random
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from power_cuts import Operation, compiler, left, recorded

from inspector.capture import CaptureError, open_capture

WRITE = """
import sys
from pathlib import Path
import numpy as np
from inspector.capture import Writer, layout
from inspector.capture import appending
from inspector.records import Channel, Page, RunStart, RunStop
appending.ROLL_BYTES = 6000  # several page files
folder = Path(sys.argv[1])
def run(name, offset, overwrite):
    with Writer(folder / "a.inspect", RunStart(run=name, title=name), overwrite=overwrite) as writer:
        writer.write(Channel(name="a:h", kind="state", dims=("step", "unit"), shape=(None, 16)))
        for step in range(0, 40, 8):
            writer.write(Page("a:h", 0, (step, 0), np.full((8, 16), offset + step, np.float32)))
            writer.flush()
            (folder / "acknowledged").write_text(f"{name} {step + 8}")
        writer.write(RunStop("done"))
    (folder / "acknowledged").write_text(f"{name} done")
run("first", 0, False)
run("second", 1000, True)
"""
ASIDE = WRITE.replace("overwrite=overwrite", "overwrite=overwrite, whole=overwrite").replace("6000", "1200")
"""The same where the second run is written beside the first and takes its name at the end, as a window has it; and with
several page files in each run."""
OVERLAP = """
import sys
from pathlib import Path
import numpy as np
from inspector.capture import Writer, appending, writer as writing
from inspector.records import Channel, Page, RunStart, RunStop
appending.ROLL_BYTES, writing.COMMIT_BYTES = 6000, 1  # several page files; each page is a commit of its own
folder = Path(sys.argv[1])
with Writer(folder / "a.inspect", RunStart(run="first", title="first")) as writer:
    writer.write(Channel(name="a:h", kind="state", dims=("step", "unit"), shape=(None, 16)))
    for step in range(0, 160, 8):
        writer.write(Page("a:h", 0, (step, 0), np.full((8, 16), step, np.float32)))
        if step == 80:
            writer.flush()
            (folder / "acknowledged").write_text("first 88")
    writer.write(RunStop("done"))
(folder / "acknowledged").write_text("first done")
"""
AIM = 300
"""Power cuts that every change is tried with (docs/faults-covered.md)."""
pytestmark = pytest.mark.skipif(compiler() is None, reason="needs Linux and a C compiler")


@pytest.fixture(scope="module")
def operations(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Operation]]:
    folder = tmp_path_factory.mktemp("written")
    return folder, recorded(WRITE, folder, tmp_path_factory.mktemp("recorder"))


def acknowledged(operations: list[Operation]) -> tuple[str, str]:
    """(run, steps or "done") of the last acknowledgement before a cut; ("", "0") before any."""
    said = [one.data.decode() for one in operations if one.kind == "w" and one.path.endswith("/acknowledged")]
    run, _, steps = (said or [" 0"])[-1].partition(" ")
    return run, steps


@pytest.fixture(scope="module")
def aside(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Operation]]:
    folder = tmp_path_factory.mktemp("written")
    return folder, recorded(ASIDE, folder, tmp_path_factory.mktemp("recorder"))


def put(files: dict[str, bytes], source: Path, folder: Path) -> Path:
    for path, content in files.items():
        to = folder / Path(path).relative_to(source)
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_bytes(content)
        os.utime(to, (0, 0))  # an empty index that was made a moment ago would be waited for
    return folder / "a.inspect"


def check(path: Path, run: str, steps: str, total: int = 40) -> str:
    """What is there is right and whole, and what was acknowledged is there; returns the run that was found."""
    try:
        capture = open_capture(path)
    except CaptureError as problem:
        assert not run and "\n" not in str(problem), f"lost {run} {steps}: {problem}"
        return ""
    with capture:
        found = capture.start.run
        assert run in ("", found) or (run, found) == ("first", "second"), (run, found)
        if "a:h" not in capture.channels:
            assert run in ("", "first") and (run, found) != ("first", "first")
            return found
        values = capture.array("a:h")
        offset = 0 if found == "first" else 1000
        expected = offset + np.repeat(np.arange(0, total, 8), 8)[: len(values), None].astype(np.float32)
        known = np.isfinite(values)
        assert not capture.verify() and known.all()  # no row is there without its page
        np.testing.assert_array_equal(values[known], np.broadcast_to(expected, values.shape)[known])
        if run == found:
            least = total if steps == "done" else int(steps)
            assert len(values) >= least and known[:least].all(), f"{run}: {steps} acknowledged, {len(values)} there"
            assert steps != "done" or capture.status == "done"
        return found


def test_all_was_seen(operations: tuple[Path, list[Operation]]) -> None:
    """The recorder is right: what it saw, replayed whole, is what the program left."""
    source, seen = operations
    files = left(seen, None)
    on_disk = {str(path): path.read_bytes() for path in source.rglob("*") if path.is_file()}
    assert files == on_disk
    assert {one.kind for one in seen} == set("wtcusd") and sum(one.kind == "s" for one in seen) >= 20


def test_so_many_cuts_are_tried_as_are_aimed_at(operations: tuple[Path, list[Operation]]) -> None:
    """By the next test alone, and not of the same few files over and over: of every tenth moment all are looked at."""
    _, seen = operations
    found = {
        tuple(sorted((path, hash(content)) for path, content in left(seen[:end], choice).items()))
        for end in range(0, len(seen) + 1, 10)
        for choice in losses(end)
    }
    assert (len(seen) + 1) * len(losses(0)) >= AIM and len(found) >= AIM / 10, (len(seen), len(found))


def losses(end: int) -> tuple[random.Random | None, ...]:
    """What decides what a cut after so many operations leaves: all of them, then twice without some that were not
    synchronised."""
    return (None, random.Random(end), random.Random(-end - 1))


@pytest.mark.parametrize("part", range(2))
def test_every_prefix_of_the_writes(part: int, operations: tuple[Path, list[Operation]], tmp_path: Path) -> None:
    """All of it, then any part of what was not synchronised, twice."""
    source, seen = operations
    runs: set[str] = set()
    for end in range(part, len(seen) + 1, 2):
        before = seen[:end]
        for trial, choice in enumerate(losses(end)):
            folder = tmp_path / f"{end}-{trial}"
            path = put(left(before, choice), source, folder)
            if path.is_dir() and any(path.iterdir()):
                runs.add(check(path, *acknowledged(before)))
            else:
                assert not acknowledged(before)[0]
    assert {"first", "second"} <= runs


def test_commits_that_overlap(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> None:
    """While the pages of one commit are synchronised, those of the next are appended and the rows of the one before are
    committed: at no moment is a row on the disk before its page."""
    source = tmp_path_factory.mktemp("written")
    seen = recorded(OVERLAP, source, tmp_path_factory.mktemp("recorder"))
    pages = [n for n, one in enumerate(seen) if one.kind == "w" and "pages-" in one.path]
    between = [[one.kind for one in seen[a + 1 : b]] for a, b in pairwise(pages)]
    assert len(pages) == 20 and any("s" not in kinds for kinds in between), "nothing overlapped"
    lengths = set()
    for end in range(0, len(seen) + 1, 3):
        before = seen[:end]
        for trial, choice in enumerate((random.Random(end), random.Random(-end - 1))):
            path = put(left(before, choice), source, tmp_path / f"{end}-{trial}")
            if path.is_dir() and any(path.iterdir()):
                lengths.add(check(path, *acknowledged(before), total=160))
    assert "first" in lengths


def test_names_are_there_where_only_their_folder_keeps_them(
    aside: tuple[Path, list[Operation]], tmp_path: Path
) -> None:
    """POSIX promises the name of a new file or folder only once the folder that it is in was synchronised."""
    source, seen = aside
    for end in acknowledgements(seen):
        run, steps = acknowledged(seen[:end])
        for trial in range(3 if run == "first" else 0):
            path = put(left(seen[:end], random.Random(end + trial), strict=True), source, tmp_path / f"{end}-{trial}")
            assert check(path, run, steps) == run


def acknowledgements(seen: list[Operation]) -> list[int]:
    """The cuts directly after something was acknowledged."""
    return [n + 1 for n, one in enumerate(seen) if one.kind == "w" and one.path.endswith("/acknowledged")]


def test_a_run_that_takes_the_place_of_another(aside: tuple[Path, list[Operation]], tmp_path: Path) -> None:
    """Until it has its name the one before is whole there, and what it acknowledged is beside it; then it is."""
    source, seen = aside
    (exchange,) = [n for n, one in enumerate(seen) if one.kind == "x" and "/a." in one.path]
    said = acknowledgements(seen)
    ends = [*(end for end in said if end <= exchange), *range(exchange, len(seen) + 1)]
    found = set[tuple[str, str]]()
    for end in ends:
        before = seen[:end]
        run, steps = acknowledged(before)
        for trial, choice in enumerate((None, random.Random(end), random.Random(-end - 1))):
            path = put(left(before, choice, strict=True), source, tmp_path / f"{end}-{trial}")
            if run == "second" and steps != "done":
                there = check(path, "first", "done")
                if there == "first":
                    assert check(path.with_name("a.new.inspect"), run, steps) == "second"
                found.add((there, steps))
            else:
                found.add((check(path, run, steps), steps))
    assert {("first", "40"), ("second", "40"), ("second", "done")} <= found
