"""What a command may write over: only where it was asked to, and only once there is something new."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from commands import call

import inspector
from inspector import cli
from inspector.capture import CaptureError, Writer
from inspector.records import Channel, Page, RunStart, RunStop
from inspector.workspace.demo import check_demo


def in_process(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """The exit code and stderr of a command that starts no worker."""
    monkeypatch.setattr(sys, "argv", ["inspector", *arguments])
    monkeypatch.setattr("inspector.cli.reporting.run_and_wait", lambda *_: pytest.fail("the model was opened"))
    code = cli.main()
    return code, capfd.readouterr().err.strip()


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def finished(path: Path, **meta: str) -> Path:
    """A small capture that is done."""
    with Writer(path, RunStart(run="r", title="old", meta=meta)) as writer:
        writer.write(Channel(name="a:h", kind="state", dims=("step",), shape=(3,), title="h"))
        writer.write(Page("a:h", 0, (0,), np.ones(3, np.float32)))
        writer.write(RunStop("done"))
    return path


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--out", "old.inspect"], "--overwrite"), ([], "--overwrite"), (["--out", "."], "current directory"),
        (["--out", "file", "--overwrite"], "is a file"), (["--out", "link", "--overwrite"], "symbolic link"),
        (["--out", "things", "--overwrite"], "not a capture's"), (["--out", "plain", "--overwrite"], "other files"),
    ],
)  # fmt: skip
def test_what_lies_where_a_run_would_write_is_told_before_anything_is_opened(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    arguments: list[str],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    finished(tmp_path / "old.inspect")
    finished(tmp_path / "char-gru.inspect")  # the default name
    (tmp_path / "file").write_text("precious")
    (tmp_path / "link").symlink_to(tmp_path / "old.inspect")
    for name in ("things", "plain"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "pages-of-my-thesis.txt").write_text("precious")
    for name in ("index.sqlite", "index.sqlite.backup"):
        (tmp_path / "things" / name).write_text("precious")
    before = snapshot(tmp_path)
    code, told = in_process(monkeypatch, capfd, "run", "char-gru", *arguments)
    assert code == 2 and said in told and len(told.splitlines()) == 1
    assert snapshot(tmp_path) == before


BROKEN = """
import torch
from torch import nn
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(2, 3)
    def forward(self, x): raise RuntimeError("at once")
"""


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["syntax.py:M"], 1), (["char-gru", "--text", "ï"], 2), (["char-gru", "--with", "nonsense"], 2),
        (["char-gru", "--checkpoint", "misfit.pt"], 2), (["broken.py:M", "--only", "states"], 1),
    ],
)  # fmt: skip
def test_a_run_that_captures_nothing_leaves_the_old_capture_as_it_was(
    tmp_path: Path, arguments: list[str], code: int
) -> None:
    finished(tmp_path / "a.inspect")
    (tmp_path / "broken.py").write_text(BROKEN)
    (tmp_path / "syntax.py").write_text("def M(:\n")
    torch.save({"a": torch.zeros(2)}, tmp_path / "misfit.pt")
    before = snapshot(tmp_path / "a.inspect")
    told = call("run", *arguments, "--out", "a.inspect", "--overwrite", cwd=tmp_path, expect=code).stderr.strip()
    assert snapshot(tmp_path / "a.inspect") == before
    assert len(told.splitlines()) == 1 and ("as it was" in told) == (arguments[0] == "broken.py:M")


def test_a_run_replaces_a_capture_when_it_is_asked_to(tmp_path: Path) -> None:
    finished(tmp_path / "a.inspect")
    (tmp_path / "a.inspect" / "notes.txt").write_text("mine")
    call("run", "char-gru", "--text", "Alice", "--out", "a.inspect", "--overwrite", cwd=tmp_path)
    assert (tmp_path / "a.inspect" / "notes.txt").read_text() == "mine"
    with inspector.open_capture(tmp_path / "a.inspect") as capture:
        assert capture.status == "done" and capture.extent("rnn.l0:h") == (5, 48) and not capture.verify()


def test_the_python_door_replaces_a_capture_only_when_it_is_asked_to(tmp_path: Path) -> None:
    path = finished(tmp_path / "a.inspect")
    before = snapshot(path)
    with pytest.raises(CaptureError, match="overwrite=True"):
        inspector.run("char-gru", "Alice", out=path)
    with pytest.raises(ValueError, match="'ï'"):
        inspector.run("char-gru", "ï", out=path, overwrite=True)
    assert snapshot(path) == before
    with inspector.run("char-gru", "Alice", out=path, overwrite=True) as capture:
        assert capture.status == "done" and capture.start.title != "old"


def test_pack_replaces_only_a_packed_capture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    finished(tmp_path / "a.inspect")
    (tmp_path / "thesis.zip").write_text("precious")
    monkeypatch.chdir(tmp_path)
    assert in_process(monkeypatch, capfd, "pack", "a.inspect") == (0, "a.inspect.zip")
    code, told = in_process(monkeypatch, capfd, "pack", "a.inspect")
    assert code == 2 and "--overwrite" in told
    assert in_process(monkeypatch, capfd, "pack", "a.inspect", "--overwrite")[0] == 0
    assert in_process(monkeypatch, capfd, "pack", "a.inspect", "--to", "thesis.zip", "--overwrite")[0] == 2
    assert (tmp_path / "thesis.zip").read_text() == "precious"


def test_the_demo_replaces_only_what_a_demo_made(tmp_path: Path) -> None:
    target, figures = tmp_path / "demo.inspect", tmp_path / "demo-panels"
    assert not check_demo(target, figures)
    finished(target, made_by="demo")
    figures.mkdir()
    (figures / "states.png").write_bytes(b"\x89PNG\r\n\x1a\n....tEXtMade by\0demo")
    assert check_demo(target, figures)
    (figures / "gates.png").write_bytes(b"\x89PNG\r\n\x1a\n mine")
    with pytest.raises(CaptureError, match=r"gates\.png was not made by inspector demo"):
        check_demo(target, figures)
    with pytest.raises(CaptureError, match="not a folder"):
        check_demo(target, figures / "gates.png")
    finished(tmp_path / "mine.inspect")
    (tmp_path / "things").mkdir()
    (tmp_path / "things" / "index.sqlite").write_text("precious")
    for name, said in (("mine.inspect", "was not made by inspector demo"), ("things", "not a capture's")):
        with pytest.raises(CaptureError, match=said):
            check_demo(tmp_path / name, tmp_path / "none")
