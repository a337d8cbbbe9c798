"""Curves over training as tables: of captures and of logs, in the terminal and in files."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from commands import call, called
from torch import nn

import inspector


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("curves") / "w.inspect"
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    with inspector.watch(model, optimizer, path, every=2) as watcher:
        for n in range(1, 21):
            loss = model(torch.randn(4, 2)).square().mean()
            loss.backward()
            optimizer.step()
            if n % 5 == 0:
                watcher.log(accuracy=n / 20 if n != 10 else math.nan)
            optimizer.zero_grad()
    return path


def test_a_table_of_a_watched_training(watched: Path) -> None:
    folder = watched.parent
    call("export", "w.inspect", "--curves", "--match", "*loss*", "--match", "accuracy", "--to", "c.csv", cwd=folder)
    rows = list(csv.DictReader((folder / "c.csv").read_text().splitlines()))
    assert [float(row["iteration"]) for row in rows] == [1, 2, 4, 5, 6, 8, 10, 12, 14, 15, 16, 18, 20]
    assert list(rows[0]) == ["iteration", "time", "training:loss", "training:logged[accuracy]"]
    with inspector.open_capture(watched) as capture:
        losses = [float(row["training:loss"]) for row in rows if row["training:loss"]]
        np.testing.assert_array_equal(losses, capture.array("training:loss"))
        assert rows[0]["time"] and float(rows[0]["time"]) == capture.array("training:time")[0]
    by = {float(row["iteration"]): row["training:logged[accuracy]"] for row in rows}
    assert (by[1], by[5], by[10], by[20]) == ("", "0.25", "nan", "1.0"), "what is not known is empty, NaN is a value"
    call("export", "w.inspect", "--curves", "--match", "accuracy", "--to", "c.json", cwd=folder)
    told = json.loads((folder / "c.json").read_text())
    assert [row["training:logged[accuracy]"] for row in told] == [0.25, "nan", 0.75, 1.0]


def test_parquet_has_nulls(watched: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    call("export", "w.inspect", "--curves", "--to", "c.parquet", cwd=watched.parent)
    table = parquet.read_table(watched.parent / "c.parquet").to_pydict()
    assert table["iteration"][:4] == [1, 2, 4, 5] and table["training:logged[accuracy]"][:4] == [None, None, None, 0.25]
    assert "parameters:weight/norm[0.weight]" in table


def test_a_list_of_curves(watched: Path) -> None:
    said = call("list", "w.inspect", "--curves", "--match", "accuracy", "--match", "*weight/norm*", cwd=watched.parent)
    head, *rows = said.stdout.splitlines()
    assert head.split() == ["curve", "points", "first", "last", "smallest", "largest"]
    (accuracy,) = [row for row in rows if "accuracy" in row]
    assert accuracy.split() == ["training:logged[accuracy]", "4", "0.25", "1", "0.25", "1", "1", "not", "finite"]
    assert len([row for row in rows if "weight/norm" in row]) == 4
    told = json.loads(call("list", "w.inspect", "--curves", "--json", cwd=watched.parent).stdout)
    assert next(row for row in told if row["name"] == "training:loss")["points"] == 11


def test_logs_of_several_runs_and_what_is_not_there(tmp_path: Path) -> None:
    for run, first in (("one", 0), ("two", 1)):
        (tmp_path / "runs" / run).mkdir(parents=True)
        rows = [f"{n},{n / 2}" for n in range(first, 6, 2)]
        (tmp_path / "runs" / run / "metrics.csv").write_text("\n".join(["step,loss", *rows, ""]))
    call("export", "runs", "--curves", "--to", "c.csv", cwd=tmp_path)
    rows = list(csv.reader((tmp_path / "c.csv").read_text().splitlines()))
    assert rows[0] == ["iteration", "one:loss", "two:loss"] and rows[1:3] == [["0", "0.0", ""], ["1", "", "0.5"]]
    call("export", "runs", "--curves", "--run", "two", "--to", "d.csv", cwd=tmp_path)
    assert len(list(csv.reader((tmp_path / "d.csv").read_text().splitlines()))) == 4
    assert (
        "No curve matches accuracy; there are one:loss"
        in called("export", "runs", "--curves", "--match", "accuracy", "--to", "e.csv", cwd=tmp_path).stderr
    )
    assert "Cannot write curves as '.png'" in called("export", "runs", "--curves", "--to", "e.png", cwd=tmp_path).stderr
    call("run", "char-gru", "--text", "Alice", "--only", "states", "--out", "s.inspect", cwd=tmp_path)
    assert "has no curves over training" in called("list", "s.inspect", "--curves", cwd=tmp_path).stderr
