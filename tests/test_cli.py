"""The command line: exit codes, one sentence on stderr, and results that equal the Python door's."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from captures import flip

import inspector
from inspector.cli import cli
from inspector.workspace.samples import list_samples


def call(*arguments: str, cwd: Path, expect: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "inspector", *arguments], cwd=cwd, capture_output=True, text=True, timeout=120,
        env={**os.environ, "QT_QPA_PLATFORM": "offscreen"},
    )  # fmt: skip
    assert done.returncode == expect, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cli")
    call("run", "char-gru", "--text", "Alice was beginning", "--out", "a.inspect", cwd=folder)
    return folder


def test_samples(tmp_path: Path) -> None:
    listed = json.loads(call("samples", "--json", cwd=tmp_path).stdout)
    assert {row["name"] for row in listed} == {sample.name for sample in list_samples()}
    assert all(row["row"].startswith("S") and len(row["checkpoints"]) >= 6 for row in listed)
    assert "char-lstm" in call("samples", cwd=tmp_path).stdout


def test_list_and_export(run: Path) -> None:
    about = json.loads(call("list", "a.inspect", "--json", cwd=run).stdout)
    assert about["status"] == "done" and not about["damaged"]
    names = {row["name"]: row for row in about["channels"]}
    assert names["rnn.l0:gate/update"]["shape"] == [19, 48]
    assert "rnn.l0:gate/update" in call("list", "a.inspect", cwd=run).stdout
    call("export", "a.inspect", "--channel", "rnn.l0:h", "--to", "h.npy", cwd=run)
    with inspector.open_capture(run / "a.inspect") as capture:
        np.testing.assert_array_equal(np.load(run / "h.npy"), capture.array("rnn.l0:h"))


def test_the_python_door_gives_the_same_numbers(run: Path) -> None:
    with inspector.run("char-gru", "Alice was beginning") as ours, inspector.open_capture(run / "a.inspect") as theirs:
        assert list(ours.channels) == list(theirs.channels)
        for name in ("rnn.l0:h", "rnn.l0:gate/reset", "output:loss", "rnn.l0:jacobian/spectral_norm"):
            np.testing.assert_allclose(ours.array(name), theirs.array(name), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("panel", "suffix", "head"),
    [("states", "png", b"\x89PNG"), ("jacobians", "svg", b"<?xml"), ("lags", "pdf", b"%PDF")],
)
def test_figures_without_a_display(run: Path, panel: str, suffix: str, head: bytes) -> None:
    call("export", "a.inspect", "--panel", panel, "--place", "rnn.l0", "--to", f"f.{suffix}", cwd=run)
    data = (run / f"f.{suffix}").read_bytes()
    assert data.startswith(head) and len(data) > 5000


def test_a_repeated_text_is_a_batch_whose_chosen_sequence_is_shown(tmp_path: Path) -> None:
    texts = ["--text", "Alice", "--text", "The White Rabbit"]
    call("run", "char-gru", *texts, "--look-at", "1", "--out", "b.inspect", cwd=tmp_path)
    with (
        inspector.open_capture(tmp_path / "b.inspect") as batch,
        inspector.run("char-gru", "The White Rabbit") as alone,
    ):
        assert batch.array("rnn.l0:h").shape[0] == 16
        np.testing.assert_allclose(batch.array("rnn.l0:h"), alone.array("rnn.l0:h"), rtol=1e-4, atol=1e-5)


def test_pack(run: Path) -> None:
    call("pack", "a.inspect", "--to", "b.inspect.zip", cwd=run)
    assert "rnn.l0:h" in call("list", "b.inspect.zip", cwd=run).stdout


@pytest.fixture
def damaged(run: Path, tmp_path: Path) -> Path:
    """The same capture with a flipped bit in its token ids, and one in a state."""
    shutil.copytree(run / "a.inspect", tmp_path / "a.inspect")
    index = sqlite3.connect(tmp_path / "a.inspect" / "index.sqlite")
    for name in ("output:token", "rnn.l0:h"):
        (page,) = index.execute(
            "SELECT min(p.id) FROM pages p JOIN channels c ON c.id = p.channel WHERE c.name = ?", (name,)
        ).fetchone()
        flip(tmp_path / "a.inspect", page)
    index.close()
    return tmp_path


def test_list_names_what_is_damaged(run: Path, damaged: Path) -> None:
    assert "damaged" not in call("list", "a.inspect", cwd=run).stdout
    listed = [line for line in call("list", "a.inspect", cwd=damaged).stdout.splitlines() if "damaged" in line]
    assert len(listed) == 2 and listed[0].startswith("  damaged: rnn.l0:h, steps 0–")
    told = json.loads(call("list", "a.inspect", "--json", cwd=damaged).stdout)
    assert told["unchecked_bytes"] == 0
    one, two = told["damaged"]
    assert (one["channel"], one["frame"], one["region"][0][0], one["region"][1]) == ("rnn.l0:h", 0, 0, [0, 48])
    assert two["channel"] == "output:token" and "has changed since it was written" in two["sentence"]


def test_export_of_what_is_damaged_needs_to_be_asked_for(damaged: Path) -> None:
    for name, suffix in (("output:token", "csv"), ("output:token", "npy"), ("rnn.l0:h", "npy")):
        arguments = ["export", "a.inspect", "--channel", name, "--to", f"x.{suffix}"]
        told = call(*arguments, cwd=damaged, expect=1).stderr
        assert len(told.strip().splitlines()) == 1 and name in told and "--damaged" in told
        assert not (damaged / f"x.{suffix}").exists()
    told = call("export", "a.inspect", "--channel", "output:token", "--to", "x.csv", "--damaged", cwd=damaged).stderr
    assert len(told.strip().splitlines()) == 1 and "x.csv, without what is damaged: 1 damaged page" in told
    cells = [row.split(",")[2:] for row in (damaged / "x.csv").read_text(encoding="utf-8").splitlines()[1:]]
    assert len(cells) == 19 and {cell for row in cells for cell in row} == {""}
    told = call("export", "a.inspect", "--channel", "output:token", "--to", "x.npy", "--damaged", cwd=damaged, expect=2)
    assert ".npz" in told.stderr and not (damaged / "x.npy").exists()
    call("export", "a.inspect", "--channel", "output:loss", "--to", "loss.npy", cwd=damaged)


def test_a_figure_of_what_is_damaged_needs_to_be_asked_for(damaged: Path) -> None:
    arguments = ["export", "a.inspect", "--panel", "states", "--to", "x.png"]
    told = call(*arguments, cwd=damaged, expect=1).stderr
    assert len(told.strip().splitlines()) == 1 and "rnn.l0:h, steps 0–" in told and "--damaged" in told
    assert not (damaged / "x.png").exists()
    assert "without what is damaged" in call(*arguments, "--damaged", cwd=damaged).stderr
    assert (damaged / "x.png").stat().st_size > 5000
    call("export", "a.inspect", "--panel", "gates", "--to", "y.png", cwd=damaged)


def test_only_so_much_is_checked_unless_asked_for(damaged: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from click.testing import CliRunner

    monkeypatch.setattr("inspector.cli.CHECKED_BYTES", 100)
    path = str(damaged / "a.inspect")
    told = CliRunner().invoke(cli, ["list", path]).stdout
    assert "were not checked for damage; --check does" in told and "  damaged: " not in told
    assert CliRunner().invoke(cli, ["list", path, "--check"]).stdout.count("  damaged: ") == 2


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["run", "nonsense"], 2, "no sample 'nonsense'"),
        (["run", "char-gru", "--text", "naïve"], 2, "'ï' at position 2"),
        (["run", "char-gru", "--text", ""], 2, "empty"),
        (["run", "char-gru", "--ids", "1 2 x"], 2, "'x' is not a token id"),
        (["run", "char-gru", "--ids", "1 2 4000"], 2, "Id 4000 at step 2"),
        (["run", "char-gru", "--input", "missing.npy"], 2, "no file missing.npy"),
        (["run", "char-gru", "--generate", "noise"], 2, "reads tokens"),
        (["run", "digits-attention", "--text", "abc"], 2, "vectors of 8"),
        (["run", "char-gru", "--text", "a", "--ids", "1"], 2, "One kind of sequence"),
        (["run", "char-gru", "--with", "nonsense"], 2, "no quantity 'nonsense'"),
        (["run", "char-gru", "--arguments", "{"], 2, "not JSON"),
        (["run", "char-gru", "--edit", "nonsense"], 2, "is no edit"),
        (["run", "char-gru", "--text", "Alice", "--edit", "rnn.l0:gate/nose=0"], 2, "no 'gate/nose'; there are h"),
        (["run", "char-gru", "--text", "Alice", "--edit", "input=ï@2"], 2, "'ï'"),
        (["run", "no.such.module:Model"], 2, "no module"),
        (["run", "weights.pt"], 2, "it holds weights, not the model"),
        (["list", "missing.inspect"], 2, "no capture"),
        (["export", "missing.inspect", "--channel", "x", "--to", "x.npy"], 2, "no capture"),
        (["export", "missing.inspect", "--to", "x.npy"], 2, "what to export"),
        (["frobnicate"], 2, "frobnicate"),
        (["nothing.py"], 2, "no file nothing.py"),
    ],
)  # fmt: skip
def test_bad_input_gets_one_sentence(tmp_path: Path, arguments: list[str], code: int, said: str) -> None:
    told = call(*arguments, cwd=tmp_path, expect=code).stderr.strip()
    assert said in told and "Traceback" not in told
    assert len(told.splitlines()) == 1, told


def test_a_model_that_raises_exits_with_1_and_keeps_its_capture(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import torch\nfrom torch import nn\n"
        "class M(nn.Module):\n    def __init__(self, size):\n        super().__init__()\n        self.rnn = nn.GRU(2, size)\n"
        "    def forward(self, x):\n        self.rnn(x)\n        raise RuntimeError('out of ideas')\n"
    )
    told = call("run", "mine.py:M", "--arguments", '{"size": 3}', "--out", "m.inspect", cwd=tmp_path, expect=1).stderr
    assert "out of ideas" in told and "mine.py, line 9" in told and "Traceback" not in told
    assert json.loads(call("list", "m.inspect", "--json", cwd=tmp_path).stdout)["status"] == "failed"
    wrong = call("run", "mine.py:M", "--out", "n.inspect", cwd=tmp_path, expect=2).stderr
    assert "missing" in wrong and "size" in wrong


def test_demo_without_a_display_writes_everything_and_says_where(tmp_path: Path) -> None:
    told = call("demo", cwd=tmp_path).stdout
    assert (tmp_path / "demo.inspect").is_dir() and "demo.inspect" in told
    pictures = sorted(path.stem for path in (tmp_path / "demo-panels").glob("*.png"))
    assert {"states", "gates", "jacobians", "lags", "gradients", "outputs", "health"} <= set(pictures)


def test_importing_the_package_imports_neither_qt_nor_torch() -> None:
    code = "import sys, inspector; print([m for m in ('torch', 'PySide6', 'numpy') if m in sys.modules])"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )
