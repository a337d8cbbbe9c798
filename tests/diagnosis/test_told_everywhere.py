"""One finding that repeats from frame to frame is one on the terminal, in JSON and in SARIF; and too few iterations."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from commands import call
from torch import nn

import inspector
from inspector.capture import Writer, open_capture
from inspector.diagnosis import diagnose
from inspector.diagnosis.scarce import scarce
from inspector.records import TRAINED, Channel, Frame, Page, RunStart, RunStop, Scalar

COUNTS = ("-inf", "<0", "0", ">0", "+inf", "nan", "first_bad_step")


def test_a_finding_of_several_frames_is_one_everywhere(tmp_path: Path) -> None:
    with Writer(tmp_path / "r.inspect", RunStart(run="r", title="t")) as writer:
        for frame in range(4):
            writer.write(Frame(index=frame, label=f"iteration {10 * frame}"))
        for name in ("a:health/h", "b:health/h"):
            labels = {"count": COUNTS}
            writer.write(Channel(name=name, kind="health", dims=("count",), shape=(7,), dtype="int64", labels=labels))
            for frame in range(4):
                bad = frame if name[0] == "a" or frame == 3 else 0
                writer.write(Page(name, frame, (0,), np.array([0, 1, 0, 1, 0, bad, 7 if bad else -1])))
        writer.write(RunStop("done"))
    told = call("diagnose", "r.inspect", "--sarif", "r.sarif", cwd=tmp_path).stdout
    assert told.count("[IN101 nonfinite]") == 2
    where = "3 of 4 frames, iteration 10 to iteration 30"
    assert f"  frames: {where}; the numbers are of iteration 30" in told and told.count("  frames: ") == 1
    found = json.loads(call("diagnose", "r.inspect", "--json", cwd=tmp_path).stdout)["findings"]
    frames = [{"count": 3, "first": 1, "last": 3, "all": [1, 2, 3]}, {"count": 1, "first": 3, "last": 3, "all": [3]}]
    assert [(one["name"], one["frames"], one["frame"]) for one in found] == [
        ("IN101@a", frames[0], 3), ("IN101@b", frames[1], 3)
    ]  # fmt: skip
    assert "3 NaN of" in found[0]["message"]  # of the frame that is named
    (run,) = json.loads((tmp_path / "r.sarif").read_text())["runs"]
    assert [(one["properties"]["frames"], one["partialFingerprints"]) for one in run["results"]] == [
        (frames[0], {"inspectorFinding/v1": "IN101@a"}), (frames[1], {"inspectorFinding/v1": "IN101@b"})
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("recorded", "done", "every", "said"),
    [
        (3, 600, None, "Only 3 of 600 iterations were recorded (as many as 2 % of the time allow), too few for"),
        (3, 600, 300, "Only 3 of 600 iterations were recorded (every=300), too few for"),
        (3, 600_000, None, "every=600, probe=batch, probe_every=60000"),
        (70, 600, None, "No probe was taken"),  # enough for each rule
        (5, 5, 1, "No probe was taken"),  # all that there was: recording more often cannot help
    ],
)
def test_too_little_that_was_recorded_is_told_with_how_to_record_more(
    tmp_path: Path, recorded: int, done: int, every: int | None, said: str
) -> None:
    meta = {"training": {"watch": {"every": every, "share": 0.02}}}
    at = np.linspace(1, done, recorded)
    with Writer(tmp_path / "r.inspect", RunStart(run="r", title="t", meta=meta)) as writer:
        for name, kind, values in (
            ("training:iteration", "coordinate", at), ("training:loss", "series", np.linspace(2, 1, recorded))
        ):  # fmt: skip
            writer.write(Channel(name=name, kind=kind, dims=("iteration",), shape=(None,), dtype="float64",
                                 title=name.partition(":")[2]))  # fmt: skip
            writer.write(Page(name, 0, (0,), values))
        writer.write(Scalar(TRAINED, -1, done))
        writer.write(RunStop("done"))
    with open_capture(tmp_path / "r.inspect") as capture:
        told = scarce(capture, diagnose(capture, capture.frames))
    assert said in told and "probe=batch" in told and ("path, every=" in told) == (recorded == 3)
    assert told in call("diagnose", "r.inspect", cwd=tmp_path).stdout
    assert told == json.loads(call("diagnose", "r.inspect", "--json", cwd=tmp_path).stdout)["scarce"]


@pytest.mark.parametrize(("last", "told"), [(39, True), (40, False)])
def test_a_probe_at_the_beginning_alone_is_told(tmp_path: Path, last: int, told: bool) -> None:
    """A tenth of 400 iterations is the border."""
    meta = {"training": {"watch": {"every": 1, "share": 0.02}}}
    with Writer(tmp_path / "r.inspect", RunStart(run="r", title="t", meta=meta)) as writer:
        for name, kind in (("training:iteration", "coordinate"), ("training:loss", "series")):
            writer.write(Channel(name=name, kind=kind, dims=("iteration",), shape=(None,), dtype="float64", title=name))
            writer.write(Page(name, 0, (0,), np.linspace(1, 400, 400)))
        writer.write(Channel(name="rnn:h", kind="state", dims=("step", "unit"), shape=(2, 2), dtype="float64"))
        for index, step in enumerate((0, last)):
            writer.write(Frame(index=index, label=f"iteration {step}", step=step))
            writer.write(Page("rnn:h", index, (0, 0), np.ones((2, 2))))
        writer.write(Scalar(TRAINED, -1, 400))
        writer.write(RunStop("done"))
    with open_capture(tmp_path / "r.inspect") as capture:
        said = scarce(capture, diagnose(capture, capture.frames))
    assert ("The last probe was taken at iteration 39 of 400" in said and "probe_every=40" in said) == told


def test_a_loop_that_never_makes_a_step_is_told(tmp_path: Path) -> None:
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    with inspector.watch(model, optimizer, tmp_path / "r.inspect", every=1):
        for _ in range(5):
            optimizer.zero_grad()
            model(torch.ones(1, 2)).sum().backward()
    with open_capture(tmp_path / "r.inspect") as capture:
        said = scarce(capture, diagnose(capture, capture.frames))
    assert "no step() of a watched optimizer has been seen" in said
    assert said in call("diagnose", "r.inspect", cwd=tmp_path).stdout


def test_a_watched_training_says_how_long_it_was(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    with inspector.watch(model, optimizer, tmp_path / "r.inspect", every=30):
        for _ in range(65):
            optimizer.zero_grad()
            model(torch.ones(1, 2)).sum().backward()
            optimizer.step()
    with open_capture(tmp_path / "r.inspect") as capture:
        assert [one.value for one in capture.scalars if one.name == TRAINED] == [65.0]
        assert "Only 3 of 65 iterations were recorded (every=30)" in scarce(capture, diagnose(capture, capture.frames))
    with open_capture(
        Path(__file__).parents[2] / "sample_models/illnesses/recorded/plateau/ill/run.inspect"
    ) as capture:
        assert "Only" not in scarce(capture, diagnose(capture, capture.frames))
