"""Logs that the libraries themselves write here, read without them: every number compared with what was logged."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from inspector.capture import LogView, curves_of, open_log, points_of

LOSS = [1.0, 0.5, math.nan, math.inf, -math.inf, 0.125]


def values(log: LogView, name: str) -> dict[float, float]:
    """Iteration → value of a curve."""
    axis = log.channel(f"log:{name}").domain("iteration")
    known = log.known(f"log:{name}")
    return dict(zip(log.array(f"log:{axis}")[known].tolist(), log.array(f"log:{name}")[known].tolist(), strict=True))


def logged(numbers: list[float], every: int = 1) -> dict[float, float]:
    return {every * n: value for n, value in enumerate(numbers)}


def in_a_process(code: str, *arguments: str, folder: Path, **more: str) -> None:
    """Run some code where its files, threads and settings are its own."""
    home = {"HOME": str(folder), "XDG_CACHE_HOME": str(folder / "cache"), "XDG_CONFIG_HOME": str(folder / "config")}
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=folder, capture_output=True, text=True, timeout=240,
        env={**os.environ, **home, **more},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


# -- TensorBoard


@pytest.mark.parametrize("library", ["tensorboard"], indirect=True)
def test_torchs_writer_in_all_its_encodings(library: Any, tmp_path: Path) -> None:
    from torch.utils.tensorboard import SummaryWriter

    rng = np.random.default_rng(0)
    samples = rng.normal(size=500)
    with SummaryWriter(str(tmp_path / "run")) as writer:
        for n, value in enumerate(LOSS):
            writer.add_scalar("train/loss", value, 10 * n)
            writer.add_scalar("tensor", value, 10 * n, new_style=True)
            writer.add_scalar("double", value / 3, 10 * n, new_style=True, double_precision=True)
        writer.add_histogram("weights", samples, 0)
        writer.add_histogram_raw("raw", 0, 5, 10, 20, 60, [1, 2, 5], [4, 3, 3], 1)
        writer.add_scalars("both/parts", {"a": 1.0, "b": 2.0}, 3)
        writer.add_text("note", "hello")
        writer.add_image("picture", np.zeros((3, 4, 4)), 0)
        writer.add_hparams({"lr": 0.1, "optimizer": "adam"}, {"best": 0.5}, run_name="settings")
    log = open_log(tmp_path / "run", "run")
    np.testing.assert_equal(values(log, "train/loss"), logged(LOSS, 10))
    np.testing.assert_equal(values(log, "tensor"), logged(LOSS, 10))
    np.testing.assert_equal(values(log, "double"), logged([value / 3 for value in LOSS], 10))
    assert values(log, "both/parts/a") == {3: 1} and values(log, "both/parts/b") == {3: 2} and not log.damage
    edges, counts = log.array("log:weights/edges")[0], log.array("log:weights")[0]
    np.testing.assert_array_equal(np.histogram(samples, edges)[0], counts)
    assert counts.sum() == len(samples) and list(log.array("log:raw")[0]) == [4, 3, 3]
    assert log.runs == ("run", "settings") and "hello" in str(log.start.meta["texts"])
    assert log.one("settings").start.meta["config"] == {"lr": 0.1, "optimizer": "adam"}
    assert values(log.one("settings"), "best") == {0: 0.5}


@pytest.mark.parametrize("library", ["tensorboard.backend.event_processing.event_accumulator"], indirect=True)
def test_the_same_points_as_tensorboard_shows(library: Any, tmp_path: Path) -> None:
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(tmp_path)) as writer:
        for n in range(300):
            writer.add_scalar("a", math.sin(n), n)
            if n % 7 == 0:
                writer.add_histogram("h", np.arange(n + 1.0), n)
    theirs = library.EventAccumulator(str(tmp_path), size_guidance={"scalars": 0, "histograms": 0})
    theirs.Reload()
    log = open_log(tmp_path)
    assert values(log, "a") == {one.step: one.value for one in theirs.Scalars("a")}
    times = np.array([one.wall_time for one in theirs.Scalars("a")])
    np.testing.assert_allclose(log.array("log:time") + log.start.created, times, atol=1e-3)
    for row, one in enumerate(theirs.Histograms("h")):
        total = np.nansum(log.block("log:h", -1, (slice(row, row + 1),)))
        assert total == one.histogram_value.num


@pytest.mark.parametrize("library", ["tensorboard.summary"], indirect=True)
def test_tensorboards_own_writer(library: Any, tmp_path: Path) -> None:
    writer = library.Writer(str(tmp_path))
    for n, value in enumerate(LOSS):
        writer.add_scalar("loss", value, n)
    writer.close()
    np.testing.assert_equal(values(open_log(tmp_path), "loss"), logged(LOSS))


@pytest.mark.parametrize("library", ["tensorboard"], indirect=True)
def test_a_writer_that_purges_and_one_that_is_still_open(library: Any, tmp_path: Path) -> None:
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(tmp_path)) as writer:
        for n in range(10):
            writer.add_scalar("loss", n, n)
    time.sleep(1.1)  # event files are named by the second
    writer = SummaryWriter(str(tmp_path), purge_step=6)
    writer.add_scalar("loss", 60, 6)
    writer.flush()
    log = open_log(tmp_path)
    assert values(log, "loss") == {**logged([float(n) for n in range(6)]), 6: 60}
    assert [(one.kind, one.iteration) for one in log.events] == [("restart", 6)]
    writer.add_scalar("loss", 70, 7)
    writer.close()
    log.refresh()
    assert values(log, "loss")[7] == 70 and not log.damage


# -- W&B

WANDB = """
import math, sys, wandb
loss = [1.0, 0.5, math.nan, math.inf, -math.inf, 0.125]
with wandb.init(project="p", name="calm", config={"lr": 0.1, "model": {"width": 8}}, mode="offline", dir=sys.argv[1],
                settings=wandb.Settings(disable_git=True, x_disable_stats=True, console="off")) as run:
    for n, value in enumerate(loss):
        row = {"train/loss": value, "deep": {"a": {"b": n}}, "n": n}
        if n % 2 == 0:
            row["w"] = wandb.Histogram(np_histogram=([1, 2, n], [0, 1, 2, 4]))
        run.log(row, step=10 * n)
    run.summary["best"] = 0.5
"""


@pytest.mark.parametrize("library", ["wandb"], indirect=True)
def test_an_offline_run_of_wandb(library: Any, tmp_path: Path) -> None:
    in_a_process(WANDB, str(tmp_path), folder=tmp_path, WANDB_SILENT="true")
    log = open_log(tmp_path / "wandb")
    np.testing.assert_equal(values(log, "train/loss"), logged(LOSS, 10))
    assert values(log, "deep/a/b") == logged([float(n) for n in range(6)], 10) and not log.damage
    assert log.start.title == "calm" and log.status == "done"
    assert log.start.meta["config"] == {"lr": 0.1, "model": {"width": 8}} and log.start.meta["summary"]["best"] == 0.5
    np.testing.assert_array_equal(log.array("log:w"), [[1, 2, 0], [1, 2, 2], [1, 2, 4]])
    np.testing.assert_array_equal(log.array("log:w/edges")[0], [0, 1, 2, 4])


METRICS = """
import sys, time, wandb
with wandb.init(project="p", mode="offline", dir=sys.argv[1],
                settings=wandb.Settings(disable_git=True, console="off", x_stats_sampling_interval=0.1)) as run:
    run.define_metric("val/*", step_metric="samples")
    for n in range(6):
        run.log({"loss": 1 / (n + 1), "samples": 32 * n})
        if n % 2:
            run.log({"val/loss": n})
        time.sleep(0.3)
"""


@pytest.mark.parametrize("library", ["wandb"], indirect=True)
def test_step_metrics_and_the_machine_as_wandb_writes_them(library: Any, tmp_path: Path) -> None:
    in_a_process(METRICS, str(tmp_path), folder=tmp_path, WANDB_SILENT="true")
    log = open_log(tmp_path / "wandb")
    curves = {curve.name: curve for curve in curves_of(log)}
    np.testing.assert_array_equal(points_of(log, curves["val/loss"], "samples").x, [32, 96, 160])
    assert len(points_of(log, curves["system/cpu"]).y) and not log.damage


# -- Trackio

TRACKIO = """
import math, trackio
loss = [1.0, 0.5, math.nan, math.inf, -math.inf, 0.125]
for name in ("one", "two"):
    trackio.init(project="p", name=name, config={"lr": 0.1}, embed=False)
    for n, value in enumerate(loss):
        trackio.log({"loss": value, "deep": {"a": n}, "h": trackio.Histogram(np_histogram=([1, n], [0, 1, 2]))}, step=10 * n)
    trackio.finish()
"""


@pytest.mark.parametrize("library", ["trackio"], indirect=True)
def test_a_database_of_trackio(library: Any, tmp_path: Path) -> None:
    in_a_process(
        TRACKIO,
        folder=tmp_path,
        TRACKIO_DIR=str(tmp_path / "trackio"),
        HF_HUB_OFFLINE="1",
        GRADIO_ANALYTICS_ENABLED="False",
    )
    (path,) = (tmp_path / "trackio").rglob("p.db")
    log = open_log(path, "two")
    assert log.runs == ("one", "two") and not log.damage
    np.testing.assert_equal(values(log, "loss"), logged(LOSS, 10))
    assert values(log, "deep/a") == logged([float(n) for n in range(6)], 10)
    assert log.start.meta["config"]["lr"] == 0.1
    np.testing.assert_array_equal(log.array("log:h"), [[1, n] for n in range(6)])


# -- Lightning


@pytest.mark.parametrize("library", ["lightning.pytorch.loggers"], indirect=True)
def test_lightnings_csv_logger(library: Any, tmp_path: Path) -> None:
    logger = library.CSVLogger(str(tmp_path), flush_logs_every_n_steps=1)
    logger.log_hyperparams({"lr": 0.1, "name": "tiny", "deep": {"width": 8}})
    rows: list[tuple[int, Mapping[str, float]]] = [
        (n, {"train_loss": value, "epoch": n // 2}) for n, value in enumerate(LOSS)
    ]
    for step, row in rows[:3]:
        logger.log_metrics(dict(row), step)
    logger.save()
    log = open_log(tmp_path)
    np.testing.assert_equal(values(log, "train_loss"), logged(LOSS[:3]))
    for step, row in rows[3:]:
        logger.log_metrics(dict(row), step)
    logger.log_metrics({"val_loss": 0.75, "epoch": 2}, 5)  # a new column: the file is written anew
    logger.save()
    log.refresh()
    np.testing.assert_equal(values(log, "train_loss"), logged(LOSS))
    assert values(log, "val_loss") == {5: 0.75} and not log.damage
    assert {"lr": 0.1, "name": "tiny"}.items() <= log.start.meta["config"].items()


# -- Hugging Face

TRAINER = """
import sys, torch
from transformers import Trainer, TrainingArguments
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.line = nn.Linear(2, 1)

    def forward(self, x, labels):
        out = self.line(x)
        return {"loss": (out - labels).square().mean(), "out": out}

data = [{"x": torch.tensor([1.0, float(n)]), "labels": torch.tensor([2.0 * n])} for n in range(8)]
arguments = TrainingArguments(sys.argv[1], max_steps=6, logging_steps=1, eval_strategy="steps", eval_steps=3, save_steps=3,
    per_device_train_batch_size=2, report_to=["tensorboard"], use_cpu=True, disable_tqdm=True, save_safetensors=False
    ) if "save_safetensors" in TrainingArguments.__dataclass_fields__ else TrainingArguments(sys.argv[1], max_steps=6,
    logging_steps=1, eval_strategy="steps", eval_steps=3, save_steps=3, per_device_train_batch_size=2,
    report_to=["tensorboard"], use_cpu=True, disable_tqdm=True)
trainer = Trainer(Model(), arguments, train_dataset=data, eval_dataset=data)
trainer.train()
trainer.save_state()
"""


@pytest.mark.parametrize("library", ["transformers"], indirect=True)
def test_a_trainer_writes_its_state_and_event_files(library: Any, tmp_path: Path) -> None:
    in_a_process(
        TRAINER, str(tmp_path / "out"), folder=tmp_path, TENSORBOARD_LOGGING_DIR=str(tmp_path / "out" / "runs")
    )
    state = open_log(tmp_path / "out" / "trainer_state.json")
    assert list(values(state, "loss")) == [1, 2, 3, 4, 5, 6] and list(values(state, "eval_loss")) == [3, 6]
    assert "train_loss" in state.start.meta["summary"] and "log:train_runtime" not in state.channels
    folder = open_log(tmp_path / "out")
    (events,) = [run for run in folder.runs if "log:train/loss" in folder.one(run).channels]
    theirs = values(folder.one(events), "train/loss")
    assert {step: pytest.approx(value, rel=1e-6) for step, value in values(state, "loss").items()} == theirs
    assert len(folder.runs) == 2 and not folder.damage, "the states of the checkpoints are one run"
