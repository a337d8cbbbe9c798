"""A folder of checkpoints as the frames of one capture."""

from __future__ import annotations

import json
import os
import threading
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sweeping import ONLY, checkpoints, content, subject, times_made, weights

import inspector
from inspector.capture import CaptureError
from inspector.capture.references import checked_frame
from inspector.engine.errors import InputError, ModelError
from inspector.engine.session.sweep import frames
from inspector.engine.session.sweep.conduct import Conductor, Listener, Outcome
from inspector.engine.session.sweep.one_frame import Maker
from inspector.records import InputSpec, Load, Run, Sweep


def request(tmp_path: Path, folder: Path, *, workers: int = 1, **more: Any) -> Sweep:
    return Sweep(
        paths=(str(folder),), load=Load(subject=subject(tmp_path), trusted=True),
        run=Run(path=str(tmp_path / "s.inspect"), input=InputSpec(kind="text", value="abca"), only=ONLY),
        workers=workers, **more,
    )  # fmt: skip


def conducted(sweep: Sweep, logs: list[str] | None = None, **listener: Any) -> Outcome:
    told: list[str] = [] if logs is None else logs
    return Conductor(sweep, Maker(), Listener(log=lambda log: told.append(log.text), **listener)).run()


def test_each_frame_has_the_numbers_of_a_run_of_its_checkpoint_alone(tmp_path: Path) -> None:
    folder = checkpoints(tmp_path / "run", (200, 0, 10))
    with inspector.sweep(folder, subject(tmp_path), "abca", only=ONLY) as swept:
        assert [(f.index, f.label, f.step) for f in swept.frames] == [
            (0, "model-0.pt, step 0", 0), (1, "model-10.pt, step 10", 10), (2, "model-200.pt, step 200", 200),
        ]  # fmt: skip
        assert swept.status == "done" and not swept.verify()
        for frame in swept.frames:
            path = str(folder / f"model-{frame.step}.pt")
            with inspector.run(subject(tmp_path), "abca", only=ONLY, checkpoint=path) as alone:
                assert alone.channels
                for name in alone.channels:
                    np.testing.assert_array_equal(swept.array(name, frame.index), alone.array(name))
        losses = [one.value for one in swept.scalars if one.name == "output:loss/mean"]
        assert len(set(losses)) == 3
        horizons = [one.frame for one in swept.scalars if one.name.endswith("lag_horizon")]
        assert horizons == [0, 1, 2]


def test_several_processes_give_what_one_gives_in_the_order_of_the_steps(tmp_path: Path) -> None:
    folder = checkpoints(tmp_path / "run", (0, 10, 200, 3000))
    (folder / "model-10.pt").write_bytes((folder / "model-10.pt").read_bytes()[:500])
    one = inspector.sweep(folder, subject(tmp_path), "abca", only=ONLY)
    several = inspector.sweep(folder, subject(tmp_path), "abca", only=ONLY, workers=2)
    with one, several:
        assert content(one) == content(several)
        assert len(one.frames) == 4 and len(one.refusals) >= 1


def test_what_fails_is_told_and_the_sweep_goes_on(tmp_path: Path) -> None:
    folder = checkpoints(tmp_path / "run", (0, 30))
    torch.save({"model": weights(1), "step": 5}, folder / "model-5.pt")
    whole = (folder / "model-5.pt").read_bytes()
    (folder / "model-5.pt").write_bytes(whole[: len(whole) // 2])
    torch.save({"model": {**weights(2), "head.bias": torch.zeros(9)}, "step": 10}, folder / "model-10.pt")
    torch.save({"model": weights(3, 98.0), "step": 20}, folder / "model-20.pt")
    logs: list[str] = []
    outcome = conducted(request(tmp_path, folder), logs)
    assert (outcome.computed, outcome.failed) == (2, 3) and outcome.sentence == "2 frames computed, 3 failed."
    with inspector.open_capture(tmp_path / "s.inspect") as capture:
        told = {one.frame: one.reason for one in capture.refusals if one.channel == "run:checkpoint"}
        assert [frame.index for frame in capture.frames] == [0, 1, 2, 3, 4]
        assert "model-5.pt is damaged or cut short" in told[1] and "head.bias (shape" in told[2]
        assert "RuntimeError" in told[3] and "does not like its bias" in told[3] and set(told) == {1, 2, 3}
        assert {number for _, number in _arrays(capture)} == {0, 4}
        assert any(log.level == "error" and "model-10.pt" in log.text for log in capture.logs)


def _arrays(capture: Any) -> list[tuple[str, int]]:
    """(channel, frame) of all numbers."""
    return list(capture._arrays)


def test_where_all_fail_nothing_is_written(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    for step in (1, 2):
        (folder / f"model-{step}.pt").write_bytes(b"PK nothing")
    with pytest.raises(
        ModelError, match=r"None of 2 checkpoints could be run, so nothing was captured; the first: model-1"
    ):
        conducted(request(tmp_path, folder))
    assert not (tmp_path / "s.inspect").exists()


def test_a_wrong_subject_or_sequence_is_told_before_any_checkpoint_is_tried(tmp_path: Path) -> None:
    folder = checkpoints(tmp_path / "run")
    with pytest.raises(InputError, match="no quantity 'stats'"):
        inspector.sweep(folder, subject(tmp_path), only="stats")
    with pytest.raises(InputError, match="vocabulary"):
        inspector.sweep(folder, subject(tmp_path), "xyz", only=ONLY)
    with pytest.raises(InputError, match=r"There is no checkpoint in .*; .*run has 3\."):
        inspector.sweep(tmp_path, subject(tmp_path), only=ONLY)
    with pytest.raises(InputError, match=r"There is no .*nowhere; expected a folder"):
        inspector.sweep(tmp_path / "nowhere", subject(tmp_path), only=ONLY)


def test_a_finished_frame_is_not_computed_again(tmp_path: Path) -> None:
    folder, out = checkpoints(tmp_path / "run"), tmp_path / "s.inspect"
    inspector.sweep(folder, subject(tmp_path), "abca", only=ONLY, out=out).close()
    assert times_made(tmp_path) == 4  # once to see whether the model and the sequence are right
    inspector.sweep(folder, subject(tmp_path), "abca", only=ONLY, out=out).close()
    assert times_made(tmp_path) == 1
    checkpoints(folder, (3000,))
    with inspector.sweep(folder, subject(tmp_path), "abca", only=ONLY, out=out) as more:
        assert times_made(tmp_path) == 2
        assert [frame.step for frame in more.frames] == [0, 10, 200, 3000] and more.status == "done"
        with inspector.sweep(folder, subject(tmp_path), "abca", only=ONLY) as at_once:
            assert content(more) == content(at_once)


def test_what_is_true_of_the_model_is_said_once(tmp_path: Path) -> None:
    class GivesLoss(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rnn = torch.nn.GRU(3, 4, batch_first=True)

        def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
            logits = self.rnn(x)[0]
            return {"loss": logits.square().mean(), "logits": logits}

    model = GivesLoss()
    (tmp_path / "run").mkdir()
    for step in (1, 2, 3):
        torch.save({"model": model.state_dict(), "step": step, "seed": step}, tmp_path / "run" / f"{step}.pt")
    with inspector.sweep(tmp_path / "run", model, np.zeros((4, 3), np.float32), only="states") as swept:
        texts = [log.text for log in swept.logs]
        assert len(texts) == len(set(texts)) > 0 and len(swept.frames) == 3


def test_other_settings_are_told_and_nothing_is_mixed(tmp_path: Path) -> None:
    folder, out = checkpoints(tmp_path / "run"), tmp_path / "s.inspect"
    inspector.sweep(folder, subject(tmp_path), "abca", only=ONLY, out=out).close()
    with pytest.raises(InputError, match=r"other settings: --seed \(0 before, 1 now\)"):
        inspector.sweep(folder, subject(tmp_path), "abca", only=ONLY, out=out, seed=1)
    with pytest.raises(InputError, match=r"other settings: the sequence; --only\."):
        inspector.sweep(folder, subject(tmp_path), "abcc", only="states", out=out)
    code = tmp_path / "tagger.py"
    named = subject(tmp_path)
    code.write_text(code.read_text() + "\n# changed")
    with pytest.raises(InputError, match="the subject's file"):
        inspector.sweep(folder, named, "abca", only=ONLY, out=out)
    with inspector.sweep(folder, named, "abcd", only=ONLY, out=out, overwrite=True) as anew:
        assert len(anew.frames) == 3
    with inspector.run(named, "abca", only=ONLY, out=tmp_path / "r.inspect"):
        pass
    with pytest.raises(CaptureError, match="already holds a capture"):
        inspector.sweep(folder, named, "abca", only=ONLY, out=tmp_path / "r.inspect")


def test_a_checkpoint_that_has_changed_gets_another_frame(tmp_path: Path) -> None:
    folder = checkpoints(tmp_path / "run", (0, 10))
    torch.save({"model": weights(7), "step": 7}, folder / "last.pt")
    conducted(request(tmp_path, folder))
    torch.save({"model": weights(20), "step": 20}, folder / "last.pt")
    logs: list[str] = []
    assert conducted(request(tmp_path, folder), logs).computed == 1
    assert any("last.pt has changed since frame 1 was computed (" in text and "content" in text for text in logs)
    with inspector.open_capture(tmp_path / "s.inspect") as capture:
        assert [(one.index, one.step) for one in capture.frames] == [(0, 0), (1, 7), (2, 10), (3, 20)]


class _After:
    """Cancels when some frames were computed."""

    def __init__(self, sweep: Sweep, count: int) -> None:
        self.path, self.count = Path(sweep.run.path), count

    def __call__(self) -> bool:
        if not self.path.exists():
            return False
        with inspector.open_capture(self.path) as capture:
            return sum(bool(one.meta["sweep"].get("finished")) for one in capture.frames) >= self.count


def test_a_checkpoint_that_changes_while_others_are_computed_is_not_taken_for_the_old_one(tmp_path: Path) -> None:
    """As a `last.pt` that a training writes again: the frame would have the new numbers under the old identity."""
    folder = checkpoints(tmp_path / "run", (0, 10, 200))
    last = folder / "model-200.pt"

    def change(done: float, _total: float, _text: str) -> None:
        if done == 1:
            torch.save(weights(7), last)

    logs: list[str] = []
    outcome = conducted(request(tmp_path, folder), logs, progress=change)
    assert (outcome.computed, outcome.failed) == (2, 1)
    assert any("model-200.pt has changed since this sweep listed it" in text for text in logs)
    assert conducted(request(tmp_path, folder)).computed == 1
    with inspector.open_capture(tmp_path / "s.inspect") as swept:
        index = max(frame.index for frame in swept.frames if frame.step == 200)
        with inspector.run(subject(tmp_path), "abca", only=ONLY, checkpoint=str(last)) as alone:
            name = next(iter(alone.channels))
            np.testing.assert_array_equal(swept.array(name, index), alone.array(name))


def test_a_cancelled_sweep_keeps_what_is_finished_and_goes_on_later(tmp_path: Path) -> None:
    folder = checkpoints(tmp_path / "run", (0, 1, 2, 3))
    sweep = request(tmp_path, folder)
    outcome = conducted(sweep, cancelled=_After(sweep, 2))
    assert outcome.cancelled and outcome.computed == 2
    with inspector.open_capture(tmp_path / "s.inspect") as capture:
        assert capture.status == "cancelled" and [one.step for one in capture.frames] == [0, 1]
    assert conducted(sweep).sentence == "2 frames computed, 2 there before."
    with (
        inspector.open_capture(tmp_path / "s.inspect") as capture,
        inspector.sweep(folder, subject(tmp_path), "abca", only=ONLY) as at_once,
    ):
        assert content(capture) == content(at_once) and capture.status == "done"


@pytest.mark.parametrize("records", [3, 12, 30])
def test_a_frame_that_was_being_merged_when_the_sweep_was_killed_is_completed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, records: int
) -> None:
    folder, sweep = checkpoints(tmp_path / "run"), request(tmp_path, checkpoints(tmp_path / "run"))
    spooled, calls = frames.spooled, []

    def cut(file: Any) -> Any:
        calls.append(file)
        for number, record in enumerate(spooled(file)):
            if len(calls) == 2 and number == records:
                raise KeyError("killed")
            yield record

    with monkeypatch.context() as patch:
        patch.setattr(frames, "spooled", cut)
        with pytest.raises(KeyError):
            conducted(sweep)
    assert conducted(sweep).computed == 2
    with (
        inspector.open_capture(tmp_path / "s.inspect") as capture,
        inspector.sweep(folder, subject(tmp_path), "abca", only=ONLY) as at_once,
    ):
        assert content(capture) == content(at_once)


def test_the_capture_of_a_sweep_that_was_killed_is_continued(tmp_path: Path) -> None:
    """The lease of a process that is dead stays in the index."""
    folder = checkpoints(tmp_path / "run", (0, 1))
    sweep = request(tmp_path, folder)
    conducted(sweep)
    import sqlite3

    with sqlite3.connect(tmp_path / "s.inspect" / "index.sqlite") as index:
        index.execute("INSERT INTO lease VALUES (NULL, 999999, 'nobody:1#abc', 'abc')")
    index.close()
    checkpoints(folder, (2,))
    assert conducted(sweep).computed == 1
    with inspector.open_capture(tmp_path / "s.inspect") as capture:
        assert len(capture.frames) == 3 and not capture.verify()


def test_a_process_that_dies_in_a_frame_is_tried_again_once_and_told(tmp_path: Path) -> None:
    folder = checkpoints(tmp_path / "run", (0, 20))
    torch.save({"model": weights(3, 99.0), "step": 10}, folder / "model-10.pt")
    outcome = conducted(request(tmp_path, folder, workers=2))
    assert (outcome.computed, outcome.failed) == (2, 1)
    with inspector.open_capture(tmp_path / "s.inspect") as capture:
        (told,) = (one for one in capture.refusals if one.channel == "run:checkpoint")
        assert told.frame == 1 and "exit code 7" in told.reason


def test_new_checkpoints_are_taken_when_they_are_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inspector.engine.session.sweep.following.SETTLE_SECONDS", 0.1)
    monkeypatch.setattr("inspector.engine.session.sweep.conduct.LOOK_SECONDS", 0.1)
    folder, end = checkpoints(tmp_path / "run", (0,)), threading.Event()
    whole = (checkpoints(tmp_path / "other", (10,)) / "model-10.pt").read_bytes()
    half = folder / "model-10.pt"
    found: list[Any] = []
    sweep = request(tmp_path, folder, follow=True)

    def go() -> None:
        found.append(conducted(sweep, cancelled=end.is_set))

    thread = threading.Thread(target=go)
    thread.start()
    _until(lambda: _finished(tmp_path) == 1)
    half.write_bytes(whole[:700])
    time.sleep(1.0)  # longer than it takes to be looked at several times
    assert _finished(tmp_path) == 1
    half.write_bytes(whole)
    _until(lambda: _finished(tmp_path) == 2)
    end.set()
    thread.join(60)
    assert found and found[0].failed == 0 and found[0].computed == 2
    with inspector.open_capture(tmp_path / "s.inspect") as capture:
        assert capture.status == "done" and [one.step for one in capture.frames] == [0, 10]


def _finished(tmp_path: Path) -> int:
    if not (tmp_path / "s.inspect" / "index.sqlite").exists():
        return 0
    try:
        with inspector.open_capture(tmp_path / "s.inspect") as capture:
            return sum(bool(one.meta["sweep"].get("finished")) for one in capture.frames)
    except CaptureError:
        return 0


def _until(what: Any, seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)


def test_a_model_object_is_as_it_was(tmp_path: Path) -> None:
    from types import SimpleNamespace

    folder = tmp_path / "run"
    folder.mkdir()
    torch.manual_seed(0)
    model = torch.nn.GRU(3, 4, batch_first=True)
    for step in (1, 2):
        other = torch.nn.GRU(3, 4, batch_first=True)
        torch.save({"state_dict": {f"model.{k}": v for k, v in other.state_dict().items()}, "global_step": step,
                    "pytorch-lightning_version": "2"}, folder / f"epoch={step}.ckpt")  # fmt: skip
    before = {name: value.clone() for name, value in model.state_dict().items()}
    numbers = np.random.default_rng(0).normal(size=(6, 3)).astype(np.float32)
    with inspector.sweep(folder, model, numbers, only="states", out=tmp_path / "m.inspect") as swept:
        assert [one.step for one in swept.frames] == [1, 2]
        assert not np.array_equal(
            swept.array(next(iter(swept.channels)), 0), swept.array(next(iter(swept.channels)), 1)
        )
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    with pytest.raises(InputError, match=r"other settings: the subject \(GRU before, LSTM now\)\."):
        inspector.sweep(folder, torch.nn.LSTM(3, 4), numbers, only="states", out=tmp_path / "m.inspect")
    with pytest.raises(InputError, match=r"other settings: the sequence\."):
        inspector.sweep(folder, model, numbers + 1, only="states", out=tmp_path / "m.inspect")
    with pytest.raises(InputError, match="stay in this process"):
        inspector.sweep(folder, SimpleNamespace(model=model), numbers, only="states", workers=2)


def test_folders_of_hugging_faces_and_links(tmp_path: Path) -> None:
    from safetensors.torch import save_file

    folder = tmp_path / "out"
    for step in (500, 1000, 60):
        (folder / f"checkpoint-{step}").mkdir(parents=True)
        save_file(weights(step), folder / f"checkpoint-{step}" / "model.safetensors")
        torch.save({"a": torch.zeros(3)}, folder / f"checkpoint-{step}" / "optimizer.pt")
        (folder / f"checkpoint-{step}" / "trainer_state.json").write_text(json.dumps({"global_step": step + 1}))
    save_file(weights(2000), folder / "model.safetensors")
    (folder / "trainer_state.json").write_text(json.dumps({"global_step": 2000}))
    torch.save({"args": 1}, folder / "training_args.bin")
    if hasattr(os, "symlink"):
        (folder / "last").symlink_to(folder / "checkpoint-1000")
    logs: list[str] = []
    conducted(request(tmp_path, folder), logs)
    with inspector.open_capture(tmp_path / "s.inspect") as capture:
        assert [(one.label, one.step) for one in capture.frames] == [
            ("checkpoint-60, step 61", 61), ("checkpoint-500, step 501", 501), ("checkpoint-1000, step 1001", 1001),
            ("model.safetensors, step 2000", 2000),
        ]  # fmt: skip
        assert capture.frames[0].meta["sweep"]["step_from"] == "global_step in trainer_state.json"
    assert "in the order of the step that each tells itself" in logs[0]


def test_progress_tells_how_long_the_rest_takes(tmp_path: Path) -> None:
    folder, told = checkpoints(tmp_path / "run"), []
    conducted(request(tmp_path, folder), progress=lambda *one: told.append(one))
    assert any(text.startswith("1 of 3, ") and " left · " in text for _, _, text in told)
    assert told[-1][0] == told[-1][1] == 3.0
    assert all(a <= b for (a, _, _), (b, _, _) in pairwise(told))


def test_a_frame_that_comes_late_has_its_place_in_training(tmp_path: Path) -> None:
    folder = checkpoints(tmp_path / "run", (0, 20))
    conducted(request(tmp_path, folder))
    checkpoints(folder, (10, 30))
    conducted(request(tmp_path, folder))
    with inspector.open_capture(tmp_path / "s.inspect") as capture:
        assert [(one.index, one.step) for one in capture.frames] == [(0, 0), (2, 10), (1, 20), (3, 30)]
    checkpoints(folder, (5,))
    conducted(request(tmp_path, folder))
    with inspector.open_capture(tmp_path / "s.inspect") as capture:
        assert [(one.index, one.step) for one in capture.frames] == [(0, 0), (4, 5), (2, 10), (1, 20), (3, 30)]
        assert {capture.frame_of(name) for name in capture.channels} == {3}, "the newest is the last of training"
        (lag,) = (name for name in capture.channels if name.endswith("jacobian/lag"))
        along = capture.over_frames(lag, "horizon")
        assert along.frames == (0, 4, 2, 1, 3) and along.iterations.tolist() == [0, 5, 10, 20, 30]
    assert checked_frame(capture, -1) == 3


def test_a_cluster_needs_dask_or_a_scheduler(tmp_path: Path) -> None:
    sweep = replace(request(tmp_path, checkpoints(tmp_path / "run", (0,))), scheduler="tcp://127.0.0.1:9")
    with pytest.raises(InputError, match=r"needs dask\.distributed|There is no dask scheduler"):
        conducted(sweep)
    assert not (tmp_path / "s.inspect").exists()
