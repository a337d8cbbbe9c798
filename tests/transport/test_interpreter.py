"""A worker in another environment than the window's, and one sentence where no worker can run there."""

from __future__ import annotations

import os
import site
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path

import numpy
import pytest
from click.testing import CliRunner
from workers import Parent

from inspector.capture import open_capture
from inspector.cli import cli
from inspector.records import Catalog, InputSpec, Load, Run
from inspector.transport import process
from inspector.transport.interpreter import VARIABLE, chosen, is_same_version, what_is_wrong
from inspector.transport.process import Exit
from inspector.transport.run_client import Outcome, run_and_wait
from inspector.version import __version__

ROOT = Path(process.__file__).parents[2]
MODEL = """
import sys
from torch import nn

class Model(nn.RNN):
    def __init__(self):
        super().__init__(2, 3, batch_first=True)
        print("in", sys.prefix)
"""
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="scripts in the place of interpreters")


@pytest.fixture(autouse=True)
def without_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a worker finds is what its own environment has."""
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.delenv(VARIABLE, raising=False)


@pytest.fixture
def environment(tmp_path: Path) -> Callable[..., Path]:
    """Makes environments that see some folders beside their own; the folder of each."""

    def make(name: str, *folders: Path) -> Path:
        folder = tmp_path / name
        venv.create(folder, with_pip=False, symlinks=True)
        (packages,) = (folder / "lib").glob("python*/site-packages")
        (packages / "more.pth").write_text("".join(f"{one}\n" for one in folders))
        return folder

    return make


def libraries() -> list[Path]:
    """Where torch and numpy lie."""
    return [Path(folder) for folder in site.getsitepackages()]


def run_in(python: str | None, tmp_path: Path) -> tuple[Outcome, str]:
    """How a run went, and what the model printed."""
    (tmp_path / "model.py").write_text(MODEL)
    printed: list[str] = []
    outcome = run_and_wait(
        Load(subject=f"{tmp_path / 'model.py'}:Model", trusted=True),
        Run(path=str(tmp_path / "a.inspect"), input=InputSpec(kind="generated", value="noise"), only=("states",)),
        lambda _progress: None, lambda _stream, text: printed.append(text), python,
    )  # fmt: skip
    return outcome, "".join(printed)


@pytest.mark.parametrize("how", ["interpreter", "folder", "variable"])
def test_a_model_runs_in_the_environment_that_is_named(
    tmp_path: Path, environment: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    folder = environment("other", ROOT, *libraries())
    named = str(folder / "bin" / "python") if how == "interpreter" else str(folder)
    if how == "variable":
        monkeypatch.setenv(VARIABLE, named)
    outcome, printed = run_in(None if how == "variable" else named, tmp_path)
    assert outcome.code == 0, outcome
    assert f"in {folder}" in printed and str(folder) != sys.prefix
    with open_capture(tmp_path / "a.inspect") as capture:
        assert capture.status == "done" and "model.l0:h" in capture.channels


def with_version(tmp_path: Path, version: str) -> Path:
    """A folder in which this package is installed in some version, as far as its metadata say."""
    info = tmp_path / version / f"sequence_inspector-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: sequence-inspector\nVersion: {version}\n")
    return info.parent


def script(tmp_path: Path, text: str) -> str:
    file = tmp_path / "python-of-mine"
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
    return str(file)


def unusable(tmp_path: Path, environment: Callable[..., Path], case: str) -> tuple[str, str]:
    """An interpreter in which no worker runs, and what is said of it."""
    if case == "nothing":
        return str(tmp_path / "none"), "There is no Python interpreter"
    if case == "no program":
        (tmp_path / "data").write_text("numbers")
        return str(tmp_path / "data"), "cannot be run as a Python interpreter (Permission denied)"
    if case == "another program":
        return script(tmp_path, "exit 3"), "is not a Python interpreter"
    if case == "old":
        return script(tmp_path, "echo python 3.8; exit 2"), "is Python 3.8; the worker needs 3.11 or newer."
    if case == "without inspector":
        return str(environment("a")), f"has no inspector; install version {__version__} in that environment."
    if case == "without torch":
        (tmp_path / "some").mkdir()
        installed = Path(numpy.__file__).parents[1]
        known = ("numpy", "numpy.libs", "platformdirs", "safetensors")
        for package in (ROOT / "inspector", *(installed / name for name in known)):
            (tmp_path / "some" / package.name).symlink_to(package)
        return str(environment("a", tmp_path / "some")), "has no torch; install it in that environment."
    other = environment("a", with_version(tmp_path, "9.9"), ROOT, *libraries())
    return str(other), f"has version 9.9 of inspector, and this is {__version__}; both must be the same."


CASES = ("nothing", "no program", "another program", "old", "without inspector", "without torch", "version")


@pytest.mark.parametrize("case", CASES)
def test_what_is_wrong_is_one_sentence(tmp_path: Path, environment: Callable[..., Path], case: str) -> None:
    if case == "version" and __version__ == "0":
        pytest.skip("this tree does not know its version")
    python, said = unusable(tmp_path, environment, case)
    outcome, _ = run_in(python, tmp_path)
    assert outcome.code == 2 and said in outcome.sentence, outcome
    assert outcome.sentence.startswith(("There is no", chosen(python))) and "\n" not in outcome.sentence
    assert not (tmp_path / "a.inspect").exists()


def test_the_command_line_passes_it_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str | None] = []
    monkeypatch.chdir(tmp_path)

    def run(*given: object) -> Outcome:
        asked.append(given[-1])  # type: ignore[arg-type]
        return Outcome(code=1, sentence="That is enough.")

    monkeypatch.setattr("inspector.cli.reporting.run_and_wait", run)
    monkeypatch.setattr(
        "inspector.gui.app.run",
        lambda paths, demo=False, python=None, at=None, new_window=False: asked.append(python) or 0,
    )
    monkeypatch.setattr("inspector.gui.runtime.display.has_display", lambda: False)
    for words in (["run", "x", "--python", "/a"], ["--python", "/b", "run", "x"], ["run", "x"], ["--python", "/c"], []):
        CliRunner().invoke(cli, words)
    CliRunner().invoke(cli, ["--python", "/d", "demo"])
    assert asked == ["/a", "/b", None, "/c", None, "/d"]


def test_a_window_hears_that_its_interpreter_is_none(tmp_path: Path) -> None:
    parent = Parent(str(tmp_path / "none"))
    ended = parent.wait(Exit)
    assert ended.unusable and not ended.expected and "There is no Python interpreter" in ended.sentence
    parent.worker.send(Load(subject="x"))
    parent.worker.close()
    assert not parent.worker.alive and parent.worker.pid == 0


@pytest.mark.parametrize("python", ["/a\0b", "/" + "x" * 5000])
def test_a_name_that_no_file_can_have_is_told_too(python: str) -> None:
    parent = Parent(python)
    ended = parent.wait(Exit)
    assert ended.unusable and "cannot be run as a Python interpreter" in ended.sentence
    assert "cannot be run as a Python interpreter" in what_is_wrong(python)


def test_a_worker_that_is_asked_to_quit_at_once_is_not_examined(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "what_is_wrong", lambda _python: pytest.fail("nobody asked"))
    parent = Parent()
    parent.worker.close()
    assert parent.wait(Exit).expected


def test_a_model_that_ends_its_worker_is_not_the_interpreters_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "m.py").write_text("import os\nos._exit(3)\n")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    parent = Parent()
    parent.wait(Catalog)
    parent.worker.send(Load(subject=f"{tmp_path / 'm.py'}:x", trusted=True))
    ended = parent.wait(Exit)
    assert not ended.unusable and "exit code 3" in ended.sentence


def test_versions_are_compared_where_both_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_same_version(__version__) and is_same_version("0")
    assert is_same_version("9.9") is (__version__ == "0")
    assert what_is_wrong(sys.executable) == ""


@pytest.mark.skipif(__version__ == "0", reason="this tree does not know its version")
def test_a_worker_of_another_version_does_not_begin() -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "INSPECTOR_WORKER_VERSION": "9.9"}
    ended = subprocess.run([sys.executable, "-m", process.MODULE], env=environment, capture_output=True, text=True)
    assert ended.returncode == 1
    assert f"This is version {__version__} of inspector; it was asked by version 9.9." in ended.stderr
