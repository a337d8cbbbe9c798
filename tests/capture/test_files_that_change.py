"""A capture that another program cuts, overwrites or replaces while it is open: damage is told, nothing crashes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from captures import NAME, START, channel, flip, numbers, place_of, write

from inspector.capture import Capture, Writer, open_capture, pack
from inspector.capture.layout import INDEX, PAGE_BYTES
from inspector.records import Page

STEPS, UNITS = 60_000, 64
CUT_WHILE_OPEN = """
import os, sys
import numpy as np
from inspector.capture import open_capture
path, file, keep = sys.argv[1], sys.argv[2], int(sys.argv[3])
capture = open_capture(path)
first = capture.array("rnn.l0:h")
part = capture.block("rnn.l0:h", region=(slice(0, 9),))
os.truncate(file, keep)
told = float(first.sum()), float(part.sum())
for region in ((), (slice(50_000, 50_010),), (slice(None), slice(3, 4))):
    capture.block("rnn.l0:h", region=region)
capture.overview("rnn.l0:h", size=(400, 64))
capture.look()
print(np.isnan(capture.array("rnn.l0:h")).sum(), len(capture.damage), capture.damaged[-1])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="an open file cannot be cut there")
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("rows", [500, STEPS])
@pytest.mark.parametrize("keep", [0, 9_000_000])
def test_a_page_file_that_is_cut_while_it_is_open_ends_no_process(
    tmp_path: Path, packed: bool, rows: int, keep: int
) -> None:
    path = write(tmp_path / "a.inspect", np.ones((STEPS, UNITS), np.float32), rows=rows)
    file = path / "pages-0000.bin"
    if packed:
        path = file = pack(path)
    done = subprocess.run(
        [sys.executable, "-c", CUT_WHILE_OPEN, str(path), str(file), str(keep)],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, (done.returncode, done.stderr)
    lost, told, *sentence = done.stdout.split(maxsplit=2)
    assert int(lost) and int(told) and "lies beyond the end" in sentence[0]
    if not packed:
        rows = min(rows, PAGE_BYTES // (UNITS * 4))
        assert int(lost) == (STEPS - keep // (rows * UNITS * 4) * rows) * UNITS


def shown(capture: Capture) -> np.ndarray:
    return capture.array(NAME)[:, 0]


def test_a_file_that_was_replaced_under_its_name_is_checked_again(tmp_path: Path) -> None:
    """As rsync does: another file is written, then renamed over the first. Old and new are never mixed."""
    old, new = numbers(), numbers() * 2
    path, other = write(tmp_path / "a.inspect", old), write(tmp_path / "b.inspect", new)
    with open_capture(path) as capture:
        np.testing.assert_array_equal(shown(capture), old[:, 0])
        revision = capture.revision(NAME)
        shutil.copy(other / "pages-0000.bin", tmp_path / "new")
        (tmp_path / "new").replace(path / "pages-0000.bin")
        np.testing.assert_array_equal(capture.block(NAME)[:, 0], old[:, 0])  # what is open stays as it was
        capture.look()
        assert capture.revision(NAME) > revision
        assert np.isnan(shown(capture)).all() and len(capture.verify()) == 5
        shutil.copy(tmp_path / "b.inspect" / "pages-0000.bin", tmp_path / "new")
        write(tmp_path / "c.inspect", old)
        (tmp_path / "c.inspect" / "pages-0000.bin").replace(path / "pages-0000.bin")
        capture.look()
        np.testing.assert_array_equal(shown(capture), old[:, 0])  # the right one was put back
        assert not capture.damage and not capture.holes(NAME)


def test_a_file_that_is_overwritten_in_place_is_checked_again(tmp_path: Path) -> None:
    path = write(tmp_path / "a.inspect", numbers())
    with open_capture(path) as capture:
        shown(capture)
        flip(path, 2)
        os.utime(path / "pages-0000.bin")
        capture.look()
        capture.look()  # a new time at the same size is believed the second time
        assert np.isnan(shown(capture)[8:16]).all() and len(capture.damage) == 1
        flip(path, 2)
        os.utime(path / "pages-0000.bin")
        capture.look()
        capture.look()
        np.testing.assert_array_equal(shown(capture), numbers()[:, 0])
        assert not capture.damage


def test_a_growing_file_is_not_checked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from inspector.capture.pages import PageFiles

    checked: list[int] = []
    real = PageFiles.checking
    monkeypatch.setattr(
        PageFiles, "checking", lambda self, row, room=None: (checked.append(row.id), real(self, row, room))[1]
    )
    with Writer(tmp_path / "a.inspect", START) as writer:
        writer.write(channel())
        with_pages = 6
        writer.flush()
        with open_capture(tmp_path / "a.inspect") as live:
            for start in range(with_pages):
                writer.write(Page(NAME, 0, (8 * start, 0), np.ones((8, 4), np.float32)))
                writer.flush()
                live.refresh()
                live.look()
                live.array(NAME)
            assert checked == [1, 2, 3, 4, 5, 6] and not live.damage


def test_a_page_that_was_cut_and_comes_back_is_whole_again(tmp_path: Path) -> None:
    path = write(tmp_path / "a.inspect", numbers())
    file, offset, _ = place_of(path, 4)
    data = file.read_bytes()
    os.truncate(file, offset)
    with open_capture(path) as capture:
        assert np.isnan(shown(capture)[24:]).all() and len(capture.damage) == 2
        with file.open("ab") as opened:
            opened.write(data[offset:])
        capture.look()
        np.testing.assert_array_equal(shown(capture), numbers()[:, 0])
        assert not capture.damage


def test_an_index_that_was_replaced_is_told(tmp_path: Path) -> None:
    path, other = write(tmp_path / "a.inspect", numbers()), write(tmp_path / "b.inspect", numbers())
    with open_capture(path) as capture:
        capture.look()
        assert not capture.damage
        (other / INDEX).replace(path / INDEX)
        capture.look()
        assert "was replaced since it was opened" in capture.damaged[0] and len(capture.damage) == 1
        np.testing.assert_array_equal(shown(capture), numbers()[:, 0])


def test_a_folder_that_was_removed_is_told_in_one_line_and_may_come_back(tmp_path: Path) -> None:
    path, other = write(tmp_path / "a.inspect", numbers()), write(tmp_path / "c.inspect", numbers())
    with open_capture(path) as capture:
        shown(capture)
        path.rename(tmp_path / "b.inspect")
        for _ in range(2):
            capture.look()
            lines = [line for line in capture.damaged if "was removed, moved or renamed since it was opened" in line]
            assert len(lines) == 1
        (tmp_path / "b.inspect").rename(path)
        capture.look()
        np.testing.assert_array_equal(shown(capture), numbers()[:, 0])
        assert not capture.damaged
        path.rename(tmp_path / "b.inspect")
        capture.look()
        other.rename(path)
        capture.look()
        assert "was replaced since it was opened" in capture.damaged[0]


def test_an_index_that_is_overwritten_while_it_is_open_is_one_line(tmp_path: Path) -> None:
    path = write(tmp_path / "a.inspect", numbers())
    with open_capture(path) as capture:
        np.testing.assert_array_equal(shown(capture), numbers()[:, 0])
        with (path / INDEX).open("r+b") as file:
            file.write(b"another program's" * 500)
        asked = [capture.refresh() for _ in range(5) if capture.changed()]
        capture.look()
        assert len(asked) == 1, "once, and not at every tick"
        assert len(capture.damaged) == 1 and "cannot be read" in capture.damaged[0]
        np.testing.assert_array_equal(shown(capture), numbers()[:, 0])


def test_the_memory_of_what_was_read_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from inspector.capture import pages

    monkeypatch.setattr(pages, "KEPT_BYTES", 1000)
    path = write(tmp_path / "a.inspect", numbers(400), rows=8)
    with open_capture(path) as capture:
        for start in range(0, 400, 8):
            np.testing.assert_array_equal(
                capture.block(NAME, region=(slice(start, start + 3),)), numbers(400)[start : start + 3]
            )
            assert capture._files._recent.held <= 1000
        assert capture._files._recent.held > 500
