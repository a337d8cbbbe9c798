"""W&B's offline files: pieces over blocks, the representations of keys and values, histograms, damage."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from log_files import BLOCK, history, item, part, wandb_file, wandb_records

from inspector.capture import CaptureError, curves_of, open_log, points_of
from inspector.capture.curves import further

NAME = "run-abc.wandb"
CONFIG = part(5, part(1, item(["lr"], 0.1)) + part(1, item(["model", "width"], 8)) + part(1, item(["_wandb"], {})))


def test_history_configuration_and_summary(tmp_path: Path) -> None:
    about = part(17, part(1, "abc") + part(3, "project") + part(8, "calm-lake-1") + part(4, part(1, item(["seed"], 3))))
    rows = [history(n, item(["loss"], 1 / (n + 1)), time=500.0 + n) for n in range(5)]
    summary = part(3, part(1, item(["loss"], 0.2)) + part(1, item(["best", "loss"], 0.1)))
    ending = part(18, part(2, 9))
    wandb_file(tmp_path / "wandb" / "offline-run-1-abc" / NAME, about, CONFIG, *rows, summary, ending)
    log = open_log(tmp_path)
    assert log.runs == ("abc",) and log.start.title == "calm-lake-1" and log.status == "done"
    assert log.start.meta["config"] == {"seed": 3, "lr": 0.1, "model/width": 8}
    assert log.start.meta["summary"] == {"loss": 0.2, "best/loss": 0.1}
    np.testing.assert_array_equal(log.array("log:loss"), [1 / (n + 1) for n in range(5)])
    np.testing.assert_array_equal(log.array("log:time"), range(5))
    assert log.start.created == 500 and not log.damage


def typed(keys: list[str], value: bytes) -> bytes:
    return b"".join(part(2, key) for key in keys) + value


def test_every_representation_of_keys_and_values(tmp_path: Path) -> None:
    wandb_file(
        tmp_path / NAME,
        history(
            0,
            item(["plain"], 1.5, nested=False), item(["one"], 2), item(["a", "b", "c"], 3),
            item(["object"], {"x": 4, "deep": {"y": 5}}), item(["nan"], b"NaN"), item(["inf"], b"-Infinity"),
            item(["text"], "Infinity"), item(["word"], "hello"), item(["yes"], True),
            typed(["integer"], part(5, 13)), typed(["number"], part(6, 0.25)), typed(["n", "s"], part(7, "NaN")),
            typed(["json"], part(8, '{"z": 6}')),
        ),
    )  # fmt: skip
    log = open_log(tmp_path)
    found = {name: float(log.array(name)[0]) for name, one in log.channels.items() if one.kind == "series"}
    expected = {
        "plain": 1.5, "one": 2, "a/b/c": 3, "object/x": 4, "object/deep/y": 5, "nan": np.nan, "inf": -np.inf, "text": np.inf,
        "integer": -7, "number": 0.25, "n/s": np.nan, "json/z": 6,
    }  # fmt: skip
    assert set(found) == {f"log:{name}" for name in expected}
    for name, value in expected.items():
        np.testing.assert_equal(found[f"log:{name}"], value)


def test_the_step_may_be_a_field_of_its_own(tmp_path: Path) -> None:
    rows = [part(2, part(1, item(["loss"], n)) + part(2, part(1, 10 * n))) for n in range(3)]
    wandb_file(tmp_path / NAME, *rows)
    log = open_log(tmp_path)
    assert list(log.array("log:iteration")) == [0, 10, 20]


def test_histograms_in_all_their_forms(tmp_path: Path) -> None:
    whole = {"_type": "histogram", "values": [1, 2], "bins": [0, 1, 2]}
    packed = {"_type": "histogram", "values": [3, 4, 5], "packedBins": {"min": -1, "size": 0.5, "count": 3}}
    parts = [item(["h", key], value) for key, value in whole.items()]
    wandb_file(tmp_path / NAME, history(0, item(["h"], whole)), history(1, *parts), history(2, item(["h"], packed)))
    log = open_log(tmp_path)
    np.testing.assert_array_equal(log.array("log:h"), [[1, 2, np.nan], [1, 2, np.nan], [3, 4, 5]])
    np.testing.assert_array_equal(log.array("log:h/edges")[2], [-1, -0.5, 0, 0.5])
    assert list(log.channels) == ["log:iteration", "log:time", "log:h", "log:h/edges"]


def test_records_over_several_blocks(tmp_path: Path) -> None:
    long = item(["text"], "x" * (3 * BLOCK))
    near = item(["fill"], "y" * (BLOCK - 300))
    rows = [history(n, item(["loss"], n), long if n % 3 == 0 else near) for n in range(20)]
    wandb_file(tmp_path / NAME, *rows)
    log = open_log(tmp_path)
    assert list(log.array("log:loss")) == list(range(20)) and not log.damage


@pytest.mark.parametrize("where", ["data", "checksum", "length", "type"])
def test_a_damaged_piece_takes_its_own_record_only(tmp_path: Path, where: str) -> None:
    filler = item(["fill"], "y" * 6000)
    rows = [history(n, item(["loss"], n), filler) for n in range(30)]
    path = wandb_file(tmp_path / NAME, *rows)
    data = bytearray(path.read_bytes())
    at = 7 + len(wandb_records(7, *rows[:7]))  # the eighth record, inside the second block
    data[at + {"checksum": 1, "length": 5, "type": 6, "data": 40}[where]] ^= 0x40
    path.write_bytes(data)
    log = open_log(tmp_path)
    found = set(log.array("log:loss"))
    assert 7.0 not in found and {0.0, 6.0, 29.0} < found and len(found) > 20
    assert f"byte {at:,}" in log.damaged[0]
    if where in ("data", "checksum"):
        assert len(found) == 29


def test_a_run_that_failed_and_another_version(tmp_path: Path) -> None:
    wandb_file(tmp_path / NAME, history(0, item(["x"], 1)), part(18, part(1, 1)))
    assert open_log(tmp_path).status == "failed"
    other = tmp_path / "run-new.wandb"
    other.write_bytes(b":W&B\xe1\xbe\x01" + bytes(50))
    with pytest.raises(
        CaptureError, match=r"run-new.wandb is not a W&B file that can be read: it begins with 3a572642e1be01"
    ):
        open_log(other)


def test_a_negative_number_of_the_typed_kind_is_zigzag(tmp_path: Path) -> None:
    wandb_file(tmp_path / NAME, history(0, typed(["x"], part(5, 1)), typed(["y"], part(5, 2**63))))
    log = open_log(tmp_path)
    assert log.array("log:x")[0] == -1 and log.array("log:y")[0] == float(2**62)


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there")
def test_the_link_to_the_latest_run_is_no_further_run(tmp_path: Path) -> None:
    folder = tmp_path / "wandb"
    for n in range(2):
        wandb_file(folder / f"offline-run-{n}-r{n}" / f"run-r{n}.wandb", history(0, item(["loss"], n)))
    (folder / "latest-run").symlink_to("offline-run-0-r0")
    log = open_log(folder)
    assert log.runs == ("r0", "r1") and len(log.source.files) == 2
    (folder / "latest-run").unlink()
    (folder / "latest-run").symlink_to("offline-run-1-r1")
    log.source._searched = -np.inf
    assert log.refresh() == frozenset() and log.runs == ("r0", "r1")


def metric(name: str, step: str = "", *, pattern: bool = False) -> bytes:
    return part(12, part(2 if pattern else 1, name) + (part(4, step) if step else b""))


def test_metrics_with_a_step_of_their_own(tmp_path: Path) -> None:
    """Curves keep W&B's step; the step metric is a coordinate beside it, by which they can be drawn."""
    rows = [metric("batch"), metric("val/*", "samples", pattern=True), metric("val/exact", "batch")]
    for n in range(4):
        rows.append(history(3 * n, item(["samples"], 100 * n), item(["batch"], 7 * n), item(["train"], n)))
        rows.append(history(3 * n + 1, item(["val/loss"], 1 / (n + 1))))  # the step metric as it was last
        rows.append(history(3 * n + 2, item(["val/exact"], n), item(["batch"], 7 * n + 1)))
    wandb_file(tmp_path / NAME, *rows)
    log = open_log(tmp_path)
    curves = {curve.name: curve for curve in curves_of(log)}
    assert further(log) == ("time", "batch", "samples") or further(log) == ("time", "samples", "batch")
    np.testing.assert_array_equal(points_of(log, curves["val/loss"]).x, [1, 4, 7, 10])
    np.testing.assert_array_equal(points_of(log, curves["val/loss"], "samples").x, [0, 100, 200, 300])
    np.testing.assert_array_equal(points_of(log, curves["val/exact"], "batch").x, [1, 8, 15, 22])
    assert {"samples", "batch", "train"} <= set(curves), "the step metrics are curves as well"


def reading(name: str, value: str) -> bytes:
    return part(3, part(1, name) + part(16, value))


def test_measurements_of_the_machine(tmp_path: Path) -> None:
    """They have a time and no step: they lie at the last step before them."""
    stats = [
        part(
            7, part(2, part(1, 1000 + n) + part(2, 500_000_000)) + reading("cpu", str(n)) + reading("gpu.0.temp", "NaN")
        )
        for n in range(3)
    ]
    rows = [history(n, item(["loss"], n), time=1000.0 + n) for n in range(3)]
    bad = part(7, part(2, part(1, 1004)) + reading("cpu", "{broken") + reading("disk", "7"))
    wandb_file(tmp_path / NAME, stats[0], rows[0], rows[1], stats[1], rows[2], stats[2], bad)
    log = open_log(tmp_path)
    curves = {curve.name: curve for curve in curves_of(log)}
    found = points_of(log, curves["system/cpu"])
    np.testing.assert_array_equal(found.x, [0, 1, 2])
    np.testing.assert_array_equal(found.y, [0, 1, 2])
    np.testing.assert_array_equal(points_of(log, curves["system/cpu"], "time").x, [0.5, 1.5, 2.5])
    assert np.isnan(points_of(log, curves["system/gpu.0.temp"]).y).all()
    assert points_of(log, curves["system/disk"]).y.tolist() == [7] and not log.damage
