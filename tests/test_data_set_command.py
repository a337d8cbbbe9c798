"""Many sequences on the command line: run, list, export, one of them alone, and what is refused."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from commands import call

import inspector

LINES = ("the queen", "the king of hearts", "§", "the knave of hearts", "oh dear oh", "oh no")
DATA = """
from types import SimpleNamespace
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(1, 2, batch_first=True)
    def forward(self, x):
        return self.rnn(x)[0]

def many():
    for length in (3, 3, 4):
        yield torch.ones(length, 1)

def make():
    torch.manual_seed(0)
    return SimpleNamespace(model=Model(), width=1, loss=lambda out, batch: out.square().sum(-1), data=many)
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("many")
    (folder / "lines.txt").write_text("\n".join(LINES), encoding="utf-8")
    call("run", "char-elman", "--data", "lines.txt", "--lines", "--out", "a.inspect", cwd=folder)
    return folder


def test_list_names_the_worst_and_what_was_not_run(run: Path) -> None:
    printed = call("list", "a.inspect", cwd=run).stdout
    assert "6 sequences, 1 of them could not be run" in printed
    assert "not run: § (2): Character '§'" in printed
    assert f"(from 5 sequences, {sum(map(len, LINES)) - 1} steps)" in printed
    rows = json.loads(call("list", "a.inspect", "--json", cwd=run).stdout)["sequences"]
    assert [row["name"] for row in rows] == list(LINES)
    worst = max((row for row in rows if row["sequences:loss"] is not None), key=lambda row: row["sequences:loss"])
    assert f"worst: {worst['name']} ({worst['sequence']})" in printed


def test_a_run_says_what_it_left_out(run: Path) -> None:
    (run / "folder").mkdir()
    for n in range(12):
        (run / "folder" / f"{n:02}.txt").write_text("oh" if n == 3 else "", encoding="utf-8")
    told = call("run", "char-elman", "--data", "folder", "--out", "told.inspect", cwd=run).stderr
    assert "11 of 12 sequences could not be run:" in told
    assert "not run: 00.txt (0): The text is empty" in told
    assert told.count("not run: ") == 11 and "not run: 1 more; export --sequences lists all of them" in told
    assert "could not be run" not in call("run", "char-elman", "--text", "oh", "--out", "one.inspect", cwd=run).stderr


def test_the_table_is_exported(run: Path) -> None:
    with inspector.open_capture(run / "a.inspect") as capture:
        losses = capture.array("sequences:loss")
    for name in ("a.csv", "a.json"):
        call("export", "a.inspect", "--sequences", "--to", name, cwd=run)
    with (run / "a.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["name"] for row in rows] == list(LINES) and rows[2]["sequences:loss"] == ""
    found = [float(row["sequences:loss"] or "nan") for row in rows]
    assert np.array_equal(found, losses, equal_nan=True)
    assert json.loads((run / "a.json").read_text(encoding="utf-8"))[2]["sequences:loss"] is None
    assert "there are .csv, .json, .parquet" in call(
        "export", "a.inspect", "--sequences", "--to", "a.npy", cwd=run, expect=2
    ).stderr  # fmt: skip


def test_one_of_them_alone(run: Path) -> None:
    call("run", "char-elman", "--data", "lines.txt", "--lines", "--number", "1", "--out", "b.inspect", cwd=run)
    with inspector.open_capture(run / "b.inspect") as alone, inspector.open_capture(run / "a.inspect") as many:
        assert "".join(alone.labels("step")) == LINES[1]
        mean = float(np.nanmean(alone.array("output:loss").astype(np.float64)))
        assert mean == pytest.approx(float(many.array("sequences:loss")[1]), rel=1e-5)


def test_a_subjects_own_data(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(DATA, encoding="utf-8")
    call("run", "mine.py:make", "--data", "subject", "--most", "2", "--out", "a.inspect", cwd=tmp_path)
    with inspector.open_capture(tmp_path / "a.inspect") as capture:
        assert capture.array("sequences:length").tolist() == [3, 3]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--data", "nowhere"), "There is no file or folder nowhere"),
        (("--data", "subject"), "gives no data of its own"),
        (("--data", "examples", "--text", "a"), "either it or one sequence"),
        (("--data", "examples", "--with", "bptt"), "belong to the run of one sequence"),
        (("--lines", "--text", "a"), "belong to --data"),
    ],
)
def test_what_cannot_be_is_bad_input(arguments: tuple[str, ...], said: str, tmp_path: Path) -> None:
    told = call("run", "char-elman", *arguments, "--out", "a.inspect", cwd=tmp_path, expect=2).stderr
    assert said in told and not (tmp_path / "a.inspect").exists()
