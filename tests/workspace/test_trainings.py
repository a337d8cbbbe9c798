"""Recorded trainings: listed without importing one, and in each what its card says, from the numbers of its capture."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from commands import call
from safetensors import safe_open

import inspector
from inspector.capture import Capture
from inspector.cli import main
from inspector.workspace.samples import list_samples
from inspector.workspace.trainings import find_training, list_trainings, path_or_training, read_training
from sample_models import record
from sample_models.trainings import spike

NAMES = {"training-dead-units", "training-exploding", "training-healthy", "training-spike", "training-vanishing"}
MOST_BYTES = 2 << 20
GUESSING = np.log(8)
RECORDED_SINCE = {
    "modules:activation/effective_rank", "modules:activation/effective_rank_spread", "training:evaluation_mode",
    "training:gradient_kept", "training:weights/before", "training:weights/after", "parameters:gradient/unused_block",
    "parameters:gradient/float16_subnormal", "parameters:gradient/float16_zero", "training:graph/nodes", "training:iteration/graph", "training:time/graph",
    *(f"training:asked/{word}" for word in ("own", "others", "outputs", "differ", "given", "numbers", "ahead", "ahead_input")),
}  # fmt: skip
"""Series of a watched training than which the captures that are kept are older."""


@pytest.fixture
def opened(request: pytest.FixtureRequest) -> Iterator[Capture]:
    training = find_training(request.param)
    assert training is not None
    with inspector.open_capture(training.capture) as capture:
        assert isinstance(capture, Capture)
        yield capture


def losses(capture: Capture) -> Any:
    return capture.array("training:loss")


def reach(capture: Capture, frame: int) -> float:
    """‖∂L/∂h‖ thirty steps before the last one, over that at the last one: the loss is that of the last step."""
    norms = capture.array("rnn.l0:gradient/state_norm", frame)
    return float(norms[-31] / norms[-1])


def test_they_are_listed_without_importing_one() -> None:
    code = (
        "import sys; from inspector.workspace.trainings import list_trainings; n = len(list_trainings());"
        "print(n, 'torch' in sys.modules, 'sample_models' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["5", "False", "False"]
    assert {one.name for one in list_trainings()} == NAMES
    assert not NAMES & {sample.name for sample in list_samples()}
    for one in list_trainings():
        assert one.title and one.task and one.shows
        assert sum(path.stat().st_size for path in one.capture.rglob("*") if path.is_file()) < MOST_BYTES


def test_a_file_without_card_or_capture_is_none(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text("SAMPLE = {'name': 'a'}\n")
    assert read_training(file) is None
    file.write_text("TRAINING = {'name': __import__('os').getcwd()}\n")
    assert read_training(file) is None


def test_the_commands_know_them_by_name(tmp_path: Path) -> None:
    listed = json.loads(call("samples", "--trainings", "--json", cwd=tmp_path).stdout)
    assert {row["name"] for row in listed} == NAMES and all(Path(row["capture"]).is_dir() for row in listed)
    assert all(name in call("samples", cwd=tmp_path).stdout for name in NAMES)
    about = json.loads(call("list", "training-spike", "--json", cwd=tmp_path).stdout)
    assert about["status"] == "done" and not about["damaged"]


def test_a_file_of_that_name_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert path_or_training("training-spike").endswith("spike.inspect") and path_or_training("none") == "none"
    Path("training-spike").mkdir()
    assert path_or_training("training-spike") == "training-spike"


@pytest.mark.parametrize("opened", sorted(NAMES), indirect=True)
def test_each_is_whole(opened: Capture) -> None:
    assert opened.status == "done" and not opened.verify(None) and not opened.refusals
    assert len(opened.frames) >= 5 and len(losses(opened)) >= 80
    for event in opened.events:
        name = event.text.partition("kept in ")[2]
        assert not name or (opened.path / name).is_file(), event


@pytest.mark.parametrize("opened", ["training-vanishing"], indirect=True)
def test_gradients_vanish(opened: Capture) -> None:
    for frame in range(len(opened.frames)):
        assert reach(opened, frame) < 1e-6
    assert abs(losses(opened)[-20:].mean() - GUESSING) < 0.05, "and nothing is learned"
    norms = opened.array("training:gradient_norm")[:, 0]
    assert np.median(norms) > 0.05, "which the norm of the whole gradient does not tell"


@pytest.mark.parametrize("opened", ["training-healthy"], indirect=True)
def test_gradients_reach_the_first_step_of_the_healthy_one(opened: Capture) -> None:
    assert all(reach(opened, frame) > 0.05 for frame in range(3)), "while it is learned"
    assert losses(opened)[0] > 2 and losses(opened)[-20:].mean() < 0.05


@pytest.mark.parametrize("opened", ["training-exploding"], indirect=True)
def test_gradients_explode(opened: Capture) -> None:
    lags = opened.channel("rnn.l0:jacobian/lag")
    median = opened.array("rnn.l0:jacobian/lag", 0)[lags.labels["statistic"].index("median")]
    assert median[30] > 1e3, "the products of step Jacobians by lag"
    assert np.median(opened.array("training:gradient_norm")[:, 0]) > 1e3
    assert losses(opened)[-10:].mean() > 3, "counting characters costs 3.1 nat"


@pytest.mark.parametrize("opened", ["training-dead-units"], indirect=True)
def test_units_die(opened: Capture) -> None:
    names = opened.labels("module")
    zero = opened.array("modules:activation/zero")[:, names.index("rnn")]
    assert zero[0] < 0.7 < 0.85 < zero[10:].min(), "the share of zeros"
    assert (opened.array("rnn.l0:h", 0) == 0).all(0).mean() < 0.35
    for frame in range(1, len(opened.frames)):
        assert (opened.array("rnn.l0:h", frame) == 0).all(0).mean() > 0.85, "units that are zero at every step"
    assert losses(opened)[-10:].mean() > 0.5, "the usual rate gets to 0.1"


@pytest.mark.parametrize("opened", ["training-spike"], indirect=True)
def test_the_loss_spikes_where_a_batch_is_spoiled(opened: Capture) -> None:
    numbers, loss = opened.array("training:iteration"), losses(opened)
    at = int(np.flatnonzero(numbers == spike.SPOILED)[0])
    assert loss[at] > 100 * np.median(loss) and np.argmax(loss) == at
    assert loss[at + 1] > 2 * np.median(loss[:at]) and loss[at + 30 :].max() < np.median(loss[:at]) * 1.5
    first = next(event for event in opened.events if event.kind == "spike")
    assert first.iteration == spike.SPOILED and opened.frames[first.frame].step == spike.SPOILED
    with safe_open(opened.path / first.text.partition("kept in ")[2], "pt") as kept:
        batch = kept.get_tensor(f"iteration {spike.SPOILED}/call 0/args/0")
    largest = batch.abs().amax((1, 2))
    assert int(largest.argmax()) == spike.ROW and largest.max() > 20 * largest.median(), "the batch that did it is kept"


@pytest.mark.parametrize("name", sorted(NAMES))
def test_it_can_be_recorded_again(name: str, tmp_path: Path) -> None:
    """The same losses, up to rounding: kernels differ between processors, and an exploding gradient magnifies it."""
    training = find_training(name)
    assert training is not None and training.file.stem in record.names()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        plan = importlib.import_module(f"sample_models.trainings.{training.file.stem}").build()
        plan.probe_every = 1000
        record.record(plan, tmp_path / "again.inspect", steps=12)
    finally:
        torch.set_num_threads(threads)
    with inspector.open_capture(tmp_path / "again.inspect") as again, inspector.open_capture(training.capture) as kept:
        same = len(losses(again))
        np.testing.assert_array_equal(again.array("training:iteration"), kept.array("training:iteration")[:same])
        np.testing.assert_allclose(losses(again)[:1], losses(kept)[:1], rtol=1e-3)
        rtol = 1e-2 if name == "training-exploding" else 1e-3
        np.testing.assert_allclose(losses(again), losses(kept)[:same], rtol=rtol)
        assert set(kept.channels) <= set(again.channels) <= set(kept.channels) | RECORDED_SINCE


@pytest.mark.parametrize(
    ("opened", "steps"), [("training-vanishing", 11), ("training-healthy", np.inf)], indirect=["opened"]
)
def test_the_horizon_over_training_is_as_readme_says(opened: Capture, steps: float) -> None:
    found = opened.over_frames("rnn.l0:jacobian/lag", "horizon")
    assert len(opened.frames) == 5 and (np.array(found.values) == steps).all()


def test_a_name_instead_of_a_command_opens_the_window_on_it(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []
    monkeypatch.setattr("inspector.cli.command._window", lambda paths, _python, *_at, **_new: asked.append(paths) or 0)
    monkeypatch.setattr(sys, "argv", ["inspector", "training-spike"])
    assert main() == 0
    assert asked == [[path_or_training("training-spike")]] and asked[0][0].endswith("spike.inspect")
