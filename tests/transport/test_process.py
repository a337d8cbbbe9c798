"""The worker's faults: whatever happens to it, the parent hears one sentence, nothing is orphaned, nothing is lost."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from workers import Parent

from inspector.capture import open_capture
from inspector.records import (
    Cancel,
    Catalog,
    Failure,
    Finished,
    InputSpec,
    Load,
    Loaded,
    NeedsTrust,
    Progress,
    Run,
)
from inspector.transport.lines import CUT, MOST_CHARACTERS
from inspector.transport.process import Exit, explain

MODELS = """
import ctypes, os, sys, time
import torch
from torch import nn

class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.RNNCell(3, 4)
    def forward(self, x):
        h = torch.zeros(x.shape[0], 4)
        for t in range(x.shape[1]):
            h = self.cell(x[:, t], h)
            self.at(t)
        return h
    def at(self, t):
        pass

class Good(Base): pass
class Raises(Base):
    def at(self, t):
        if t == 40: raise RuntimeError("the third <b>wheel</b>")
class Segfaults(Base):
    def at(self, t):
        if t == 40:
            time.sleep(0.5)
            ctypes.string_at(0)
class Exits(Base):
    def at(self, t):
        if t == 40:
            time.sleep(0.5)
            os._exit(0)
class Loops(Base):
    def at(self, t):
        while t == 40: time.sleep(0.01)
class Slow(Base):
    def at(self, t): time.sleep(0.02)
class Prints(Base):
    def at(self, t):
        if t == 1: sys.stdout.write("x" * 3_000_000 + "\\n" + "hello\\n")
class Asks(Base):
    def at(self, t): input("what now?")
class Floods(Base):
    def at(self, t):
        if t == 1:
            for n in range(64): os.write(1, b"".join(b"line %d\\n" % (n * 100_000 + i) for i in range(100_000)))
class FloodsStderr(Base):
    def at(self, t):
        if t == 1:
            for n in range(16): os.write(2, b"".join(b"line %d\\n" % (n * 100_000 + i) for i in range(100_000)))
            os.write(2, b"not UTF-8: \\xff\\xfe!\\n")
class NoEnd(Base):
    def at(self, t):
        if t == 1:
            for _ in range(40): os.write(1, b"x" * 5_000_000)
            os.write(1, b"\\nthe end\\n")
class Bars(Base):
    def at(self, t):
        for percent in range(2000): os.write(2, b"\\r%3d %%|####      |" % (percent % 100))
class Closes(Base):
    def at(self, t):
        if t == 40:
            time.sleep(0.5)
            os.closerange(3, 64)
            time.sleep(60)
class Overwrites(Base):
    def at(self, t):
        if t == 40:
            time.sleep(0.5)
            nowhere = os.open(os.devnull, os.O_RDWR)
            [os.dup2(nowhere, n) for n in range(3, 64) if n != nowhere]
            time.sleep(60)
class Daemon(Base):
    def at(self, t):
        if t == 40:
            import subprocess
            child = subprocess.Popen(["sleep", "600"], start_new_session=True)
            print("daemon", child.pid, flush=True)
class Leaves(Base):
    def __init__(self):
        super().__init__()
        raise ValueError("no weights today")
"""


@pytest.fixture
def parent() -> Iterator[Parent]:
    made = Parent()
    yield made
    made.worker.close()


@pytest.fixture(scope="module")
def lasting() -> Iterator[Parent]:
    """One worker for the models that leave it alive, as in the window."""
    made = Parent()
    yield made
    made.worker.close()


@pytest.fixture
def start(parent: Parent, tmp_path: Path) -> Callable[[str], Path]:
    """Open a model of MODELS in a fresh worker and run it on 60 steps; the capture's path."""
    return starting(parent, tmp_path)


@pytest.fixture
def start_another(lasting: Parent, tmp_path: Path) -> Callable[[str], Path]:
    """The same in the worker that lasts."""
    return starting(lasting, tmp_path)


def starting(parent: Parent, tmp_path: Path) -> Callable[[str], Path]:
    file = tmp_path / "models.py"
    file.write_text(MODELS)

    def go(name: str) -> Path:
        path = tmp_path / f"{name}.inspect"
        parent.worker.send(Load(subject=f"{file}:{name}", trusted=True))
        parent.wait(Loaded)
        spec = InputSpec(kind="generated", value="noise", options={"steps": 60})
        parent.worker.send(Run(path=str(path), input=spec))
        return path

    return go


def seen_steps(path: Path) -> int:
    with open_capture(path) as capture:
        return capture.extent("cell:h")[0] if "cell:h" in capture.channels else 0


def test_the_first_word_is_the_catalog_and_a_run_ends_in_its_capture(
    parent: Parent, start: Callable[[str], Path]
) -> None:
    assert parent.wait(Catalog).torch
    path = start("Good")
    assert parent.wait(Finished).stop.status == "done"
    with open_capture(path) as capture:
        assert capture.status == "done" and capture.extent("cell:h") == (60, 4)
    parent.worker.close()
    assert parent.wait(Exit).expected and not parent.worker.alive


def test_a_model_that_raises_keeps_what_was_seen(lasting: Parent, start_another: Callable[[str], Path]) -> None:
    path = start_another("Raises")
    stop = lasting.wait(Finished).stop
    assert stop.status == "failed" and "the third <b>wheel</b>" in stop.message and "models.py, line" in stop.message
    assert seen_steps(path) == 41
    lasting.worker.send(Run(path=str(path.with_name("again.inspect")), input=InputSpec(kind="generated", value="sine")))
    assert lasting.wait(Finished).stop.status == "failed"


@pytest.mark.parametrize(("name", "said"), [("Segfaults", "segmentation fault"), ("Exits", "ended by itself")])
def test_a_dying_worker_is_told_and_its_capture_stays(
    parent: Parent, start: Callable[[str], Path], name: str, said: str
) -> None:
    if sys.platform == "win32" and name == "Segfaults":
        pytest.skip("signals")
    path = start(name)
    ended = parent.wait(Exit)
    assert said in ended.sentence and not ended.expected
    with open_capture(path) as capture:
        assert capture.status == "unfinished"
        assert capture.extent("cell:h")[0] >= 32


@pytest.mark.skipif(sys.platform == "win32", reason="descriptors of Unix")
@pytest.mark.parametrize("model", ["Closes", "Overwrites"])
def test_a_worker_whose_descriptors_were_closed_is_ended_and_told(
    parent: Parent, start: Callable[[str], Path], model: str
) -> None:
    path = start(model)
    ended = parent.wait(Exit, seconds=30)
    assert not ended.expected and "lost its connection" in ended.sentence and "descriptors" in ended.sentence
    assert seen_steps(path) >= 32


@pytest.mark.skipif(sys.platform != "linux", reason="a mark that is found in /proc")
def test_a_daemon_of_the_model_ends_with_the_worker(parent: Parent, start: Callable[[str], Path]) -> None:
    start("Daemon")
    parent.wait(Finished)
    parent.worker.close()
    (line,) = [text for text in parent.output if text.startswith("daemon ")]
    state = Path("/proc", line.split()[1], "stat")
    end = time.monotonic() + 5
    while state.exists() and state.read_text().split()[2] != "Z":  # whoever is process 1 may be late to take note
        assert time.monotonic() < end, "it is still there"
        time.sleep(0.05)


@pytest.mark.skipif(sys.platform == "win32", reason="signals, process groups")
def test_a_killed_worker_is_told_and_what_it_left_behind_is_ended_once(
    parent: Parent, start: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = start("Slow")
    parent.wait(Progress)
    time.sleep(0.6)
    killed: list[int] = []
    monkeypatch.setattr(os, "killpg", lambda group, _number: killed.append(group))
    pid = parent.worker.pid
    os.kill(pid, signal.SIGKILL)
    assert "killed" in parent.wait(Exit).sentence
    assert seen_steps(path) > 0
    parent.worker.close()
    assert killed == [pid], "later the number may be that of a stranger"


def test_cancel_between_pages_keeps_the_capture(lasting: Parent, start_another: Callable[[str], Path]) -> None:
    path = start_another("Slow")
    lasting.wait(Progress)
    time.sleep(0.3)
    lasting.worker.send(Cancel())
    assert lasting.wait(Finished).stop.status == "cancelled"
    with open_capture(path) as capture:
        assert capture.status == "cancelled"


def test_a_model_that_loops_for_ever_is_ended_by_closing(parent: Parent, start: Callable[[str], Path]) -> None:
    path = start("Loops")
    parent.wait(Progress)
    while seen_steps(path) < 32:  # as below: the test's own timeout says that it comes to that
        time.sleep(0.1)
    parent.worker.close()
    assert not parent.worker.alive
    assert seen_steps(path) >= 32


def test_floods_and_questions_do_not_stop_a_run(lasting: Parent, start_another: Callable[[str], Path]) -> None:
    start_another("Prints")
    assert lasting.wait(Finished).stop.status == "done"
    output = lasting.output
    assert "hello" in output and max(map(len, output)) <= MOST_CHARACTERS + len(CUT)
    start_another("Asks")
    assert "EOFError" in lasting.wait(Finished).stop.message


def resident() -> int:
    """Bytes of memory that this process has now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def finished_within(parent: Parent, room: int, end: str) -> Finished:
    """The end of the run, and at no time until the last of its output came more than `room` bytes more than before."""
    before, deadline = resident(), time.monotonic() + 120
    found: Finished | None = None
    while found is None and time.monotonic() < deadline:
        assert resident() - before < room
        with contextlib.suppress(queue.Empty):
            event = parent.events.get(timeout=0.02)
            found = event if isinstance(event, Finished) else None
    assert found is not None
    while parent.output[-1:] != [end] and time.monotonic() < deadline:
        time.sleep(0.02)
    assert parent.output[-1] == end and resident() - before < room
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
@pytest.mark.parametrize(
    ("name", "room", "last"),
    [
        ("Floods", 60, "line 6399999"), ("FloodsStderr", 60, "not UTF-8: \ufffd\ufffd!"), ("NoEnd", 40, "the end"),
    ],
)  # fmt: skip
def test_a_flood_takes_no_memory_and_its_end_is_seen(
    lasting: Parent, start_another: Callable[[str], Path], name: str, room: int, last: str
) -> None:
    """77 and 19 MB of lines, and 200 MB without a line break."""
    lasting.lines.clear()
    start_another(name)
    assert finished_within(lasting, room << 20, last).stop.status == "done"
    if name == "NoEnd":
        assert lasting.output == ["x" * MOST_CHARACTERS + CUT, last]
    else:
        assert any("dropped" in line for line in lasting.output)


def test_progress_bars_do_not_pile_up(parent: Parent, start: Callable[[str], Path]) -> None:
    start("Bars")
    assert parent.wait(Finished).stop.status == "done"
    parent.worker.close()
    parent.worker.drained()
    assert parent.output == [" 99 %|####      |"]


def test_a_factory_that_raises_and_an_untrusted_file(lasting: Parent, tmp_path: Path) -> None:
    file = tmp_path / "models.py"
    file.write_text(MODELS)
    lasting.worker.send(Load(subject=f"{file}:Leaves", trusted=True))
    assert "no weights today" in lasting.wait(Failure).message
    canary = tmp_path / "canary"
    file.write_text(f"open({str(canary)!r}, 'w')\n" + MODELS)
    lasting.worker.send(Load(subject=f"{file}:Good"))
    asked = lasting.wait(NeedsTrust)
    assert [known.path for known in asked.files] == [str(file)] and not canary.exists()


@pytest.mark.skipif(sys.platform != "linux", reason="parent death signal")
def test_no_orphan_when_the_parent_is_killed(tmp_path: Path) -> None:
    script = (
        "import sys, time\nfrom inspector.transport.process import WorkerProcess\n"
        "w = WorkerProcess(lambda r: print(w.pid, flush=True), print, print)\nw.start()\ntime.sleep(60)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    parent.kill()
    parent.communicate()
    end = time.monotonic() + 5
    while Path(f"/proc/{pid}").exists() and time.monotonic() < end:
        if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
            break
        time.sleep(0.05)
    else:
        assert not Path(f"/proc/{pid}").exists()


def test_exit_codes_in_words() -> None:
    assert "memory" in explain(-9) and "stored" in explain(-11) and "by itself" in explain(0) and "code 3" in explain(3)
