"""One file of each kind in an installed package of its own is seen at work everywhere, with no other edit.

The files are the examples of docs/adding, word for word.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import commands
import numpy as np
import pytest
import torch
from commands import Done
from foreign_package import GROUPS, PAGES, environment, examples, install_broken, install_examples

import inspector
from inspector.analysis.cures import tried

SHELL = """
import json, sys
from pathlib import Path
from commands import called
from inspector.engine.session.catalogue import catalog
catalog()  # as in a worker: entries of packages are loaded before any code is checked
told = sys.stdout
for line in sys.stdin:
    done = called(*json.loads(line), cwd=Path.cwd())
    print(json.dumps([done.code, done.stdout, done.stderr]), file=told, flush=True)
"""


class Shell:
    """One interpreter that finds the packages, for many commands: each with its worker in a thread."""

    def __init__(self, site: Path) -> None:
        own = environment(site)
        own["PYTHONPATH"] = os.pathsep.join((own["PYTHONPATH"], str(Path(commands.__file__).parent)))
        own |= {f"XDG_{name}_HOME": str(site.parent / name) for name in ("CONFIG", "DATA", "CACHE", "STATE")}
        self.process = subprocess.Popen(
            [sys.executable, "-c", SHELL], cwd=site.parent, env=own, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True,
        )  # fmt: skip

    def __call__(self, *arguments: str, expect: int = 0) -> Done:
        """A command in the folder beside the packages."""
        assert self.process.stdin is not None and self.process.stdout is not None
        print(json.dumps(arguments), file=self.process.stdin, flush=True)
        done = Done(*json.loads(self.process.stdout.readline()))
        assert done.code == expect, done.stdout + done.stderr
        return done

    def close(self) -> None:
        """End it, and see that it ended well."""
        self.process.communicate()
        assert self.process.returncode == 0


@pytest.fixture(scope="module")
def shell(site: Path) -> Iterator[Shell]:
    """With one run of the sample."""
    made = Shell(site)
    made("run", "leaky", "--with", "largest_state@root=2", "--out", "a.inspect")
    yield made
    made.close()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of installed packages with `other`; the worker that is a process is in the window's test."""
    folder = tmp_path_factory.mktemp("own") / "site"
    install_examples(folder)
    return folder


def test_each_page_has_one_whole_file_and_the_table_names_it() -> None:
    table = (PAGES / "README.md").read_text(encoding="utf-8")
    assert set(examples()) == set(GROUPS) == {path.stem for path in PAGES.glob("*.md")} - {"README"}
    for page, group in GROUPS.items():
        assert f"`inspector.{group}`" in table and f"]({page}.md)" in table


def test_the_catalogue_and_the_samples_list_them(shell: Shell) -> None:
    told = json.loads(shell("catalogue", "--json").stdout)
    keys = {kind: {entry["key"] for entry in entries} for kind, entries in told.items()}
    for kind, key in {
        "quantities": "largest_state", "cells": "leaky", "probes": "linear-outputs", "loaders": "weights-text", "inputs": "ramp",
        "panels": "largest", "rules": "quiet-state", "samples": "leaky", "logs": "printed", "cures": "double_weights",
    }.items():  # fmt: skip
        assert key in keys[kind], kind
    (ramp,) = [entry for entry in told["inputs"] if entry["key"] == "ramp"]
    assert ramp["options"][0]["name"] == "steps" and ramp["suffixes"] == [".ramp"] and ramp["form"] == "line"
    assert "Leaky units" in shell("samples").stdout


def test_quantity_cells_probe_and_sample_in_a_run(site: Path, shell: Shell) -> None:
    listed = {row["name"]: row for row in json.loads(shell("list", "a.inspect", "--json").stdout)["channels"]}
    assert listed["rnn.l0:largest"]["kind"] == listed["head:largest"]["kind"] == "largest"
    assert {"rnn.l0:candidate", "rnn.l0:jacobian/spectral_norm"} <= set(listed), "the family of cells is known"
    shell("export", "a.inspect", "--channel", "rnn.l0:largest", "--to", "largest.npy")
    with inspector.open_capture(site.parent / "a.inspect") as capture:
        assert not capture.refusals
        expected = np.sqrt(np.abs(capture.array("rnn.l0:h")).max(1))
        np.testing.assert_allclose(np.load(site.parent / "largest.npy"), expected, rtol=1e-6)


def test_the_panel_is_drawn_and_the_rule_is_asked(site: Path, shell: Shell) -> None:
    shell("export", "a.inspect", "--panel", "largest", "--to", "largest.png")
    assert (site.parent / "largest.png").read_bytes().startswith(b"\x89PNG")
    shell(
        "run",
        "leaky",
        "--as",
        "ramp",
        "0 1e-3",
        "--only",
        "states",
        "--with",
        "largest_state",
        "--out",
        "quiet.inspect",
    )
    out = shell("diagnose", "quiet.inspect").stdout
    assert "info: rnn.l0: the largest entry of all steps is" in out and "[QS401 quiet-state]" in out
    assert shell("diagnose", "quiet.inspect", "--fail-on", "info", expect=1).stderr


def test_the_cure_is_tried_for_the_finding_of_the_rule(site: Path, shell: Shell) -> None:
    shell("run", "leaky", "--as", "ramp", "0 1e-3", "--with", "largest_state", "--out", "still.inspect")
    said = shell("try", "still.inspect", "--steps", "3", "--seeds", "2", "--rate", "0").stdout
    assert said.startswith("double_weights  Double the weights: nothing differs from seed to seed: it is one trial")
    assert "After 3 steps, the cured loss is " in said and "2 seeds" not in said
    assert "judged by what they learned from (1 sequence in 1 call)" in said
    assert "learning rate 0; 3 weight matrices are doubled; 1 sequence in 1 call" in said
    with inspector.open_capture(site.parent / "still.inspect") as capture:
        (one,) = tried(capture)
        assert (one.cure, one.outcome, one.lower, one.seeds) == ("double_weights", "one seed", 0, 2)
        assert capture.status == "done" and "rnn.l0:largest" in capture.channels and not capture.damage
    listed = {rule["id"]: rule for rule in json.loads(shell("rules", "--json").stdout)}
    assert listed["QS401"]["cures"] == ["double_weights"] and "the model's code" in listed["IN103"]["untried"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("leaky", "--subject", "leaky"), "--subject gives the model of a capture; leaky is none.\n"),
        (("training-healthy",), "--subject file.py:callable names it.\n"),
        (("a.inspect",), "--cure tries one of "),
        (("leaky", "--cure", "open_memory"), "Nothing could be tried.\n"),
    ],
)
def test_what_cannot_be_tried_ends_with_a_sentence(shell: Shell, words: tuple[str, ...], sentence: str) -> None:
    code = 1 if "open_memory" in words else 2
    done = shell("try", *words, "--steps", "1", "--seeds", "1", expect=code)
    assert sentence in done.stderr
    if code == 1:
        assert "not tried: The model has no nn.LSTM" in done.stdout


def test_python_tries_it_on_an_object_and_for_a_capture(tmp_path: Path) -> None:
    torch.manual_seed(0)
    loss = lambda output, batch: output[..., 0].square()  # noqa: E731
    made = SimpleNamespace(model=torch.nn.Linear(3, 1), width=3, loss=loss)
    with inspector.run(made, torch.ones(4, 3), out=tmp_path / "a.inspect") as capture:
        found = inspector.try_cure(capture, "smaller_rate", torch.ones(4, 3), steps=5, subject=made, rate=0.1)
        assert [one.cure for one in found.tried] == ["smaller_rate"] and not found.refused
        assert found.capture is capture and "model:trial/cure/smaller_rate" in capture.channels
        with pytest.raises(inspector.capture.CaptureError, match="is only in"):
            inspector.try_cure(
                capture, "smaller_rate", torch.ones(4, 3), steps=1, subject=torch.nn.Sequential(made.model)
            )
    found = inspector.try_cure(made, ["open_memory", "clip_gradient"], torch.ones(4, 3), steps=2, seeds=1)
    assert [one.cure for one in found.tried] == ["clip_gradient"] and set(found.refused) == {"open_memory"}
    found.capture.close()


def test_the_input_has_its_options_and_its_files(site: Path, shell: Shell) -> None:
    (site.parent / "x.ramp").write_text("0 5")
    cases = {
        ("--as", "ramp", "0 3", "--option", "steps=4"): [0, 1, 2, 3],
        ("--input", "x.ramp", "--option", "steps=6"): [0, 1, 2, 3, 4, 5],
    }
    for words, expected in cases.items():
        shell("run", "leaky", *words, "--only", "input", "--out", "b.inspect", "--overwrite")
        with inspector.open_capture(site.parent / "b.inspect") as capture:
            np.testing.assert_allclose(capture.array("input:value")[:, 0], expected, atol=1e-6)
    said = shell("run", "leaky", "--as", "ramp", "0 3", "--option", "steps=1", expect=2).stderr
    assert said == "The input ramp cannot take this: steps is 1; expected a whole number from 2 to 100,000.\n"


def test_the_log_reader_reads_its_files(site: Path, shell: Shell) -> None:
    (site.parent / "run.printed").write_text(
        "starting\niter 0: loss 2.5, lr 0.1\niter 10: loss nan, lr 0.1\niter 20: lo"
    )
    said = shell("list", "run.printed").stdout
    assert "Printed training" in said and "log:loss  2 points  (loss)" in said
    shell("export", "run.printed", "--channel", "loss", "--to", "loss.npy")
    np.testing.assert_array_equal(np.load(site.parent / "loss.npy"), [2.5, np.nan])


def test_the_loader_reads_its_files(site: Path, shell: Shell) -> None:
    text = "weights 1\n" + "".join(f"{name}:{shape}:{numbers}\n" for name, shape, numbers in (
        ("rnn.w", "5 2", "0 " * 10), ("rnn.u", "5 5", "0 " * 25), ("rnn.leak", "", "1"),
        ("head.weight", "3 5", "0 " * 15), ("head.bias", "3", "1 2 3"),
    ))  # fmt: skip
    (site.parent / "zero.weights").write_text(text)
    told = shell("run", "leaky", "--checkpoint", "zero.weights", "--only", "states", "--out", "c.inspect").stderr
    assert "weights as text" in told and "all 5 tensors loaded" in told
    with inspector.open_capture(site.parent / "c.inspect") as capture:
        assert not capture.array("rnn.l0:h").any() and np.allclose(capture.array("head:largest"), 3)


WINDOW = """
import json, sys
from pathlib import Path
from PySide6.QtWidgets import QApplication
from PySide6.QtTest import QTest
import inspector.gui.window.main_window as module
from inspector.gui.app import begin, make_window

module.ask_trust = lambda window, asked, agree, refuse: agree(asked)  # the folder of this test is no site-packages
app = QApplication([])
window = make_window()
window.resize(1280, 800)
window.show()
begin(window, [], demo=False)
shown = []
window.fail = lambda sentence, details="": shown.append(sentence)

def until(what):
    for _ in range(1200):
        QTest.qWait(50)
        if what():
            return
    raise SystemExit(f"waited in vain: {window.session.sentence} {[line.text for line in window.session.log][-5:]}")

def done():
    session = window.session
    return session.capture is not None and session.capture.status == "done" and not session.busy

window.open_sample("leaky")
until(done)
told = {"panels": list(window.panels), "row": window.panels["largest"].tab_row}
told["offer"] = window.panels["largest"].state, sorted(window.session.capture.channels)
told["menu"] = window.compute_menu.keys["largest_state"].text()
told["kinds"] = [window.input.kind.itemText(i) for i in range(window.input.kind.count())]
window.compute_also(("largest_state",))
until(lambda: done() and "rnn.l0:largest" in window.session.capture.channels)
window.docks["largest"].raise_()
until(lambda: window.panels["largest"].state == "figure")
window.grab().save(sys.argv[1])
window.input.kind.setCurrentIndex(window.input.kind.findData("ramp"))
window.input.line.setText("0 3")
told["prompt"], told["more"] = window.input.line.placeholderText(), window.input.more.isVisible()
window.input._set["ramp"] = {"steps": 4}
window.input.ask()
until(lambda: done() and window.session.capture.extent("input:value")[0] == 4)
told["typed"] = window.session.capture.array("input:value")[:, 0].tolist()
Path("y.ramp").write_text("0 9")
window.open_path("y.ramp")
until(lambda: done() and window.session.capture.extent("input:value")[0] == 10)
told["dropped"] = window.session.capture.array("input:value")[-1, 0].item()
told["sequences"], told["checkpoints"] = window.offered.sequences, window.offered.checkpoints
window.open_path("zero.weights")
told["checkpoint"] = window.models.dialog.checkpoint.text()
window.models.dialog.reject()
told["failed"] = shown
told["log"] = [line.text for line in window.session.log]
window.close()
print(json.dumps(told))
"""


def in_the_window(site: Path, picture: Path) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", WINDOW, str(picture)], cwd=site.parent, capture_output=True, text=True, timeout=280,
        env=environment(site),
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def test_each_is_at_work_in_the_window(site: Path) -> None:
    told = in_the_window(site, site.parent / "window.png")
    assert told["panels"].index("dynamics") + 1 == told["panels"].index("largest") and told["row"] == "upper"
    assert told["offer"][0] == "figure", "the probe's channel is there before the quantity is asked for"
    assert (
        "head:largest" in told["offer"][1]
        and "rnn.l0:largest" not in told["offer"][1]
        and "rnn.l0:candidate" in told["offer"][1]
    )
    assert told["menu"] == "The largest entry of the state at every step"
    assert told["kinds"] == ["Example", "Signal", "Numbers", "Ramp", "File", "Many sequences"]
    assert told["prompt"].startswith("two numbers: the first and the last") and told["more"]
    np.testing.assert_allclose(told["typed"], [0, 1, 2, 3], atol=1e-6)
    assert told["dropped"] == 9 and ".ramp" in told["sequences"] and ".weights" in told["checkpoints"]
    assert told["checkpoint"] == "zero.weights" and not told["failed"]
    assert not [line for line in told["log"] if "Broken" in line]


def test_broken_entries_are_one_line_each_and_take_nothing_along(tmp_path: Path) -> None:
    site = tmp_path / "site"
    install_examples(site)
    install_broken(site)
    shell = Shell(site)
    done = shell("catalogue", "--json")
    lines = [line.removeprefix("Broken: ") for line in done.stderr.splitlines()]
    expected = {
        "broken.taken": "offered by both", "broken.missing": "ModuleNotFoundError", "broken.halfway": "OSError: half",
        "broken.leaves": "SystemExit", "broken.strange": "'strange'", "broken.raises": "RuntimeError: no good",
    }  # fmt: skip
    for origin, why in expected.items():
        assert [line for line in lines if line.startswith(origin) and why in line], (origin, lines)
    assert sum("sample" in line for line in lines) == 2 and len(lines) == len(set(lines))
    told = json.loads(done.stdout)
    assert "largest_state" in {entry["key"] for entry in told["quantities"]}
    assert {"states", "gates"} <= {entry["key"] for entry in told["quantities"]}, "ours stay where a key is taken"
    assert "strange" not in {entry["key"] for entry in told["inputs"]} and "half" not in {
        entry["key"] for entry in told["probes"]
    }
    shell("run", "leaky", "--only", "states", "--out", "a.inspect")
    diagnosed = shell("diagnose", "a.inspect")
    shell.close()
    assert len(diagnosed.stderr.splitlines()) == 1 and "broken.raises" in diagnosed.stderr
