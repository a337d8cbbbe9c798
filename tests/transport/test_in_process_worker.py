"""The worker in a thread, which most tests use, says what a worker process says."""

from __future__ import annotations

import queue
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from in_process_worker import InProcessWorker

from inspector.capture import open_capture
from inspector.records import Catalog, Failure, Finished, InputSpec, Load, Loaded, NeedsTrust, Progress, Run
from inspector.transport.process import Exit, WorkerProcess

ANSWERS = (Loaded, Failure, Finished, NeedsTrust)
MODEL = """
import sys
from torch import nn
import beside
class M(nn.Module):
    def __init__(self, size=3, fails=False):
        super().__init__()
        self.rnn, self.fails = nn.GRU(2, size, batch_first=True), fails
    def forward(self, x):
        print("from the model", beside.WORD)
        print("and an error", file=sys.stderr)
        y = self.rnn(x)[0]
        if self.fails: raise RuntimeError("out of ideas")
        return y
"""


def conversation(make: Callable[..., Any], folder: Path) -> tuple[list[Any], dict[str, str]]:
    """What a worker answers to the same requests, and what it printed."""
    heard: queue.SimpleQueue[Any] = queue.SimpleQueue()
    printed = {"stdout": "", "stderr": ""}

    def output(stream: str, text: str) -> None:
        printed[stream] += text

    subject, said = f"{folder / 'mine.py'}:M", []
    spec, path = InputSpec(kind="generated", value="noise", options={"steps": 4}), str(folder / "a.inspect")
    worker = make(heard.put, output, heard.put)
    worker.start()
    for request in (
        Load(subject=subject, generation=1), Load(subject=subject, trusted=True, generation=2),
        Run(path=path, input=spec, generation=3, overwrite=True), Load(subject=subject, trusted=True, arguments={"fails": True}, generation=4),
        Run(path=path, input=spec, generation=5, overwrite=True), Load(subject="nonsense", generation=6), Exit(0, False, ""),
    ):  # fmt: skip
        if isinstance(request, Exit):
            worker.close()
            worker.drained()
        else:
            worker.send(request)
        while True:
            said.append(heard.get(timeout=60))
            if isinstance(said[-1], Exit if isinstance(request, Exit) else ANSWERS):
                break
    return said, printed


def timeless(record: Any) -> Any:
    """The record without the seconds that a run took."""
    return replace(record, stop=replace(record.stop, seconds=0.0)) if isinstance(record, Finished) else record


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model in two files."""
    (tmp_path / "mine.py").write_text(MODEL)
    (tmp_path / "beside.py").write_text("WORD = 'here'\n")
    return tmp_path


def test_it_answers_as_a_process_does(folder: Path) -> None:
    ours, here = conversation(InProcessWorker, folder)
    with open_capture(folder / "a.inspect") as capture:
        status, channels = capture.status, list(capture.channels)
    theirs, there = conversation(WorkerProcess, folder)
    with open_capture(folder / "a.inspect") as capture:
        assert (capture.status, list(capture.channels)) == (status, channels)
    assert isinstance(ours[0], Catalog) and ours[0] == theirs[0]
    asked = [record for record in ours if isinstance(record, NeedsTrust)]
    assert [file.path for file in asked[0].files] == [str(folder / "mine.py"), str(folder / "beside.py")]
    whole = [[timeless(record) for record in said if isinstance(record, ANSWERS)] for said in (ours, theirs)]
    assert [type(record) for record in whole[0]] == [NeedsTrust, Loaded, Finished, Loaded, Finished, Failure]
    assert whole[0] == whole[1]
    assert any(isinstance(record, Progress) for record in ours) and any(
        isinstance(record, Progress) for record in theirs
    )
    assert here["stdout"] == there["stdout"] and here["stdout"].count("from the model here") >= 2
    assert here["stderr"] == there["stderr"] and "and an error" in here["stderr"]


def test_what_it_loaded_and_changed_is_gone_with_it(folder: Path) -> None:
    path, loaders = list(sys.path), _loaders()
    conversation(InProcessWorker, folder)
    assert sys.path == path and _loaders() == loaders and "beside" not in sys.modules


def _loaders() -> list[Any]:
    from importlib.machinery import ExtensionFileLoader, SourceFileLoader

    return [SourceFileLoader.get_code, ExtensionFileLoader.create_module]
