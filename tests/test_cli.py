"""The command line: exit codes, one sentence on stderr, and results that equal the Python door's."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from captures import flip
from commands import apart, call
from torch import nn

import inspector
from inspector import cli
from inspector.capture import Writer
from inspector.records import Axis, Channel, Frame, Page, RunStart, RunStop
from inspector.workspace.demo import check_demo
from inspector.workspace.samples import list_samples


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
    printed = call("list", "a.inspect", "--json", cwd=run).stdout
    assert printed.startswith('{\n "'), "a line for each entry, indented, to be read by a person too"
    about = json.loads(printed)
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
    [("states", "png", b"\x89PNG"), ("jacobians", "svg", b"<?xml"), ("Lags", "pdf", b"%PDF")],
)
def test_figures_without_a_display(run: Path, panel: str, suffix: str, head: bytes) -> None:
    call("export", "a.inspect", "--panel", panel, "--place", "rnn.l0", "--to", f"f.{suffix}", cwd=run)
    data = (run / f"f.{suffix}").read_bytes()
    assert data.startswith(head) and len(data) > 5000


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


def test_list_names_the_axis_of_each_channel(tmp_path: Path) -> None:
    from click.testing import CliRunner

    about = Channel(
        name="decoder:h", kind="state", dims=("step", "unit"), shape=(4, 3), domains={"step": "answer step"}
    )
    with Writer(tmp_path / "a.inspect", RunStart(run="r", title="t")) as writer:
        writer.write(Axis(name="answer step", length=4))
        for channel in (about, replace(about, name="encoder:h", domains={})):
            writer.write(channel)
            writer.write(Page(channel.name, 0, (0, 0), np.zeros((4, 3), np.float32)))
        writer.write(RunStop("done"))
    path = str(tmp_path / "a.inspect")
    lines = CliRunner().invoke(cli.cli, ["list", path]).stdout
    assert "step (answer step) 4 × unit 3" in lines and "encoder:h  step 4 × unit 3" in lines
    told = json.loads(CliRunner().invoke(cli.cli, ["list", path, "--json"]).stdout)
    assert {row["name"]: row["axes"] for row in told["channels"]} == {
        "decoder:h": ["answer step", "unit"], "encoder:h": ["step", "unit"]
    }  # fmt: skip
    assert [(axis["name"], axis["length"], axis["layout"]) for axis in told["axes"]] == [("answer step", 4, "line")]


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

    monkeypatch.setattr("inspector.cli.listing.CHECKED_BYTES", 100)
    path = str(damaged / "a.inspect")
    told = CliRunner().invoke(cli.cli, ["list", path]).stdout
    assert "were not checked for damage; --check does" in told and "  damaged: " not in told
    assert CliRunner().invoke(cli.cli, ["list", path, "--check"]).stdout.count("  damaged: ") == 2


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["run", "nonsense"], 2, "no sample 'nonsense'"),
        (["run", "char-lsmt"], 2, "no sample 'char-lsmt' (close to it are char-lstm, "),
        (["char-lsmt"], 2, "no command, sample or recorded training 'char-lsmt'; close to it are char-lstm, "),
        (["open", "training-vanishin"], 2, "recorded training training-vanishin; close to it are training-vanishing, "),
        (["run", "char-gru", "--text", "naïve"], 2, "'ï' at position 2"),
        (["run", "char-gru", "--text", ""], 2, "empty"),
        (["run", "char-gru", "--ids", "1 2 x"], 2, "'x' is not a token id"),
        (["run", "char-gru", "--ids", "1 2 4000"], 2, "Id 4000 at step 2"),
        (["run", "char-gru", "--input", "missing.npy"], 2, "no file missing.npy"),
        (["run", "char-gru", "--generate", "noise"], 2, "reads tokens"),
        (["run", "digits-attention", "--text", "abc"], 2, "vectors of 8"),
        (["run", "char-gru", "--text", "a", "--ids", "1"], 2, "One kind of sequence"),
        (["run", "char-gru", "--with", "nonsense"], 2, "no quantity 'nonsense'"),
        (["run", "char-gru", "--only", "states,bppt"], 2, "no quantity 'bppt'; close to it is bptt."),
        (["run", "char-gru", "--with", "influence@steps=3"], 2, "quantity influence has no option 'steps'; there are"),
        (["run", "char-gru", "--with", "gradient/vectors@5:2"], 2, "steps is '5:2'; expected FROM:TO"),
        (["run", "char-gru", "--with", "bptt@3"], 2, "The quantity bptt has no option for '3'; it has none."),
        (["run", "char-gru", "--arguments", "{"], 2, "not JSON"),
        (["run", "char-gru", "--edit", "nonsense"], 2, "is no edit"),
        (["run", "char-gru", "--text", "Alice", "--edit", "rnn.l0:gate/nose=0"], 2, "no 'gate/nose'; there are h"),
        (["run", "char-gru", "--text", "Alice", "--edit", "input=ï@2"], 2, "'ï'"),
        (["run", "no.such.module:Model"], 2, "no module"),
        (["run", "weights.pt"], 2, "There is no file weights.pt; a checkpoint holds weights"),
        (["list", "missing.inspect"], 2, "no capture"),
        (["export", "missing.inspect", "--channel", "x", "--to", "x.npy"], 2, "no capture"),
        (["export", "missing.inspect", "--to", "x.npy"], 2, "what to export"),
        (["frobnicate"], 2, "frobnicate"),
        (["nothing.py"], 2, "no file, command, sample or recorded training nothing.py."),
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


@pytest.mark.parametrize("words", [(), ("open",)], ids=["bare", "open"])
def test_the_exit_code_of_the_window_is_that_of_the_command(
    monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.setattr(sys, "argv", ["inspector", *words])
    monkeypatch.setattr("inspector.cli.command._window", lambda *_, **__: 3)
    assert cli.main() == 3


def test_samples_and_recorded_trainings_open_by_their_names(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []
    monkeypatch.setattr("inspector.cli.command._window", lambda paths, *_, **__: asked.append(paths) or 0)
    for name in ("char-elman", "char_elman", "training-spike"):
        monkeypatch.setattr(sys, "argv", ["inspector", name])
        assert cli.main() == 0
    files = [[Path(one).name for one in paths] for paths in asked]
    assert files == [["char_elman.py"], ["char_elman.py"], ["spike.inspect"]] and all(
        Path(a).exists() for (a,) in asked
    )
    monkeypatch.setattr(sys, "argv", ["inspector", "char-elmann"])
    assert cli.main() == 2 and len(asked) == 3


def test_the_checkpoints_report_is_told_and_listed(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text("from torch import nn\ndef make():\n    return nn.GRU(3, 4, batch_first=True)\n")
    state = {f"module.{name}": value for name, value in nn.GRU(3, 4).state_dict().items()}
    state["module.extra\x1b[31m"] = state.pop("module.bias_hh_l0")
    torch.save({"ema": state, "model": {"a": torch.zeros(1)}}, tmp_path / "c.pt")
    run = ("run", "m.py:make", "--generate", "noise", "--checkpoint", "c.pt", "--out", "a.inspect")
    told = call(*run, "--partial", cwd=tmp_path).stderr
    assert "c.pt (torch, nested under 'ema'; the file also holds model): 3 of 4 tensors loaded." in told
    assert "prefix removed from the names: module." in told and "missing: 1 (bias_hh_l0 (model (12,)))" in told
    assert "unexpected: 1 (extra\\x1b[31m (shape (12,)))" in told and "\x1b" not in told
    assert "checkpoint: c.pt (torch, nested under 'ema'" in call("list", "a.inspect", cwd=tmp_path).stdout
    kept = json.loads(call("list", "a.inspect", "--json", cwd=tmp_path).stdout)["checkpoint"]
    assert kept["matched"] == 3 and kept["removed_prefix"] == "module." and len(kept["mismatches"]) == 2
    torch.save({"a": torch.zeros(1)}, tmp_path / "c.pt")
    none = call(*run, "--partial", "--overwrite", cwd=tmp_path, expect=2).stderr
    assert "none of the model's 4 tensors" in none and "It holds a (1,); the model has weight_ih_l0" in none


def test_demo_without_a_display_writes_everything_and_says_where(tmp_path: Path) -> None:
    told = apart("demo", cwd=tmp_path).stdout
    assert check_demo(tmp_path / "demo.inspect", tmp_path / "demo-panels"), "README's first command may be given twice"
    assert (tmp_path / "demo.inspect").is_dir() and "demo.inspect" in told
    pictures = sorted(path.stem for path in (tmp_path / "demo-panels").glob("*.png"))
    assert {"states", "gates", "jacobians", "lags", "gradients", "outputs", "health"} <= set(pictures)


def test_importing_the_package_imports_neither_qt_nor_torch() -> None:
    code = "import sys, inspector; print([m for m in ('torch', 'PySide6', 'numpy') if m in sys.modules])"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )


def test_a_frame_that_is_not_there_and_arguments_without_end(run: Path, tmp_path: Path) -> None:
    """Bad arguments end with 2 and one sentence."""
    from click.testing import CliRunner

    target = str(tmp_path / "h.npy")
    for frame in ("99", "-7"):
        told = CliRunner().invoke(
            cli.cli, ["export", str(run / "a.inspect"), "--channel", "rnn.l0:h", "--frame", frame, "--to", target]
        )
        assert "There is no frame" in told.output and not Path(target).exists()
        assert isinstance(told.exception, SystemExit) and told.exit_code
    told = CliRunner().invoke(cli.cli, ["run", "char-gru", "--arguments", "[" * 100_000])
    assert told.exit_code and "not JSON" in told.output


def test_diagnose_tells_findings_with_evidence_and_remedy(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def diagnose(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["inspector", "diagnose", *words])
        code = cli.main()
        return code, *capfd.readouterr()

    healthy = str(run / "a.inspect")
    code, out, err = diagnose(healthy, "--fail-on", "info")
    looked, short, not_looked, *others = out.splitlines()
    assert (code, err, looked) == (
        0,
        "",
        (
            "Nothing was found by along-batch, contracting-weight, detached-state, diverged, loss-spike, nonfinite, "
            "nonfinite-training, nothing-written, plateau, reach-through-time, saturated-states, short-memory."
        ),
    )
    assert short.startswith("Too few points to judge for constant-units (19 of 20 points), ")
    assert not_looked.startswith("Nothing to look at was captured for ") and "gradient-reach" in not_looked
    first = r"not computed; run `inspector preflight char-gru --checkpoint \S+ --out NAME\.inspect` and `inspector run "
    assert re.search(first, not_looked)
    assert all(line.startswith("Nothing to look at was captured for ") and ": " in line for line in others)
    counts = ("-inf", "<0", "0", ">0", "+inf", "nan", "first_bad_step")
    with Writer(tmp_path / "bad.inspect", RunStart(run="r", title="bad")) as writer:
        for frame in (0, 1):
            writer.write(Frame(index=frame, label=f"moment {frame}"))
        name = "rnn\x1b[2J:health/h"
        writer.write(
            Channel(name=name, kind="health", dims=("count",), shape=(7,), dtype="int64", labels={"count": counts})
        )
        writer.write(Page(name, 1, (0,), np.array([0, 1, 0, 1, 0, 2, 7])))
        writer.write(RunStop("done"))
    code, out, err = diagnose(str(tmp_path / "bad.inspect"))
    first, evidence, sure, unless, remedy, *_ = out.splitlines()
    assert code == 0 and not err and "\x1b" not in out
    assert sure.startswith("  sure: exact") and unless.startswith("  ")
    assert first == "error: moment 1: rnn⟨001b⟩[2J: h: 2 NaN of 4 values, first at step 7 [IN101 nonfinite]"
    assert evidence.startswith("  evidence: rnn") and remedy.startswith("  remedy: Go to the first step")
    code, out, err = diagnose(str(tmp_path / "bad.inspect"), "--json", "--fail-on", "warning")
    assert code == 1 and err == "There are findings of severity error.\n"
    (finding,) = json.loads(out)["findings"]
    assert (finding["rule"], finding["steps"], finding["frame"]) == ("nonfinite", [7], 1)
    assert diagnose(str(tmp_path / "none.inspect"))[0] == 2


@pytest.fixture
def unsure(tmp_path: Path) -> Path:
    """A healthy capture with a flipped bit in one of two tables of counts."""
    path = tmp_path / "unsure.inspect"
    counts = ("-inf", "<0", "0", ">0", "+inf", "nan", "first_bad_step")
    with Writer(path, RunStart(run="r", title="t")) as writer:
        writer.write(Frame(index=0, label="now"))
        for name in ("x:health/h", "y:health/h"):
            labels = {"count": counts}
            writer.write(Channel(name=name, kind="health", dims=("count",), shape=(7,), dtype="int64", labels=labels))
            writer.write(Page(name, 0, (0,), np.array([0, 1, 0, 1, 0, 0, -1])))
        writer.write(RunStop("done"))
    flip(path, 2)
    return path


@pytest.mark.parametrize(
    ("words", "code"),
    [([], 1), (["--fail-on", "error"], 1), (["--damaged"], 0), (["--damaged", "--fail-on", "info"], 0)],
)
def test_diagnose_says_which_rule_could_not_judge_and_why(unsure: Path, words: list[str], code: int) -> None:
    told = call("diagnose", str(unsure), *words, cwd=unsure.parent, expect=code)
    assert "found by" not in told.stdout and "No rule has judged this capture." in told.stdout
    (line,) = told.stderr.splitlines()
    assert line.startswith("nonfinite could not judge everything: 1 damaged page: y:health/h, counts 0–6: ")
    assert ("--damaged" in line) == (code == 1)
    told = call("diagnose", str(unsure), "--json", *words, cwd=unsure.parent, expect=code)
    found = json.loads(told.stdout)
    (one,) = found["unjudged"]
    assert found["asked"] == [] and one["rule"] == "nonfinite" and len(told.stderr.splitlines()) == 1
    assert (one["damage"][0]["channel"], one["damage"][0]["region"]) == ("y:health/h", [[0, 7]])
