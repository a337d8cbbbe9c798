"""A folder of torch.distributed's checkpoints is swept as any other: steps, numbers, going on."""

from __future__ import annotations

import warnings
from pathlib import Path

import torch
from commands import call
from sweeping import ONLY, content, subject, weights
from torch.distributed.checkpoint import save

import inspector


def written(folder: Path, steps: tuple[int, ...]) -> Path:
    for step in steps:
        state = {"model": weights(step), "optimizer": {"state": {"m": torch.zeros(50, 50)}}, "step": step + 1}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            save(state, checkpoint_id=folder / f"save-{step}", no_dist=True)
    return folder


def test_each_folder_is_a_frame_with_the_numbers_of_its_weights(tmp_path: Path) -> None:
    folder, plain = written(tmp_path / "run", (0, 10, 200)), tmp_path / "plain"
    plain.mkdir()
    for step in (0, 10, 200):
        torch.save({"model": weights(step), "step": step + 1}, plain / f"save-{step}.pt")
    named, out = subject(tmp_path), tmp_path / "s.inspect"
    with (
        inspector.sweep(folder, named, "abca", only=ONLY, out=out) as capture,
        inspector.sweep(plain, named, "abca", only=ONLY) as other,
    ):
        assert [(frame.label, frame.step) for frame in capture.frames] == [
            ("save-0, step 1", 1), ("save-10, step 11", 11), ("save-200, step 201", 201),
        ]  # fmt: skip
        assert capture.frames[0].meta["sweep"]["step_from"] == "the key 'step'"
        assert content(capture)["arrays"] == content(other)["arrays"]
    written(folder, (3000,))
    said = call("sweep", "run", "--subject", named, "--text", "abca", "--only", ",".join(ONLY), "--out", "s.inspect",
                "--workers", "1", cwd=tmp_path).stderr  # fmt: skip
    assert "1 frame computed, 3 there before." in said


def test_one_of_them_is_a_checkpoint_of_a_run(tmp_path: Path) -> None:
    folder = written(tmp_path / "run", (10,)) / "save-10"
    said = call("run", subject(tmp_path), "--checkpoint", str(folder), "--text", "abca", "--only", "states",
                "--out", "a.inspect", cwd=tmp_path).stderr  # fmt: skip
    assert "torch.distributed checkpoint, 1 file" in said and "all 7 tensors loaded" in said
