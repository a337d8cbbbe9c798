"""`inspector watch -- …`: scripts run as they are, and are watched."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from commands import CHECKOUT, called

import inspector
from inspector.cli import watch as command

SCRIPT = str(CHECKOUT / "tests" / "support" / "unwatched_scripts.py")
PYTHON = sys.executable


def ran(
    *arguments: str, cwd: Path, stdin: str = "", more: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """A command to its end."""
    known = {"PYTHONPATH": str(CHECKOUT), "QT_QPA_PLATFORM": "offscreen", **(more or {})}
    return subprocess.run(
        arguments, cwd=cwd, input=stdin, capture_output=True, text=True, timeout=200, env={**os.environ, **known}
    )


def watched(*arguments: str, cwd: Path, stdin: str = "", more: Mapping[str, str] | None = None, every: int = 1):
    """The same below `inspector watch`."""
    start = (PYTHON, "-m", "inspector", "watch", "--headless", "--every", str(every), "--")
    return ran(*start, *arguments, cwd=cwd, stdin=stdin, more=more)


@pytest.fixture(scope="module")
def more(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment with a sitecustomize of the user's own."""
    site = tmp_path_factory.mktemp("site")
    (site / "sitecustomize.py").write_text("import sys\nsys.of_the_user = 'ran'\n")
    return {"PYTHONPATH": f"{site}{os.pathsep}{CHECKOUT}"}


@pytest.fixture(scope="module")
def alone(more: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> subprocess.CompletedProcess[str]:
    """The script that is not watched."""
    cwd = tmp_path_factory.mktemp("alone")
    return ran(PYTHON, SCRIPT, "plain", "--epochs=2", cwd=cwd, stdin="typed", more=more)


def test_a_script_runs_as_it_is_and_its_training_is_recorded_from_the_first_iteration(
    tmp_path: Path, more: dict[str, str], alone: subprocess.CompletedProcess[str]
) -> None:
    """Arguments, input, output, exit code, random state and parameters; a sitecustomize of the user's own runs."""
    seen = watched(PYTHON, SCRIPT, "plain", "--epochs=2", cwd=tmp_path, stdin="typed", more=more)
    assert alone.returncode == seen.returncode == 3, seen.stderr
    assert alone.stdout == seen.stdout and "typed False" in seen.stdout and seen.stdout.endswith("ran\n")
    assert seen.stderr.splitlines() == ["its own line", f"inspector: the training is in {tmp_path / 'run.inspect'}"]
    with inspector.open_capture(tmp_path / "run.inspect") as capture:
        loss = capture.array("training:loss")
        assert loss.shape == (30,) and np.isfinite(loss).all()
        assert capture.status == "done"
        assert {"0.weight", "3.bias"} <= set(capture.labels("parameter"))


def test_each_training_that_a_shell_script_starts_has_a_capture(tmp_path: Path) -> None:
    """Below a shell, by module name, one after the other."""
    support = str(Path(SCRIPT).parent)
    line = f"cd sub && {PYTHON} -m unwatched_scripts plain; {PYTHON} {SCRIPT} plain"
    (tmp_path / "sub").mkdir()
    done = watched("sh", "-c", line, cwd=tmp_path, more={"PYTHONPATH": f"{CHECKOUT}{os.pathsep}{support}"}, every=10)
    assert done.returncode == 3, done.stderr
    assert sorted(one.name for one in tmp_path.glob("*.inspect")) == ["run-2.inspect", "run.inspect"]


def test_several_models_share_a_capture_and_processes_that_load_data_write_none(tmp_path: Path) -> None:
    """Optimizers of one loop together, one that takes another's place goes on with it, a later model has its own."""
    done = watched(PYTHON, SCRIPT, "pair", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    names = [line.rpartition("/")[2] for line in done.stderr.splitlines()]
    assert names == ["run.inspect", "run-2.inspect"], done.stderr
    with inspector.open_capture(tmp_path / "run.inspect") as capture:
        assert capture.array("training:loss").shape == (6,)  # two batches and four steps of the new optimizer
        assert {"Sequential.0.weight", "Linear.weight"} <= set(capture.labels("parameter"))
    with inspector.open_capture(tmp_path / "run-2.inspect") as capture:
        assert capture.array("training:loss").shape == (6,)
        assert list(capture.labels("parameter")) == ["0.weight", "0.bias", "optimizer 0 group 0 parameter 2"]


def test_of_processes_that_train_together_the_first_writes(tmp_path: Path) -> None:
    """As torchrun starts them."""
    start = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    done = watched(PYTHON, *start, SCRIPT, "ranks", cwd=tmp_path, more={"OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr
    assert [one.name for one in tmp_path.glob("*.inspect")] == ["run.inspect"]
    with inspector.open_capture(tmp_path / "run.inspect") as capture:
        assert capture.start.meta["training"]["processes"] == 2
        assert capture.array("training:loss").shape == (12,)


def test_a_script_without_an_optimizer_is_told_of(tmp_path: Path) -> None:
    """Nothing was watched, and why."""
    done = watched(PYTHON, SCRIPT, "no_optimizer", cwd=tmp_path)
    assert done.returncode == 0 and "nothing was watched" in done.stderr and "no optimizer" in done.stderr
    assert len(done.stderr.splitlines()) == 1 and not list(tmp_path.glob("*.inspect"))


def test_a_script_with_a_module_named_inspector_keeps_it(tmp_path: Path) -> None:
    """It is not watched, which is said, and imports its own."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "inspector.py").write_text("OWN = 'mine'\n")
    (tmp_path / "sub" / "train.py").write_text(Path(SCRIPT).read_text())
    done = watched(PYTHON, str(tmp_path / "sub" / "train.py"), "own_inspector", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "mine\n"), done.stderr
    assert "a module of its own that is named inspector" in done.stderr


WAITS = (
    "import signal, sys, time; signal.signal(signal.SIGTERM, lambda *_: sys.exit(7)); "
    "print('ready', flush=True); time.sleep(60)"
)
"""Until a signal comes, which it handles; torch, which takes long to import, has no part in it."""


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_signals_reach_the_script_and_its_end_is_the_commands(tmp_path: Path) -> None:
    """One that it handles, and one that ends it."""
    start = [PYTHON, "-m", "inspector", "watch", "--headless", "--"]
    env = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    running = subprocess.Popen([*start, PYTHON, "-c", WAITS], cwd=tmp_path, stdout=subprocess.PIPE, env=env)
    with running:
        assert running.stdout is not None
        assert running.stdout.readline() == b"ready\n"
        running.send_signal(signal.SIGTERM)
        assert running.wait(60) == 7
    done = watched("sh", "-c", "kill -9 $$", cwd=tmp_path)
    assert done.returncode == -signal.SIGKILL


def test_what_cannot_be_run_is_said_in_one_line(tmp_path: Path) -> None:
    """With the shell's exit codes."""
    for arguments, code, word in (((), 2, "was given no command"), (("./nothing",), 127, "./nothing cannot be run")):
        done = called("watch", "--headless", "--", *arguments, cwd=tmp_path)
        assert (done.code, len(done.stderr.splitlines())) == (code, 1) and word in done.stderr


def test_the_window_opens_on_the_capture_while_the_script_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As soon as there is one; without a display a sentence says that none opens."""
    opened: list[Path] = []
    monkeypatch.setattr(command, "_open_window", opened.append)
    monkeypatch.setattr(command, "LOOK_SECONDS", 0.05)
    monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen")
    script = f"import time; {MAKES_A_CAPTURE}; time.sleep(1)"
    done = called("watch", "--", PYTHON, "-c", script, cwd=tmp_path)
    assert done.code == 0 and not opened and "no display was found" in done.stderr
    monkeypatch.setattr(command, "_window_can_open", lambda out: True)
    done = called("watch", "--", PYTHON, "-c", script, cwd=tmp_path)
    assert done.code == 0 and opened == [tmp_path / "run.inspect"]


MAKES_A_CAPTURE = (
    "import json, os, pathlib; told = json.loads(os.environ['INSPECTOR_WATCH']); "
    "pathlib.Path(told['out']).mkdir(exist_ok=True); "
    "pathlib.Path(told['folder'], 'capture-run').write_text(told['out'])"
)


def test_a_script_waits_where_a_condition_holds_and_computes_the_same(
    tmp_path: Path, more: dict[str, str], alone: subprocess.CompletedProcess[str]
) -> None:
    start = (PYTHON, "-m", "inspector", "watch", "--headless", "--break-on", "iteration 5", "--pause-timeout", "0.5")
    seen = ran(*start, "--", PYTHON, SCRIPT, "plain", "--epochs=2", cwd=tmp_path, stdin="typed", more=more)
    assert (seen.returncode, seen.stdout) == (alone.returncode, alone.stdout), seen.stderr
    with inspector.open_capture(tmp_path / "run.inspect") as capture:
        told = [one for one in capture.events if one.kind in ("paused", "continued")]
        assert [(one.kind, one.iteration) for one in told] == [("paused", 5), ("continued", 5)]
    wrong = called("watch", "--break-on", "loss ! 3", "--", PYTHON, SCRIPT, "plain", cwd=tmp_path)
    assert (wrong.code, len(wrong.stderr.splitlines())) == (2, 1) and "no condition" in wrong.stderr
