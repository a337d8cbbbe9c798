"""`inspector compare`, and `inspector.compare` of paths, frames and open captures."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from commands import call
from compared import NORM, STATE, capture_of, frame_of, norms, states

import inspector
from inspector.capture import CaptureError, open_capture


@pytest.fixture
def captures(tmp_path: Path) -> Path:
    capture_of(tmp_path / "a.inspect", frame_of(1), frame_of(2), steps=(10, 20))
    capture_of(tmp_path / "b.inspect", frame_of(3), tokens="abcdefxghijk")
    (tmp_path / "w.pt").write_bytes(b"PK\3\4")
    return tmp_path


def test_frames_of_one_run_are_printed_channel_by_channel(captures: Path) -> None:
    printed = call("compare", "a.inspect#0", "a.inspect#1", cwd=captures).stdout.splitlines()
    a, b = states(1).astype(float), states(2).astype(float)
    at = np.unravel_index(np.abs(b - a).argmax(), a.shape)
    assert printed[0] == "first: a.inspect#0 (a run, frame 0 moment 0, step 10)"
    assert printed[1] == "second: a.inspect#1 (a run, frame 1 moment 1, step 20)"
    relative = np.linalg.norm(b - a) / np.linalg.norm(a)
    assert printed[2].split(None, 1) == [
        "rnn.l0:h",
        f"largest difference {(b - a)[at]:+.4g} mV at step {at[0]} {'abcdefghijkl'[at[0]]!r}, unit {at[1]} "
        f"({a[at]:.4g} → {b[at]:.4g}); relative norm {relative:.3g}",
    ]
    assert printed[3].split(None, 1)[1].startswith("ratio furthest from 1 ")
    assert len(printed) == 4


def test_the_step_of_a_frame_is_said_once(tmp_path: Path) -> None:
    """Frames of a folder of checkpoints are named by file and step."""
    capture_of(tmp_path / "a.inspect", frame_of(1), frame_of(2), steps=(10, 20), labels=("a.pt, step 10", "b.pt"))
    assert call("compare", "a.inspect#0", "a.inspect#1", cwd=tmp_path).stdout.splitlines()[:2] == [
        "first: a.inspect#0 (a run, frame 0 a.pt, step 10)", "second: a.inspect#1 (a run, frame 1 b.pt, step 20)",
    ]  # fmt: skip


def test_other_tokens_are_aligned_and_said_or_refused(captures: Path) -> None:
    aligned = call("compare", "a.inspect", "b.inspect", cwd=captures).stdout
    assert "steps aligned by tokens: 11 in common, 1 only in the first, 1 only in the second [step]" in aligned
    assert "6 of 39 not known on one side or the other" in aligned
    refused = call("compare", "a.inspect", "b.inspect", "--no-align", cwd=captures).stdout
    assert "not compared: 2 channels" in refused
    assert f"  {STATE.name}, {NORM.name}: Their tokens differ from step 6 on: 'g' and 'x'.\n" in refused


def test_files_and_json_have_the_numbers(captures: Path) -> None:
    told = json.loads(call("compare", "a.inspect#0", "a.inspect#1", "--json", cwd=captures).stdout)
    assert [one["name"] for one in told["channels"]] == [STATE.name, NORM.name]
    assert told["first"]["step"] == 10 and told["channels"][1]["unit"] == "×"
    call("compare", "a.inspect#0", "a.inspect#1", "--out", "all.npz", cwd=captures)
    with np.load(captures / "all.npz") as archive:
        np.testing.assert_array_equal(archive[STATE.name], states(2) - states(1))
        np.testing.assert_array_equal(archive[NORM.name], norms(2) / norms(1))
    call("compare", "a.inspect#0", "a.inspect#1", "--channel", NORM.name, "--out", "n.npy", cwd=captures)
    np.testing.assert_array_equal(np.load(captures / "n.npy"), norms(2) / norms(1))
    call("compare", "a.inspect#0", "a.inspect#1", "--out", "t.csv", cwd=captures)
    rows = (captures / "t.csv").read_text().splitlines()
    assert rows[0].startswith("name,how,reason,unit,largest") and rows[1].startswith("rnn.l0:h,difference,,mV,")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("a.inspect#7", "b.inspect"), "a.inspect has no frame 7; it has 0, 1."),
        (("a.inspect#x", "b.inspect"), "a.inspect#x names no frame: expected PATH or PATH#NUMBER"),
        (("a.inspect", "c.inspect"), "There is no capture at c.inspect."),
        (("a.inspect", "b.inspect", "--out", "f.txt"), "cannot be written as '.txt'; there are .csv, .json, .npz"),
        (
            ("a.inspect", "w.pt"),
            "w.pt is neither a capture nor a log; inspector run --checkpoint makes a capture of it.",
        ),
        (("a.inspect", "b.inspect", "--channel", "x:y"), "x:y is not compared: Neither has it."),
    ],
)
def test_what_cannot_be_is_said_in_one_line(captures: Path, arguments: tuple[str, ...], sentence: str) -> None:
    done = call("compare", *arguments, cwd=captures, expect=2)
    assert sentence in done.stderr and done.stderr.count("\n") == 1


def test_python_takes_paths_frames_and_open_captures(captures: Path) -> None:
    path = captures / "a.inspect"
    with open_capture(path) as capture:
        for first, second in (
            (f"{path}#0", path), ((path, 0), (path, 1)), ((capture, 0), capture), (f"{path}#0", f"{path}#-1"),
        ):  # fmt: skip
            with inspector.compare(first, second) as both:
                np.testing.assert_array_equal(both.array(STATE.name), states(2) - states(1))
        assert capture.array(STATE.name, 0).shape == (12, 3)  # what was open already stays open
    with inspector.compare(f"{path}#0", captures / "b.inspect") as both:
        first, *refused = str(both).splitlines()
        assert first.startswith("b.inspect compared with a.inspect") and " channel" in first and "0x" not in str(both)
        assert [line.strip() for line in refused] == [f"{name}: {why}" for name, why in both.refused.items()]
        assert repr(both).startswith("<Comparison: b.inspect compared with a.inspect")
    with pytest.raises(TypeError, match="A int cannot be compared"):
        inspector.compare(path, 3)
    with pytest.raises(CaptureError, match="There is no capture"):
        inspector.compare(path, captures / "none.inspect")
