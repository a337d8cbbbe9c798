"""Models whose texts and streams are not as they should be: every run ends with one sentence, and what was seen is kept."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import call
from in_process_worker import InProcessWorker

from inspector.capture import open_capture
from inspector.records import Failure, Finished, InputSpec, Load, Loaded, Run
from inspector.transport.process import WorkerProcess
from inspector.transport.run_client import run_and_wait

MODELS = """
import os, sys
from types import SimpleNamespace
import torch
from torch import nn

class NoText(Exception):
    def __str__(self): raise ValueError("no text")
class OddText(Exception):
    def __str__(self): return 3
class Sub(str):
    def split(self, *_): raise ValueError("no parts")
    def __format__(self, _): raise ValueError("no format")
class SubText(Exception):
    def __str__(self): return Sub("a text of a subclass")
class Entry:
    def __str__(self): raise ValueError("no text")
    __repr__ = __str__

class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.RNNCell(3, 4)
    def forward(self, x):
        h = torch.zeros(x.shape[0], 4)
        for t in range(x.shape[1]):
            h = self.cell(x[:, t], h)
            if t == 40:
                self.at()
        print("printed by the model")
        return h
    def at(self): pass

def raising(fault):
    class Raises(Base):
        def at(self): raise fault
    return Raises()
def long_message(): return raising(RuntimeError("x" * 9_000_000))
def no_text(): return raising(NoText())
def odd_text(): return raising(OddText())
def sub_text(): return raising(SubText())
def no_string(): return raising(RuntimeError({"a": 1}, 3))
def lone_surrogate(): return raising(RuntimeError("\\udcff\\ud800"))
def long_class(): return raising(type("E" * 1_000_000, (Exception,), {})("short"))
def factory_without_text(): raise NoText()

class NoOutput(Base):
    def at(self): sys.stdout = sys.stderr = None
class ClosedOutput(Base):
    def at(self): sys.stdout.close(); sys.stderr.close(); sys.stdout = sys.__stdout__
    def forward(self, x):
        try:
            return super().forward(x)
        except ValueError:
            return x
class OddOutput(Base):
    def at(self): sys.stdout = sys.stderr = SimpleNamespace(write=lambda text: None, flush=lambda: 1 / 0, fileno=lambda: "x")
class ClosedDescriptors(Base):
    def __init__(self):
        super().__init__()
        for number in (0, 1, 2):
            os.close(number)
    def at(self):
        for number in (0, 1, 2):
            try: os.write(number, b"printed by the model")
            except OSError: pass
class LongNames(nn.Module):
    def __init__(self):
        super().__init__()
        for letter in "ab":
            self.add_module("m" * 3_000 + letter, nn.RNNCell(3, 4))
    def forward(self, x):
        for cell in self.children():
            h = torch.zeros(x.shape[0], 4)
            for t in range(x.shape[1]):
                h = cell(x[:, t], h)
        return h
def long_module_class(): return type("M" * 2_000_000, (Base,), {})()
class Tokens(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.rnn, self.head = nn.Embedding(5, 3), nn.GRU(3, 4, batch_first=True), nn.Linear(4, 5)
    def forward(self, x): return self.head(self.rnn(self.embedding(x))[0])
def odd_entries():
    return SimpleNamespace(
        model=Tokens(), name=Entry(), vocabulary=["a", Entry(), "\\udcff", "l" * 2_000_000, 7], labels=[Entry()] * 5,
        examples={3: torch.tensor([0, 1, 2, 3, 4] * 10), "\\udcff": "aa"},
    )
class Many(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Identity() for _ in range(15_000))
        self.inner = Base()
    def forward(self, x): return self.inner(x)
"""


class Parent:
    """A worker and what it says."""

    def __init__(self) -> None:
        import queue

        self.events: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.worker = WorkerProcess(self.events.put, lambda _s, _line: None, self.events.put)
        self.worker.start()

    def ask(self, request: Any, kind: type[Any]) -> Any:
        """Its answer of some kind, or the failure."""
        self.worker.send(request)
        while True:
            event = self.events.get(timeout=60)
            if isinstance(event, (kind, Failure)):
                return event
            assert hasattr(event, "__dataclass_fields__") and type(event).__name__ != "Exit", event


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "models.py"
    path.write_text(MODELS)
    return path


@pytest.fixture(scope="module")
def parent() -> Iterator[Parent]:
    """One worker for all models that leave it alive, as in the window."""
    made = Parent()
    yield made
    made.worker.close()


def run(parent: Parent, file: Path, name: str, path: Path) -> Any:
    told = parent.ask(Load(subject=f"{file}:{name}", trusted=True), Loaded)
    assert isinstance(told, Loaded), told
    noise = InputSpec(kind="generated", value="noise", options={"steps": 60})
    spec = InputSpec(kind="example") if name == "odd_entries" else noise
    return parent.ask(Run(path=str(path), input=spec), Finished)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("long_message", "RuntimeError"), ("no_text", "NoText"), ("odd_text", "OddText"), ("sub_text", "of a subclass"),
        ("no_string", "{'a': 1}"), ("lone_surrogate", "⟨dcff⟩"), ("long_class", "EEE"),
    ],
)  # fmt: skip
def test_exceptions_of_any_text_end_the_run_with_a_sentence(
    parent: Parent, file: Path, tmp_path: Path, name: str, said: str
) -> None:
    finished = run(parent, file, name, tmp_path / "a.inspect")
    assert isinstance(finished, Finished) and finished.stop.status == "failed"
    assert said in finished.stop.message and "models.py, line" in finished.stop.message
    assert len(finished.stop.message) < 800 and "\n" not in finished.stop.message
    with open_capture(tmp_path / "a.inspect") as capture:
        assert capture.status == "failed" and capture.stop == finished.stop
        assert capture.extent("cell:h") == (41, 4) and not capture.damaged and not capture.verify()
        assert any("models.py" in log.text for log in capture.logs)


def test_a_factory_that_raises_without_a_text(parent: Parent, file: Path) -> None:
    told = parent.ask(Load(subject=f"{file}:factory_without_text", trusted=True), Loaded)
    assert isinstance(told, Failure) and "NoText" in told.message and told.kind == "model"


@pytest.mark.parametrize("name", ["LongNames", "long_module_class", "Many"])
def test_names_of_any_length_and_number(parent: Parent, file: Path, tmp_path: Path, name: str) -> None:
    finished = run(parent, file, name, tmp_path / "a.inspect")
    assert isinstance(finished, Finished) and finished.stop.status == "done", finished
    with open_capture(tmp_path / "a.inspect") as capture:
        states = [channel for channel in capture.channels if channel.endswith(":h")]
        assert len(states) == (2 if name == "LongNames" else 1), states
        assert all(capture.extent(state) == (60, 4) for state in states) and not capture.damaged
        if name == "Many":
            assert len(capture.start.places) == 15_004
        assert capture.channels[states[-1]].place in {place.name for place in capture.start.places}


def test_entries_and_names_without_a_text(parent: Parent, file: Path, tmp_path: Path) -> None:
    finished = run(parent, file, "odd_entries", tmp_path / "a.inspect")
    assert isinstance(finished, Finished) and finished.stop.status == "done", finished
    with open_capture(tmp_path / "a.inspect") as capture:
        words = capture.labels("vocabulary")
        assert len(words) == 5 and words[0] == "a" and "Entry" in words[1] and words[2] == "\udcff" and words[4] == "7"
        assert words[3].startswith("lll") and "more characters" in words[3]
        assert len(capture.labels("step")) == 50 and capture.extent("rnn.l0:h") == (50, 4) and not capture.damaged


@pytest.mark.skipif(sys.platform == "win32", reason="descriptors")
def test_models_that_do_away_with_their_output(file: Path, tmp_path: Path) -> None:
    own = Parent()
    try:
        for name in ("NoOutput", "ClosedOutput", "OddOutput", "ClosedDescriptors"):  # one after another in one worker
            path = tmp_path / f"{name}.inspect"
            finished = run(own, file, name, path)
            assert isinstance(finished, Finished) and finished.stop.status in ("done", "failed"), finished
            with open_capture(path) as capture:
                assert capture.extent("cell:h")[0] >= 41 and not capture.damaged and not capture.verify(), name
            assert not any(b"printed by the model" in part.read_bytes() for part in path.iterdir()), name
    finally:
        own.worker.close()


def test_a_file_and_arguments_that_are_not_utf8(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inspector.transport.run_client.WorkerProcess", InProcessWorker)
    name = os.fsdecode(b"m\xff.py")
    try:
        (tmp_path / name).write_text(MODELS)
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    outcome = run_and_wait(
        Load(subject=f"{tmp_path / name}:Base", trusted=True),
        Run(path=str(tmp_path / f"{name}.inspect"), input=InputSpec(kind="generated", value="noise")),
        lambda _progress: None, lambda _stream, _line: None,
    )  # fmt: skip
    assert outcome.code == 0, outcome
    with open_capture(tmp_path / f"{name}.inspect") as capture:
        assert capture.start.subject == f"{tmp_path / name}:Base" and capture.status == "done"


@pytest.mark.skipif(sys.platform == "win32", reason="arguments are always text there")
@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ([b"run", b"m\xff.py:Base", b"--generate", b"noise", b"--out", b"o\xff.inspect"], 0, "channels"),
        ([b"run", b"n\xff.py:Base"], 2, "no file"),
        ([b"run", b"char-gru", b"--text", b"\xff"], 2, "\\udcff"),
    ],
)  # fmt: skip
def test_the_command_line_takes_bytes_that_are_no_text(
    file: Path, tmp_path: Path, arguments: list[bytes], code: int, said: str
) -> None:
    (tmp_path / os.fsdecode(b"m\xff.py")).write_text(MODELS)
    if code == 0:
        done = subprocess.run(
            [sys.executable.encode(), b"-m", b"inspector", *arguments], cwd=tmp_path, capture_output=True, timeout=120
        )
        told = done.stderr.decode("utf-8", "backslashreplace")
        assert done.returncode == code, told
    else:
        told = call(*map(os.fsdecode, arguments), cwd=tmp_path, expect=code).stderr
    lines = [
        line for line in told.strip().splitlines() if not re.match(r" *\d+ s: ", line)
    ]  # a slow machine's progress
    assert said in told and "Traceback" not in told and len(lines) == 1, told
