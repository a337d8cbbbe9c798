"""`inspector sweep`: exit codes, what is printed, what other commands make of its capture, and Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from commands import call
from sweeping import checkpoints, content, subject, times_made, weights

import inspector
from inspector.capture import CaptureError

ONLY = ("--only", "states,output/loss,jacobian/lag")


def arguments(tmp_path: Path, folder: str = "run", *, workers: int = 1) -> list[str]:
    return ["sweep", folder, "--subject", subject(tmp_path), "--text", "abca", *ONLY, "--out", "s.inspect",
            "--workers", str(workers)]  # fmt: skip


def test_frames_are_listed_with_their_steps_and_exported(tmp_path: Path) -> None:
    checkpoints(tmp_path / "run")
    done = call(*arguments(tmp_path), cwd=tmp_path)
    assert (
        "3 checkpoints in the order of the step that each tells itself (model-0.pt: 0, the key 'step')." in done.stderr
    )
    assert done.stderr.endswith("s.inspect: 3 frames computed.\n")
    listed = call("list", "s.inspect", cwd=tmp_path).stdout
    assert "frame 0: model-0.pt, step 0\nframe 1: model-10.pt, step 10\nframe 2: model-200.pt, step 200\n" in listed
    told = json.loads(call("list", "s.inspect", "--json", cwd=tmp_path).stdout)
    assert [frame["step"] for frame in told["frames"]] == [0, 10, 200]
    call("export", "s.inspect", "--channel", "rnn.l0:h", "--frame", "1", "--to", "h.npy", cwd=tmp_path)
    with inspector.open_capture(tmp_path / "s.inspect") as capture:
        np.testing.assert_array_equal(np.load(tmp_path / "h.npy"), capture.array("rnn.l0:h", 1))
    call("export", "s.inspect", "--panel", "lags", "--frame", "0", "--to", "lags.png", cwd=tmp_path)
    assert (tmp_path / "lags.png").stat().st_size > 5000
    again = call(*arguments(tmp_path), cwd=tmp_path)
    assert (
        "3 frames of s.inspect computed before" in again.stderr and "0 frames computed, 3 there before." in again.stderr
    )


def test_some_that_fail_end_with_1_and_all_with_nothing(tmp_path: Path) -> None:
    checkpoints(tmp_path / "run", (0,))
    torch.save({"model": {**weights(2), "head.bias": torch.zeros(9)}, "step": 10}, tmp_path / "run" / "model-10.pt")
    done = call(*arguments(tmp_path), cwd=tmp_path, expect=1)
    assert "model-10.pt, step 10: model-10.pt fits 8 of the model's 9 tensors" not in done.stdout
    assert "fits" in done.stderr and done.stderr.endswith("s.inspect: 1 frame computed, 1 failed.\n")
    assert "refused: run:checkpoint (frame 1): model-10.pt fits" in call("list", "s.inspect", cwd=tmp_path).stdout
    call(*arguments(tmp_path), "--partial", "--overwrite", cwd=tmp_path)
    (tmp_path / "run" / "model-0.pt").unlink()
    done = call(*arguments(tmp_path), "--overwrite", cwd=tmp_path, expect=1)
    assert "The only checkpoint could not be run, so nothing was captured: model-10.pt fits" in done.stderr
    with inspector.open_capture(tmp_path / "s.inspect") as before:
        assert len(before.frames) == 2, "what was there is as it was"


def test_what_cannot_be_begun_ends_with_2(tmp_path: Path) -> None:
    checkpoints(tmp_path / "run", (0,))
    assert "There is no nowhere" in call(*arguments(tmp_path, "nowhere"), cwd=tmp_path, expect=2).stderr
    assert "--subject" in call("sweep", "run", cwd=tmp_path, expect=2).stderr
    call("run", subject(tmp_path), "--text", "abca", "--only", "states", "--out", "s.inspect", cwd=tmp_path)
    assert "already holds a capture" in call(*arguments(tmp_path), cwd=tmp_path, expect=2).stderr


@pytest.mark.skipif(sys.platform == "win32", reason="signals of a terminal")
def test_an_interrupt_keeps_what_is_finished_and_the_same_command_goes_on(tmp_path: Path) -> None:
    checkpoints(tmp_path / "run", tuple(range(60)))
    command = [sys.executable, "-m", "inspector", *arguments(tmp_path)]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, env={**os.environ})
    end = time.monotonic() + 100
    while _finished(tmp_path) < 3:
        assert process.poll() is None and time.monotonic() < end
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    told = process.communicate(timeout=60)[1]
    assert process.returncode == 130 and "the same command goes on from here" in told, told
    kept = _finished(tmp_path)
    assert 3 <= kept < 60
    done = call(*arguments(tmp_path), cwd=tmp_path)
    assert f"{60 - kept} frames computed, {kept} there before." in done.stderr
    with inspector.open_capture(tmp_path / "s.inspect") as capture:
        assert [frame.step for frame in capture.frames] == list(range(60)) and not capture.verify()


@pytest.mark.skipif(sys.platform == "win32", reason="signals of a terminal")
def test_a_followed_folder_ends_with_an_interrupt_and_0(tmp_path: Path) -> None:
    checkpoints(tmp_path / "run", (0,))
    command = [sys.executable, "-m", "inspector", *arguments(tmp_path), "--follow"]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, env={**os.environ})
    end = time.monotonic() + 100
    for count in (1, 2):
        while _finished(tmp_path) < count:
            assert process.poll() is None and time.monotonic() < end
            time.sleep(0.05)
        checkpoints(tmp_path / "run", (10,) if count == 1 else ())
    process.send_signal(signal.SIGINT)
    told = process.communicate(timeout=60)[1]
    assert process.returncode == 0 and "2 frames computed." in told, told
    with inspector.open_capture(tmp_path / "s.inspect") as capture:
        assert capture.status == "done" and [frame.step for frame in capture.frames] == [0, 10]


@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL")
def test_what_was_killed_goes_on_and_holds_what_one_sweep_holds(tmp_path: Path) -> None:
    folder, named = checkpoints(tmp_path / "run", tuple(range(40))), subject(tmp_path)
    given = (str(folder), named, "abca")
    code = "import inspector, sys; inspector.sweep(*sys.argv[1:4], only=('states', 'output/loss'), out='s.inspect')"
    process = subprocess.Popen([sys.executable, "-c", code, *given], cwd=tmp_path, env={**os.environ})
    end = time.monotonic() + 100
    while _finished(tmp_path) < 3:
        assert process.poll() is None and time.monotonic() < end
        time.sleep(0.02)
    process.kill()
    process.wait(60)
    kept = _finished(tmp_path)
    times_made(tmp_path)
    only = ("states", "output/loss")
    with (
        inspector.sweep(*given, only=only, out=tmp_path / "s.inspect") as later,
        inspector.open_capture(tmp_path / "s.inspect") as read,
    ):
        assert times_made(tmp_path) == 41 - kept and later.status == "done"
        with inspector.sweep(*given, only=only) as at_once:
            assert content(read) == content(at_once)


def _finished(tmp_path: Path) -> int:
    try:
        with inspector.open_capture(tmp_path / "s.inspect") as capture:
            return sum(bool(frame.meta["sweep"].get("finished")) for frame in capture.frames)
    except CaptureError:
        return 0
