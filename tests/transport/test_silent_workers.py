"""A worker that says nothing tells its stack, native code included; it starts beside files of any name, and is the one
that Linux ends where memory runs out."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from workers import Parent

from inspector.records import Catalog
from inspector.transport.memory import started_by

SERVED = """
import ctypes, time
from inspector.engine import worker

class Service:
    def serve(self, request):
        self.holds()

    def holds(self):
        ctypes.PyDLL(None).usleep(900_000)  # the interpreter's lock is held all the time

worker.SILENT_SECONDS = 0.3
worker._serve(None, Service(), None)
Service.holds = lambda self: None
worker._serve(None, Service(), None)
time.sleep(0.6)  # between two requests nothing is silent
print("served")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="usleep")
def test_a_request_that_says_nothing_tells_where_it_is_though_native_code_holds_the_interpreter() -> None:
    done = subprocess.run([sys.executable, "-c", SERVED], capture_output=True, text=True, timeout=60)
    assert done.stdout == "served\n", done.stderr
    assert done.stderr.count("Timeout (0:00:00.3") == 1 and "in holds" in done.stderr, done.stderr


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc")
def test_it_starts_beside_files_named_like_modules_and_is_ended_before_the_window(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("queue", "sqlite3", "numpy", "inspector"):
        (tmp_path / f"{name}.py").write_text("raise RuntimeError('not this one')\n")
    monkeypatch.chdir(tmp_path)
    parent = Parent()
    try:
        assert parent.wait(Catalog).torch
        (worker,) = started_by(parent.worker.pid)
        first, above, own = (
            int(Path(f"/proc/{one}/oom_score_adj").read_text()) for one in (worker, parent.worker.pid, "self")
        )
        assert first > above == own
    finally:
        parent.worker.close()
