"""The command line while a model prints without end: all of it passes through, and nothing of it is kept."""

from __future__ import annotations

import contextlib
import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from inspector.capture import open_capture

DOTS = b"." * 50
"""At the end of each line, so that fewer of them are more than what may be kept."""
MOST_MEMORY = 30 << 20
MODEL = """
import os, sys
from torch import nn
class Prints(nn.Module):
    def __init__(self, lines=0, letters=0):
        super().__init__()
        self.rnn = nn.RNN(2, 3, batch_first=True)
        self.lines, self.letters = lines, letters
    def forward(self, x):
        for start in range(0, self.lines, 100_000):
            os.write(1, b"".join(b"line %d {dots}\\n" % n for n in range(start, start + 100_000)))
        for _ in range(self.letters): os.write(1, b"x" * 1_000_000)
        print("the end", flush=True)
        return self.rnn(x)[0]
""".replace("{dots}", DOTS.decode())


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    """`inspector run` of the model on a few steps."""
    (tmp_path / "prints.py").write_text(MODEL)
    subject = f"{tmp_path / 'prints.py'}:Prints"
    return [
        sys.executable, "-m", "inspector", "run", subject, "--generate", "noise", "--option", "steps=4",
        "--only", "states", "--out", str(tmp_path / "a.inspect"), "--overwrite",
    ]  # fmt: skip


def peak(pid: int) -> int:
    """The most memory that a process has had, in bytes."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM"):
                return int(line.split()[1]) << 10
    return 0


def through(command: list[str], arguments: str) -> tuple[bytes, int, bytes, int]:
    """(digest of what was printed, its length, its end, the peak of the command's own memory)."""
    process = subprocess.Popen([*command, "--arguments", arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    digest, length, end, most = hashlib.sha256(), 0, b"", 0
    while piece := os.read(process.stdout.fileno(), 1 << 20):
        digest.update(piece)
        length += len(piece)
        end, most = (end + piece)[-20:], max(most, peak(process.pid))
    process.stdout.close()
    assert process.wait(60) == 0
    return digest.digest(), length, end, most


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_what_a_model_prints_passes_through_and_takes_no_memory(command: list[str]) -> None:
    """600,000 lines, then a line of fifty million letters: either is more than the memory that is allowed."""
    _, few, said, before = through(command, "{}")
    assert (few, said) == (8, b"the end\n")
    lines, letters = 600_000, 50
    digest, length, end, most = through(command, f'{{"lines": {lines}, "letters": {letters}}}')
    printed = b"".join(b"line %d %s\n" % (n, DOTS) for n in range(lines)), b"x" * (letters * 1_000_000), b"the end\n"
    assert min(map(len, printed[:2])) > MOST_MEMORY
    assert length == sum(map(len, printed)) and end.endswith(b"the end\n")
    assert digest == hashlib.sha256(b"".join(printed)).digest()
    assert most - before < MOST_MEMORY


@pytest.mark.skipif(sys.platform == "win32", reason="closed pipes")
def test_a_reader_that_has_seen_enough_does_not_stop_the_run(command: list[str], tmp_path: Path) -> None:
    """As `inspector run … | head -1`: the model's prints go nowhere, the run goes on to its end."""
    process = subprocess.Popen(
        [*command, "--arguments", '{"lines": 400000}'], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stderr is not None
    assert process.stdout.readline().startswith("line 0 ")
    process.stdout.close()
    with process.stderr:
        said = process.stderr.read()
    process.wait(60)
    assert process.returncode == 0 and "done in" in said and "Traceback" not in said
    with open_capture(tmp_path / "a.inspect") as capture:
        assert capture.status == "done" and capture.extent("rnn.l0:h") == (4, 3)
