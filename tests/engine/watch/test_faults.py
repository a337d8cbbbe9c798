"""Whatever happens to the watcher, training goes on with the same bits, and what was committed can be read."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from trainings import Case, train

import inspector
from inspector.capture.store import Store
from inspector.engine.pipeline import Recording
from inspector.engine.watch import measure

CASE = Case(model="transformer")
ITERATIONS = 30


@pytest.fixture(scope="module")
def plain() -> str:
    return train(CASE, ITERATIONS)


def started(path: Path, seen: list[Any], **options: Any) -> Any:
    """Attach and remember the watcher; an early end is what is tested, so nothing looks at `error` in the loop."""

    class Quiet:
        error = None

        def __enter__(self) -> Quiet:
            return self

        def __exit__(self, *_: object) -> None:
            seen[0].close()

    def attach(model: nn.Module, optimizer: torch.optim.Optimizer) -> Quiet:
        seen.append(inspector.watch(model, optimizer, path, every=1, **options))
        return Quiet()

    return attach


MOMENTS = [
    "forward_begins",
    "forward_ended",
    "backward_begins",
    "backward_ended",
    "step_begins",
    "step_ended",
    "each",
    "ends",
    "derive",
]


@pytest.mark.parametrize("moment", MOMENTS)
def test_an_error_of_the_watcher_ends_watching_with_one_line(
    moment: str, plain: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from inspector.engine.watch.gradients import GradientNorms

    own, calls = getattr(GradientNorms, moment), []

    def raises(*arguments: Any) -> Any:
        calls.append(moment)
        if len(calls) == 12:
            raise KeyError("a\nmishap")
        return own(*arguments)

    monkeypatch.setattr(GradientNorms, moment, raises)
    seen: list[Any] = []
    assert train(CASE, ITERATIONS, started(tmp_path / "run.inspect", seen)) == plain
    assert seen[0].error is not None and "mishap" in seen[0].error and "\n" not in seen[0].error
    assert len(calls) == 12
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and "training goes on" in err
    with inspector.open_capture(tmp_path / "run.inspect") as capture:
        written = 12 if moment == "each" else 11  # the iteration that has ended is there
        assert capture.array("training:iteration").tolist() == list(range(1, written + 1))
        assert any("mishap" in log.text for log in capture.logs)
    assert torch.autograd.backward.__module__ == "torch.autograd"


def test_an_error_of_the_watcher_hides_none_of_a_backward_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from inspector.engine.watch.gradients import GradientNorms

    monkeypatch.setattr(GradientNorms, "backward_failed", lambda *_: 1 / 0)
    model = nn.Linear(2, 1)
    with inspector.watch(model, torch.optim.SGD(model.parameters(), 0.1), tmp_path / "run.inspect") as watcher:
        loss = model(torch.ones(3, 2)).square().mean()
        loss.backward()
        with pytest.raises(RuntimeError, match="a second time"):
            loss.backward()
    assert watcher.error is not None and "training goes on" in capsys.readouterr().err


def test_a_module_that_cannot_be_read_ends_one_series(
    plain: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from inspector.engine.watch.measures.activations import Activations

    monkeypatch.setattr(Activations, "called", lambda *_: 1 / 0)
    seen: list[Any] = []
    assert train(CASE, ITERATIONS, started(tmp_path / "run.inspect", seen)) == plain
    assert seen[0].error is None
    with inspector.open_capture(tmp_path / "run.inspect") as capture:
        assert "modules:activation/zero" not in capture.channels and "modules:attention/entropy" in capture.channels
        assert [log.level for log in capture.logs] == ["warning"] and "this ended" in capture.logs[0].text


def test_a_folder_that_is_removed(plain: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inspector.engine.watch.core.FLUSH_SECONDS", (0.0, 0.0))
    seen: list[Any] = []
    attach = started(tmp_path / "run.inspect", seen)

    def attach_and_remove(model: nn.Module, optimizer: torch.optim.Optimizer) -> Any:
        found = attach(model, optimizer)

        def remove(*_: object) -> None:
            if seen[0].iteration == 10:
                shutil.rmtree(tmp_path / "run.inspect")
                time.sleep(0.3)

        optimizer.register_step_post_hook(remove)
        return found

    assert train(CASE, ITERATIONS, attach_and_remove) == plain
    assert seen[0].error is not None and "removed" in seen[0].error


SCRIPT = """
import resource, signal, sys, time
sys.path[:0] = [{support!r}]
import torch, inspector
from trainings import Case, train
from pathlib import Path
import inspector.engine.watch.core as core
core.FLUSH_SECONDS = (0.0, 0.0)
path = Path({path!r})
def attach(model, optimizer):
    watcher = inspector.watch(model, optimizer, path, every=1)
    def each(*_):
        {each}
    optimizer.register_step_post_hook(each)
    class Quiet:
        error = None
        def __enter__(self): return self
        def __exit__(self, *_):
            watcher.close()
            print(watcher.error)
    return Quiet()
print(train(Case(model="transformer"), {iterations}, attach))
"""


def script(path: Path, each: str, iterations: int = ITERATIONS) -> subprocess.CompletedProcess[str]:
    support = str(Path(__file__).parents[2] / "support")
    code = SCRIPT.format(support=support, path=str(path), each=each, iterations=iterations)
    return subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=200)


def test_a_process_that_is_killed_leaves_what_was_committed(tmp_path: Path) -> None:
    each = "watcher.iteration == 25 and (time.sleep(0.5), __import__('os').kill(__import__('os').getpid(), 9))"
    done = script(tmp_path / "run.inspect", each)
    assert done.returncode == -signal.SIGKILL, done.stderr
    with inspector.open_capture(tmp_path / "run.inspect") as capture:
        assert capture.status == "unfinished" and not capture.damage
        iterations = capture.array("training:iteration")
        assert 20 <= len(iterations) <= 25
        assert len(capture.array("training:loss")) == len(iterations)


def test_a_full_disk(plain: str, tmp_path: Path) -> None:
    """The system refuses to let files grow, as on a full disk. What was acknowledged before that is there."""
    acknowledged = (
        "watcher._core.flush(), watcher._commit(), print(len(inspector.open_capture(path).array('training:loss')))"
    )
    limit = "signal.signal(signal.SIGXFSZ, signal.SIG_IGN), resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))"
    done = script(tmp_path / "run.inspect", f"watcher.iteration == 5 and ({acknowledged}, {limit})")
    assert done.returncode == 0, done.stderr
    rows, error, bits = done.stdout.splitlines()[-3:]
    assert bits == plain
    assert "watching ended" in error
    lines = done.stderr.count("inspector:")  # when it fills, at the end, and where it was tried again for a moment
    assert lines == done.stderr.count("training goes on") and lines in (2, 3)
    with inspector.open_capture(tmp_path / "run.inspect") as capture:
        assert 3 <= int(rows) <= len(capture.array("training:loss")) < ITERATIONS


def test_a_slow_disk_drops_pages_and_counts_them(plain: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    release, commit, append = threading.Event(), Store.commit, Store.append

    def slow(self: Store, records: Any) -> None:
        release.wait(60.0)
        commit(self, records)

    def slowly(self: Store, records: Any) -> Any:
        release.wait(60.0)
        return append(self, records)

    monkeypatch.setattr(Store, "commit", slow)
    monkeypatch.setattr(Store, "append", slowly)
    monkeypatch.setattr("inspector.capture.writer.QUEUE_BYTES", 20_000)
    monkeypatch.setattr("inspector.engine.watch.core.FLUSH_SECONDS", (0.0, 0.0))
    seen: list[Any] = []
    attach = started(tmp_path / "run.inspect", seen)

    def attach_and_release(model: nn.Module, optimizer: torch.optim.Optimizer) -> Any:
        found = attach(model, optimizer)
        optimizer.register_step_post_hook(lambda *_: release.set() if seen[0].iteration == ITERATIONS else None)
        return found

    assert train(CASE, ITERATIONS, attach_and_release) == plain  # nothing was written until the last step
    assert seen[0].error is None
    with inspector.open_capture(tmp_path / "run.inspect") as capture:
        assert capture.status == "done" and not capture.damage
        assert any("could not be kept" in log.text for log in capture.logs)


def test_a_program_that_ends_without_closing_closes(tmp_path: Path) -> None:
    done = subprocess.run(
        [
            sys.executable, "-c",
            "import torch, inspector\n"
            "model = torch.nn.Linear(2, 1)\n"
            "optimizer = torch.optim.SGD(model.parameters(), 0.1)\n"
            f"watcher = inspector.watch(model, optimizer, {str(tmp_path / 'run.inspect')!r}, every=1)\n"
            "for n in range(7):\n    model(torch.randn(3, 2)).sum().backward()\n    optimizer.step()\n"
            "raise ValueError('the user stopped it')\n",
        ],
        capture_output=True, text=True, timeout=200,
    )  # fmt: skip
    assert "the user stopped it" in done.stderr
    with inspector.open_capture(tmp_path / "run.inspect") as capture:
        assert capture.array("training:iteration").tolist() == [1, 2, 3, 4, 5, 6, 7]
        assert capture.stop is not None and capture.stop.status == "failed"


def test_what_a_script_wrote_to_a_file_that_it_never_closed_is_there(tmp_path: Path) -> None:
    """Its last loss is held until the end, and with it what hangs on autograd's graph."""
    (tmp_path / "train.py").write_text(
        textwrap.dedent(
            """
            import inspector, torch
            model = torch.nn.Linear(3, 1)
            optimizer = torch.optim.SGD(model.parameters(), 0.1)
            def by_step(output, batch):
                return output[..., 0]
            inspector.watch(model, optimizer, "run.inspect", every=1, probe=torch.randn(1, 4, 3), probe_loss=by_step)
            file = open("losses.txt", "w")
            for n in range(3):
                loss = model(torch.randn(2, 4, 3)).square().mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                print(loss.item(), file=file)
            """
        )
    )
    command = [sys.executable, "-W", "ignore::ResourceWarning", "train.py"]
    here = {**os.environ, "PYTHONPATH": str(Path(inspector.__file__).parents[1])}
    done = subprocess.run(command, cwd=tmp_path, env=here, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    assert len((tmp_path / "losses.txt").read_text().splitlines()) == 3
    with inspector.open_capture(tmp_path / "run.inspect") as capture:
        assert len(capture.array("training:loss")) == 3


def test_closing_never_raises_whatever_the_program_has_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    watcher = inspector.watch(model, optimizer, tmp_path / "run.inspect", every=1)
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    with monkeypatch.context() as patch:
        patch.setattr(Recording, "__exit__", None)
        watcher.close()
    assert "TypeError" in str(watcher.error) and capsys.readouterr().err.count("\n") == 1


def test_a_watcher_may_be_closed_from_a_hook(plain: str, tmp_path: Path) -> None:
    seen: list[Any] = []
    attach = started(tmp_path / "run.inspect", seen)

    def attach_and_close(model: nn.Module, optimizer: torch.optim.Optimizer) -> Any:
        found = attach(model, optimizer)
        optimizer.register_step_post_hook(lambda *_: seen[0].close() if seen[0].iteration == 10 else None)
        return found

    assert train(CASE, ITERATIONS, attach_and_close) == plain
    with inspector.open_capture(tmp_path / "run.inspect") as capture:
        assert capture.status == "done" and len(capture.array("training:loss")) == 10


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked on this system")
@pytest.mark.filterwarnings("ignore:This process")
def test_a_forked_process_writes_nothing(tmp_path: Path) -> None:
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with inspector.watch(model, optimizer, tmp_path / "run.inspect", every=1) as watcher:
        for n in range(4):
            child = os.fork() if n == 2 else 1
            model(torch.randn(3, 2)).sum().backward()
            optimizer.step()
            if not child:
                os._exit(0 if watcher.iteration == 2 else 1)
            if n == 2:
                assert os.waitpid(child, 0)[1] == 0
    with inspector.open_capture(tmp_path / "run.inspect") as capture:
        assert capture.array("training:iteration").tolist() == [1, 2, 3, 4] and not capture.damage


def test_an_error_of_the_users_gets_through_and_is_noted(tmp_path: Path) -> None:
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with pytest.raises(ValueError, match="own"), inspector.watch(model, optimizer, tmp_path / "run.inspect"):
        raise ValueError("own")
    with inspector.open_capture(tmp_path / "run.inspect") as capture:
        assert capture.stop is not None and capture.stop.status == "failed"


def test_a_run_that_exists_is_not_replaced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    paths = []
    for _ in range(2):
        with inspector.watch(model, optimizer, tmp_path / "run.inspect") as watcher:
            paths.append(watcher.path)
    assert paths == [tmp_path / "run.inspect", tmp_path / "run-2.inspect"]
    assert "run-2.inspect" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"cost": "huge"}, "cost is 'huge'; expected one of light, normal, full."),
        ({"every": 0}, "every is 0; expected a whole number of iterations, at least 1."),
        ({"share": 2.0}, "share is 2.0; expected a share of the wall time above 0 and up to 1."),
    ],
)
def test_arguments_that_cannot_be_used_are_refused_at_once(options: Any, error: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError) as found:
        inspector.watch(nn.Linear(2, 1), None, tmp_path / "run.inspect", **options)
    assert str(found.value) == error and not (tmp_path / "run.inspect").exists()


def test_every_moment_is_tested() -> None:
    methods = {name for name in vars(measure.Measure) if not name.startswith("_")}
    assert set(MOMENTS) | {
        "over", "tables", "summed", "finishing", "reads_gradients", "backward_failed", "must_look", "always",
    } == methods  # fmt: skip
