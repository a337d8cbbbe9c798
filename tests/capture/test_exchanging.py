"""A run that replaces a capture is written beside it, and takes its place as a whole once it has ended."""

from __future__ import annotations

import hashlib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from captures import channel, numbers, write

from inspector.capture import CaptureError, Writer, exchanging, open_capture, writer
from inspector.capture.exchanging import can_exchange, free_name_beside, take_place
from inspector.capture.layout import INDEX
from inspector.records import Log, Page, RunStart, RunStop

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="folders exchange their names on Linux")
NEW = RunStart(run="new", title="the new one")
REPLACES = """
import sys, numpy as np
from inspector.capture import Writer
from inspector.records import Channel, Page, RunStart, RunStop
for number in range(1, 1000):
    with Writer(sys.argv[1], RunStart(run=str(number), title="t"), overwrite=True, whole=True) as writer:
        writer.write(Channel(name="a:h", kind="state", dims=("step", "unit"), shape=(None, 4)))
        for step in range(0, 40, 8):
            writer.write(Page("a:h", 0, (step, 0), np.full((8, 4), number, np.float32)))
            writer.flush()
        writer.write(RunStop("done"))
    print(number, flush=True)
"""


def digests(folder: Path) -> dict[str, str]:
    return {one.name: hashlib.sha256(one.read_bytes()).hexdigest() for one in sorted(folder.iterdir()) if one.is_file()}


def begun(path: Path, steps: int = 8) -> Writer:
    made = Writer(path, NEW, overwrite=True, whole=True)
    made.write(channel())
    made.write(Page("rnn.l0:h", 0, (0, 0), np.full((steps, 4), 7, np.float32)))
    made.flush()
    return made


def test_the_old_one_is_whole_until_the_new_one_has_ended(tmp_path: Path) -> None:
    path = write(tmp_path / "a.inspect", numbers())
    path.chmod(0o750)
    (path / "mine.txt").write_text("a note")
    before = digests(path)
    made = begun(path)
    assert digests(path) == before and made.beside == tmp_path / "a.new.inspect" and made.begun
    with open_capture(made.beside) as beside:
        assert beside.start.run == "new" and beside.status == "running" and beside.extent("rnn.l0:h")[0] == 8
    made.write(RunStop("done"))
    made.close()
    assert [one.name for one in tmp_path.iterdir()] == ["a.inspect"]
    with open_capture(path) as capture:
        assert capture.start.run == "new" and capture.status == "done" and not capture.verify()
        assert (np.asarray(capture.array("rnn.l0:h")) == 7).all()
    assert (path / "mine.txt").read_text() == "a note" and path.stat().st_mode & 0o777 == 0o750


@pytest.mark.parametrize("records", [(), (Log("nothing"), RunStop("failed"))])
def test_a_run_that_captures_nothing_leaves_no_trace(tmp_path: Path, records: tuple[object, ...]) -> None:
    path = write(tmp_path / "a.inspect", numbers())
    before = digests(path)
    with Writer(path, NEW, overwrite=True, whole=True) as made:
        for record in records:
            made.write(record)
    assert not made.begun and digests(path) == before and [one.name for one in tmp_path.iterdir()] == ["a.inspect"]


def test_a_reader_that_has_the_old_one_open_notices(tmp_path: Path) -> None:
    path = write(tmp_path / "a.inspect", numbers())
    with open_capture(path) as reader:
        reader.look()
        made = begun(path)
        assert not reader.changed() and not reader.was_replaced
        made.close()
        assert reader.was_replaced
        reader.look()
        assert "was replaced since it was opened" in reader.damaged[0]
        shown = np.ma.filled(reader.array("rnn.l0:h"), np.nan)
        assert np.isnan(shown).all() or (shown == numbers()).all(), "never a number of the other run"


@pytest.mark.parametrize("trial", range(6))
def test_a_kill_at_any_moment_leaves_one_or_the_other_whole(tmp_path: Path, trial: int) -> None:
    path = write(tmp_path / "a.inspect", np.zeros((40, 4), np.float32), name="a:h", run="0")
    process = subprocess.Popen([sys.executable, "-c", REPLACES, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    acknowledged = int(process.stdout.readline())
    time.sleep(random.Random(trial).uniform(0.0, 0.3))
    process.send_signal(signal.SIGKILL)
    rest, _ = process.communicate()
    acknowledged = max([acknowledged, *(int(word) for word in rest.split())])
    with open_capture(path) as capture:
        assert acknowledged <= int(capture.start.run) <= acknowledged + 1 and capture.status == "done"
        array = np.asarray(capture.array("a:h"))
        assert array.shape == (40, 4) and (array == int(capture.start.run)).all() and not capture.verify()
    for other in tmp_path.glob("a.new*"):  # what was under way, or what it has replaced, as far as it is not removed
        if not (other / INDEX).exists() or not (other / INDEX).stat().st_size:  # killed as it was begun
            continue
        with open_capture(other) as capture:
            assert not capture.damaged and capture.status in ("unfinished", "done")


def test_where_another_run_writes_there_by_now_both_are_kept(tmp_path: Path) -> None:
    path = write(tmp_path / "a.inspect", numbers())
    made = begun(path)
    with Writer(path, RunStart(run="other", title="t"), overwrite=True) as other:
        other.write(channel())
        other.write(Page("rnn.l0:h", 0, (0, 0), numbers(8)))
        other.flush()
        with pytest.raises(CaptureError, match=r"is being written by another run by now; the new run is in .*a\.new\."):
            made.close()
    for place, run in ((path, "other"), (tmp_path / "a.new.inspect", "new")):
        with open_capture(place) as capture:
            assert capture.start.run == run and not capture.verify()


def test_a_folder_that_cannot_be_exchanged_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = write(tmp_path / "a.inspect", numbers()), write(tmp_path / "b.inspect", numbers(), run="new")

    def refused(*_: Path) -> None:
        raise OSError(22, os.strerror(22))

    monkeypatch.setattr(exchanging, "_exchange", refused)
    before = digests(old)
    with pytest.raises(CaptureError, match=r"could not be replaced \(.*\); the new run is in .*b\.inspect, and"):
        take_place(new, old)
    assert digests(old) == before and new.exists() and not can_exchange(tmp_path)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["a.inspect", "b.inspect"]


def test_without_such_a_call_it_is_replaced_in_its_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "can_exchange", lambda _folder: False)
    path = write(tmp_path / "a.inspect", numbers())
    made = begun(path)
    assert made.beside is None
    made.close()
    with open_capture(path) as capture:
        assert capture.start.run == "new"


def test_a_name_that_is_taken_is_left_alone(tmp_path: Path) -> None:
    write(tmp_path / "a.new.inspect", numbers())
    (tmp_path / "b.new").symlink_to("nowhere")
    assert free_name_beside(tmp_path / "a.inspect")[0].name == "a.new-2.inspect"
    assert free_name_beside(tmp_path / "b")[0].name == "b.new-2" and free_name_beside(tmp_path / "c")[0].name == "c.new"


def test_what_a_run_that_was_killed_has_left_is_said_by_the_next(tmp_path: Path) -> None:
    path = write(tmp_path / "a.inspect", numbers())
    write(tmp_path / "a.new.inspect", numbers(), run="killed")
    with Writer(tmp_path / "a.new-2.inspect", RunStart(run="other", title="t")) as other:  # one that goes on
        other.write(channel())
        other.write(Page("rnn.l0:h", 0, (0, 0), numbers(8)))
        other.flush()
        begun(path).close()
    with open_capture(path) as capture:
        assert capture.start.run == "new"
        assert [one.text for one in capture.logs if "has left" in one.text] == [
            "a.new.inspect beside it is what a run that was killed has left: nobody else removes it."
        ]
    assert (tmp_path / "a.new.inspect").exists()
