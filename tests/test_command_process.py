"""Each command as a shell starts it: a process of its own with its exit code; what they say is in test_cli.py and beside it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from commands import CHECKOUT, apart

RAISES = """
from torch import nn
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(2, 3)
    def forward(self, x):
        print("seen", flush=True)
        self.rnn(x)
        raise RuntimeError("out of ideas")
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the capture of a run."""
    folder = tmp_path_factory.mktemp("shell")
    ran = apart("run", "char-gru", "--text", "Alice", "--only", "states,gates,health", "--out", "a.inspect", cwd=folder)
    assert ran.stdout == "" and ran.stderr.splitlines()[-1].startswith("a.inspect: 14 channels, done in")
    return folder


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["list", "a.inspect"], "rnn.l0:gate/update"), (["samples"], "char-lstm"),
        (["diagnose", "a.inspect"], "Nothing was found by along-batch, detached-state, nonfinite."), (["--version"], "inspector"), (["--help"], "demo"),
    ],
)  # fmt: skip
def test_what_is_asked_for_stands_on_stdout(folder: Path, arguments: list[str], said: str) -> None:
    done = apart(*arguments, cwd=folder)
    assert said in done.stdout and not done.stderr


def test_files_are_written(folder: Path) -> None:
    apart("export", "a.inspect", "--channel", "rnn.l0:h", "--to", "h.npy", cwd=folder)
    assert np.load(folder / "h.npy").shape == (5, 48)
    apart("export", "a.inspect", "--panel", "states", "--to", "h.png", cwd=folder)
    assert (folder / "h.png").read_bytes().startswith(b"\x89PNG")
    apart("pack", "a.inspect", "--to", "b.zip", cwd=folder)
    assert json.loads(apart("list", "b.zip", "--json", cwd=folder).stdout)["status"] == "done"


def test_a_model_that_raises_exits_with_1(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(RAISES)
    done = apart("run", "mine.py:M", "--out", "m.inspect", cwd=tmp_path, expect=1)
    assert "out of ideas" in done.stderr and "mine.py, line 10" in done.stderr and done.stdout == "seen\n"
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize("arguments", [["list", "missing.inspect"], ["frobnicate"]])
def test_bad_input_exits_with_2(tmp_path: Path, arguments: list[str]) -> None:
    told = apart(*arguments, cwd=tmp_path, expect=2).stderr
    assert arguments[-1] in told and len(told.strip().splitlines()) == 1


def test_subprocesses_run_this_checkout_whatever_is_installed(tmp_path: Path) -> None:
    """Beside an older installed copy, in another folder."""
    (tmp_path / "inspector").mkdir()
    (tmp_path / "inspector" / "__init__.py").write_text("")
    (tmp_path / "inspector" / "__main__.py").write_text("print('an older copy')")
    code = f"import site; site.addsitedir({str(tmp_path)!r}); import inspector; print(inspector.__file__)"
    found = subprocess.run([sys.executable, "-P", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert Path(found.stdout.strip()).is_relative_to(CHECKOUT)
    assert os.environ["PYTHONPATH"].split(os.pathsep)[0] == str(CHECKOUT)


@pytest.mark.parametrize("arguments", [["--version"], ["list", "/a.inspect"], []])
def test_a_folder_that_was_removed_is_one_sentence(tmp_path: Path, arguments: list[str]) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    script = f"import os, runpy, sys; os.chdir({str(gone)!r}); os.rmdir({str(gone)!r}); sys.argv[1:] = {arguments!r}; "
    script += "runpy.run_module('inspector', run_name='__main__')"
    done = subprocess.run(
        [sys.executable, "-P", "-c", script], capture_output=True, text=True, timeout=60, cwd=CHECKOUT, check=False
    )
    said = "The folder in which this was started is not there any more: change to another one.\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", said)
