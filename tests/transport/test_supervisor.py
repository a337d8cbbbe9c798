"""Nothing that a model does keeps its worker, what it started, or the memory of the machine."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from click.testing import CliRunner
from workers import Parent

from inspector.cli import cli
from inspector.records import Load, Log
from inspector.transport import container_memory, memory
from inspector.transport.process import LEFT_NONE, Exit
from inspector.transport.run_client import Outcome

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a child subreaper, /proc")
MODELS = """
import ctypes, os, re, subprocess, sys, time
from pathlib import Path
from torch import nn

HERE = Path(__file__).parent

def reached(what):
    HERE.joinpath("reached").write_text(what)

def holds():
    reached("regex")
    re.match(r"(a+)+$", "a" * 60 + "b")

class Regex(nn.RNN):
    def __init__(self):
        holds()

class Held:
    def __del__(self):
        holds()

class Destructor(nn.RNN):
    def __init__(self):
        Held()

class Starves(nn.RNN):
    def __init__(self):
        import resource
        resource.setrlimit(resource.RLIMIT_AS, (1 << 20, 1 << 20))
        time.sleep(600)

class Daemon(nn.RNN):
    def __init__(self):
        super().__init__(3, 4)
        command = "sleep 600 & echo $! > " + str(HERE / "daemon")
        subprocess.run(["setsid", "env", "-i", "/bin/sh", "-c", command], check=True)

class Eats(nn.RNN):
    def __init__(self):
        super().__init__(3, 4)
        kept = []
        while True:
            kept.append(bytearray(b"x") * 20_000_000)
            time.sleep(0.005)

class Feeds(nn.RNN):
    def __init__(self):
        super().__init__(3, 4)
        eats = "import time; kept = bytearray(b'x') * 950_000_000; time.sleep(600)"
        subprocess.run([sys.executable, "-c", eats])
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "models.py").write_text(MODELS)
    (tmp_path / "at_import.py").write_text(f"{MODELS}\nholds()\n")
    return tmp_path / "models.py"


def runs(pid: int) -> bool:
    """Whether a process is there that is not dead."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def appears(path: Path) -> str:
    """What a file holds, once there is something in it."""
    end = time.monotonic() + 60
    while not (path.exists() and path.read_text().strip()):
        assert time.monotonic() < end
        time.sleep(0.02)
    return path.read_text().strip()


def goes(pid: int) -> bool:
    end = time.monotonic() + 5
    while runs(pid) and time.monotonic() < end:
        time.sleep(0.02)
    return not runs(pid)


@pytest.mark.parametrize("subject", ["at_import.py:Regex", "models.py:Regex", "models.py:Destructor"])
def test_a_model_that_holds_the_interpreter_is_ended_and_takes_no_time_of_the_sender(file: Path, subject: str) -> None:
    parent = Parent()
    parent.worker.send(Load(subject=str(file.with_name(subject)), trusted=True))
    appears(file.with_name("reached"))
    sent = threading.Event()

    def send() -> None:  # more than any socket holds, and nobody reads
        for _ in range(40):
            parent.worker.send(Log("x" * 500_000))
        sent.set()

    threading.Thread(target=send, daemon=True).start()
    assert sent.wait(30), "the caller waits for a worker that reads nothing"
    parent.worker.close(0.2)
    assert parent.wait(Exit).expected and not parent.worker.alive


WINDOW = """
import sys, time
from inspector.transport.process import WorkerProcess
from inspector.records import Load
worker = WorkerProcess(lambda record: None, lambda *_: None, print)
worker.start()
worker.send(Load(subject=sys.argv[1], trusted=True))
time.sleep(120)
"""


def test_a_daemon_without_a_mark_ends_with_a_window_that_is_killed(file: Path) -> None:
    window = subprocess.Popen([sys.executable, "-c", WINDOW, f"{file}:Daemon"])
    daemon = int(appears(file.with_name("daemon")))
    try:
        assert runs(daemon)
        window.kill()
        window.wait()
        assert goes(daemon)
    finally:
        window.kill()
        if runs(daemon):
            os.kill(daemon, 9)


def test_a_model_that_holds_the_interpreter_ends_with_a_window_that_is_killed(file: Path) -> None:
    """No thread of the worker can notice that its window is gone."""
    window = subprocess.Popen([sys.executable, "-c", WINDOW, f"{file}:Regex"])
    started = list[int]()
    try:
        assert appears(file.with_name("reached")) == "regex"
        started = memory.started_by(window.pid)
        assert len(started) == 2 and all(map(runs, started)), "one above the worker, and the worker"
        window.kill()
        window.wait()
        assert all(map(goes, started))
    finally:
        window.kill()
        for one in filter(runs, started):
            os.kill(one, 9)


@pytest.mark.parametrize("model", ["Eats", "Feeds"])
def test_a_model_that_takes_too_much_memory_is_ended_with_one_sentence(model: str, file: Path) -> None:
    """By itself, or by a process that it starts."""
    parent = Parent(memory=0.9)
    parent.worker.send(Load(subject=f"{file}:{model}", trusted=True))
    ended = parent.wait(Exit)
    assert not ended.expected and ended.sentence.startswith("The model took ")
    assert "more than the 0.9 GB that it may take" in ended.sentence and "captured so far is stored" in ended.sentence
    taken = float(ended.sentence.split()[3])
    assert 0.9 <= taken < 1.5


def test_a_worker_that_may_take_no_memory_any_more_and_hangs_is_ended_with_one_sentence(file: Path) -> None:
    parent = Parent()
    parent.worker.send(Load(subject=f"{file}:Starves", trusted=True))
    ended = parent.wait(Exit)
    assert not ended.expected and ended.sentence == LEFT_NONE


def test_who_may_take_no_memory_is_told_from_who_may() -> None:
    code = (
        "import os, resource, sys; from inspector.transport.memory import may_take_none as none; me = os.getpid()\n"
        "told = [none(me)]; kept = bytearray(64_000_000); kept = None\n"
        "for most in ((1 << 20, -1), (1 << 46, 1 << 46), (1 << 20, 1 << 20)):\n"
        "    resource.setrlimit(resource.RLIMIT_AS, most); told.append(none(me))\n"
        "os.write(1, repr(told).encode())"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert told.stdout == "[False, False, False, True]", told
    assert not memory.may_take_none(2**22 + 1)


def test_the_limit_is_the_named_one_or_most_of_what_is_free(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "meminfo").write_text("MemTotal: 8 kB\nMemAvailable: 3000000 kB\n")
    monkeypatch.setattr(memory, "MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "left_in_container", lambda: None)
    assert memory.allowed(10**9, 2e9) == 2e9
    assert memory.allowed(10**9, 0.0) == pytest.approx(0.9 * (10**9 + 3_000_000 * 1024))
    monkeypatch.setattr(memory, "MEMINFO", tmp_path / "nothing")
    assert memory.allowed(10**15, 0.0) == float("inf"), "unknown is no reason to end a run"
    assert [memory.named_limit(text) for text in ("2.5", "", "0", "-1", "nan", "inf", "much", "1e400")] == [
        2.5e9, 0, 0, 0, 0, 0, 0, 0,
    ]  # fmt: skip


GROUPS = {
    "version 2": ("0::/a/b\n", "", ("memory.max", "memory.current", "inactive_file")),
    "version 1": (
        "3:cpu:/x\n4:memory:/a/b\n0::/\n", "memory",
        ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("version", GROUPS)
def test_a_containers_limit_counts(version: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    lines, base, (most, used, inactive) = GROUPS[version]
    (tmp_path / "cgroup").write_text(lines)
    (tmp_path / "meminfo").write_text("MemAvailable: 3000000 kB\n")
    inner, outer = tmp_path / base / "a" / "b", tmp_path / base / "a"
    inner.mkdir(parents=True)
    monkeypatch.setattr(container_memory, "GROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(container_memory, "ROOT", tmp_path)
    monkeypatch.setattr(memory, "MEMINFO", tmp_path / "meminfo")
    assert memory.main_memory() == 3_000_000 * 1024, "no limit is told"
    for folder, limit in ((inner, "max" if version == "version 2" else str(2**63 - 4096)), (outer, "900000000")):
        (folder / most).write_text(f"{limit}\n")
        (folder / used).write_text("500000000\n")
        (folder / "memory.stat").write_text(f"anon 1\n{inactive} 100000000\n")
    assert memory.main_memory() == 900_000_000 - 500_000_000 + 100_000_000, "the tightest limit above it"
    assert memory.allowed(10**8, 0.0) == pytest.approx(0.9 * 6e8)


def test_processes_that_a_process_started_count_once() -> None:
    """A child holds 60 MB of its own and shares 60 MB with its parent, which it was forked from."""
    code = (
        "import os, signal, sys; from inspector.transport import memory; shared = bytearray(b'x') * 60_000_000\n"
        "a, b = os.pipe()\n"
        "if not os.fork():\n"
        "    own = bytearray(b'y') * 60_000_000; os.write(b, b'1'); signal.pause()\n"
        "os.read(a, 1); me = os.getpid(); below = memory.started_by(me)\n"
        "print(len(below), memory.taken_by(below[0]), memory._share_of(below[0]), memory.taken_below(me))\n"
        "os.kill(below[0], 9)"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    count, whole, share, below = map(int, told.stdout.split())
    assert count == 1 and below == whole and whole > 120_000_000, told
    assert 85_000_000 < share < whole - 20_000_000, told


def test_memory_of_a_process_is_what_it_has_for_itself() -> None:
    code = (  # in a process of its own: this one may have freed memory that it takes again
        "import os; from inspector.transport.memory import taken_by; before = taken_by(os.getpid()); "
        "held = bytearray(b'x') * 50_000_000; print(taken_by(os.getpid()) - before, len(held))"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60).stdout.split()
    assert 45_000_000 < int(told[0]) < 60_000_000
    assert memory.taken_by(2**22 + 1) == 0


def test_the_command_line_limits_workers_until_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(memory.MEMORY, raising=False)
    found: list[str | None] = []

    def run(*_given: object) -> Outcome:
        found.append(os.environ.get(memory.MEMORY))
        return Outcome(code=1, sentence="That is enough.")

    monkeypatch.setattr("inspector.cli.reporting.run_and_wait", run)
    for words in (["run", "x", "--memory", "2.5"], ["--memory", "3", "run", "x"], ["run", "x"]):
        CliRunner().invoke(cli, words)
    assert found == ["2.5", "3.0", None] and memory.MEMORY not in os.environ
    assert CliRunner().invoke(cli, ["run", "x", "--memory", "0.1"]).exit_code == 2, "less than Python and torch take"
