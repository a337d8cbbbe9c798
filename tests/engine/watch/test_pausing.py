"""The loop waits at the end of a step when somebody asks or a condition holds, and its parameters are the same bits."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from trainings import VOCABULARY, Case, train

import inspector
from inspector.capture import control
from inspector.capture.control import Command, Commands, Controller
from inspector.engine.watch import Watcher, pausing
from inspector.engine.watch.orders import Orders
from inspector.records import parse_condition

PROBE = torch.randint(0, VOCABULARY, (2, 5), generator=torch.Generator().manual_seed(1))


def until(condition: Callable[[], Any], seconds: float = 30.0) -> None:
    """Wait for something that another thread does."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)


@contextmanager
def looping(path: Path | str, iterations: int = 100_000, blow_up: int = -1, **options: Any) -> Iterator[Watcher]:
    """A training in a thread of its own, until it is left."""
    torch.manual_seed(0)
    model = nn.RNN(2, 3, batch_first=True)
    optimizer = torch.optim.SGD(model.parameters(), 0.001)
    over = threading.Event()
    watcher = inspector.watch(model, optimizer, path, **options)

    def loop() -> None:
        for n in range(1, iterations + 1):
            if over.is_set():
                return
            loss = model(torch.randn(2, 4, 2))[0].square().mean()
            (loss * (1e4 if n == blow_up else 1)).backward()
            optimizer.step()
            optimizer.zero_grad()
            time.sleep(0.002)

    thread = threading.Thread(target=loop)
    thread.start()
    try:
        yield watcher
        assert watcher.error is None
    finally:
        over.set()
        watcher.break_when(None)
        watcher.go_on()
        thread.join(30)
        watcher.close()


def events(path: Path, *kinds: str) -> list[Any]:
    with inspector.open_capture(path) as capture:
        return [one for one in capture.events if one.kind in kinds]


def waits(path: Path, count: int = 1) -> Callable[[], bool]:
    return lambda: (path / "index.sqlite").exists() and len(events(path, "paused")) >= count


# -- parameters


@pytest.mark.parametrize("case", [Case(), Case(model="transformer", autocast=True, accumulate=2)], ids=str)
def test_a_training_that_was_paused_again_and_again_has_the_same_bits(case: Case, tmp_path: Path) -> None:
    def attach(model: nn.Module, optimizer: Any) -> Any:
        watcher = inspector.watch(
            model, optimizer, tmp_path / "run.inspect", break_on="iteration 3, iteration 9, gradient norm > 0.0001",
            pause_timeout=0.15, probe=PROBE, probe_every=1000,
        )  # fmt: skip
        watcher.after_each(lambda n: watcher.pause("again") if n in (12, 13, 20) else None)
        return watcher

    assert train(case, 30, attach) == train(case, 30)
    found = events(tmp_path / "run.inspect", "paused", "continued")
    assert [one.kind for one in found] == ["paused", "continued"] * (len(found) // 2) and len(found) >= 6
    with inspector.open_capture(tmp_path / "run.inspect") as capture:
        for one in found[::2]:
            assert capture.frames[one.frame].step == one.iteration  # probed before it waited
        assert {one.iteration for one in found} <= set(capture.array("training:iteration").tolist())


# -- windows


def test_a_window_pauses_makes_a_step_and_lets_it_go_on(tmp_path: Path) -> None:
    path = tmp_path / "run.inspect"
    with looping(path, every=50, probe=torch.randn(1, 4, 2)) as watcher:
        window = Controller(path)
        until(lambda: watcher.iteration > 60)
        window.send("pause")
        until(waits(path))
        (paused,) = events(path, "paused")
        assert watcher.iteration == paused.iteration and paused.text.startswith(
            "the window asked for it; it goes on by itself"
        )
        with inspector.open_capture(path) as capture:
            assert capture.frames[paused.frame].step == paused.iteration
            assert capture.array("training:iteration")[-1] == paused.iteration  # of every 50th, and of this one
        window.send("step")
        until(waits(path, 2))
        assert watcher.iteration == paused.iteration + 1
        window.beat()
        time.sleep(0.5)
        assert watcher.iteration == paused.iteration + 1
        window.send("continue")
        until(lambda: watcher.iteration > paused.iteration + 20)
        assert [one.kind for one in events(path, "paused", "continued")] == ["paused", "paused", "continued"]
        window.close()
        assert not list((path / "control").iterdir())


def test_a_condition_of_a_window_breaks_once_where_it_begins_to_hold(tmp_path: Path) -> None:
    path = tmp_path / "run.inspect"
    with looping(path, blow_up=200, cost="light") as watcher:
        window = Controller(path)
        window.send("break", "gradient norm > 100, gradient/norm[weight_ih_l0] < -1")
        until(waits(path))
        assert watcher.iteration == 200
        (set_,) = events(path, "break condition")
        assert set_.text == "gradient norm > 100, gradient/norm[weight_ih_l0] < -1"
        assert events(path, "paused")[0].text.startswith("gradient norm > 100: ")
        window.send("continue")
        until(lambda: watcher.iteration > 230)


def test_a_condition_that_is_set_while_it_waits_is_told_at_once_with_what_never_holds(tmp_path: Path) -> None:
    path = tmp_path / "run.inspect"
    with looping(path, cost="normal") as watcher:
        window = Controller(path)
        until(lambda: watcher.iteration > 5)
        window.send("pause")
        until(waits(path))
        window.send("break", "weight/norm[nowhere] > 3, iteration 2")
        until(lambda: events(path, "break condition"))
        assert not events(path, "continued"), "while it still waits"
        with inspector.open_capture(path) as capture:
            said = " ".join(log.text for log in capture.logs)
        assert "Nothing is recorded under weight/norm[nowhere]" in said and "Iteration 2 has passed" in said
        window.send("continue")
        until(lambda: events(path, "continued"))
        window.close()


def test_it_goes_on_when_the_window_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pausing, "GONE_SECONDS", 0.7)
    path = tmp_path / "run.inspect"
    with looping(path) as watcher:
        window = Controller(path)
        until(lambda: watcher.iteration > 5)
        window.send("pause")
        until(waits(path))
        at = watcher.iteration
        for _ in range(10):
            time.sleep(0.2)
            window.beat()
        assert watcher.iteration == at  # as long as it gives signs of life
        until(lambda: watcher.iteration > at + 20)
        assert events(path, "continued")[0].text == "the window is gone"


def test_time_that_passes_while_it_waits_is_not_the_trainings(tmp_path: Path) -> None:
    path = tmp_path / "run.inspect"
    with looping(path, iterations=40, every=1, break_on="iteration 20", pause_timeout=2.0) as watcher:
        until(lambda: watcher.iteration == 40)
    with inspector.open_capture(path) as capture:
        assert float(np.diff(capture.array("training:time")).max()) < 2.0
        assert events(path, "continued")[0].text == "nobody answered within 2 s"
        assert capture.array("training:cost")[-1] < 0.9


@pytest.mark.parametrize(
    "content",
    [
        b"", b"{", b"[" * 4000, b"9" * 5000, b"null", b"{}", b'{"window": 1}',
        json.dumps({"window": "0" * 16, "number": 1, "action": "exec", "condition": "", "beat": 1}).encode(),
        json.dumps({"window": "0" * 16, "number": -1, "action": "pause", "condition": "", "beat": 1}).encode(),
        json.dumps({"window": "0" * 16, "number": True, "action": "pause", "condition": "", "beat": 1}).encode(),
        json.dumps({"window": "0" * 16, "number": 1, "action": "break", "condition": "__import__('os')", "beat": 1}).encode(),
        json.dumps({"window": "../../../etc/pass", "number": 1, "action": "pause", "condition": "", "beat": 1}).encode(),
        Command("1" * 16, 1, "pause").encoded(),  # in the file of another window
        Command("0" * 16, 1, "pause").encoded().replace(b"{", b'{"more": 1, ', 1),
    ],
)  # fmt: skip
def test_what_is_no_command_is_not_obeyed(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "control").mkdir()
    (tmp_path / "control" / f"{'0' * 16}.json").write_bytes(content)
    commands, faults = Commands(tmp_path).new()
    assert not commands and len(faults) == 1 and len(faults[0]) < 200


def test_files_that_are_none_and_too_many_are_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "control"
    folder.mkdir()
    os.mkfifo(folder / f"{'f' * 16}.json")
    (folder / f"{'e' * 16}.json").symlink_to("/dev/zero")
    (folder / "notes.txt").write_text("hello")
    reading = Commands(tmp_path)
    assert reading.new() == ([], [])
    for n in range(200):
        (folder / f"{n:016x}.json").write_bytes(Command(f"{n:016x}", 1, "pause").encoded())
    assert len(reading.new()[0]) <= control.MOST_WINDOWS
    time.sleep(0.05)
    newest = Controller(tmp_path)
    newest.send("pause")
    assert [one.window for one in reading.new()[0]] == [newest.command.window]


def test_windows_that_are_gone_take_no_place_from_new_ones() -> None:
    orders = Orders()
    for n in range(200):
        window = f"{n:016x}"
        orders.take(Command(window, 1, "pause"))
        assert orders.wish.paused, n
        orders.take(Command(window, 2, "continue"))
        orders.take(Command(window, 2, "continue", beat=5))
        assert not orders.wish.paused


def test_a_window_writes_through_no_link(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "control").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="is a link"):
        Controller(tmp_path).send("pause")
    assert not list((tmp_path / "elsewhere").iterdir())


# -- from Python


def test_a_function_of_the_program_decides_and_the_program_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "run.inspect"
    seen: list[dict[str, float]] = []

    def wait_at_30(numbers: Any) -> bool:
        seen.append(dict(numbers))
        return bool(numbers["iteration"] == 30)

    with looping(path, break_on=wait_at_30) as watcher:
        until(waits(path))
        assert watcher.iteration == 30 and set(seen[-1]) == {"iteration", "loss", "gradient norm"}
        assert [one["iteration"] for one in seen] == list(range(1, 31))  # all are recorded while it decides
        watcher.go_on()
        until(lambda: watcher.iteration > 40)
        watcher.break_when("iteration 1")
        watcher.break_when(None)
        watcher.pause("to look")
        until(waits(path, 2))
        assert events(path, "paused")[1].text.startswith("to look; ")


def test_a_function_that_raises_is_not_asked_again_and_watching_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "run.inspect"

    def raises(numbers: Any) -> bool:
        return bool(numbers["perplexity"] > 3)

    with looping(path, break_on=raises) as watcher:
        until(lambda: watcher.iteration > 20)
        watcher.pause("to look")
        until(waits(path))
        assert watcher.error is None
        with inspector.open_capture(path) as capture:
            said = [one.text for one in capture.logs if "break_on" in one.text]
        assert said == ["break_on failed, and is not asked any more: KeyError: 'perplexity'."]
        watcher.go_on()


def test_the_terminal_says_that_it_waits_and_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.inspect"
    with looping(path, break_on="iteration 3", pause_timeout=0.2) as watcher:
        until(lambda: watcher.iteration > 5)
    told = capsys.readouterr().err.splitlines()
    assert told == [
        "inspector: the training waits at iteration 3: iteration 3; it goes on by itself after 0 s, or as a window says.",
        "inspector: the training goes on: nobody answered within 0 s.",
    ]


@pytest.mark.parametrize("text", ["", "loss >", "x = 3", "loss > nan", "__import__('os').abort()", "spike," * 20])
def test_a_condition_that_cannot_be_read_is_refused_before_anything(text: str, tmp_path: Path) -> None:
    model = nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with pytest.raises(ValueError, match="condition"):
        inspector.watch(model, optimizer, tmp_path / "run.inspect", break_on=text)
    assert not list(tmp_path.iterdir())


def test_a_condition_on_nothing_that_is_recorded_is_refused(tmp_path: Path) -> None:
    model = nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with pytest.raises(ValueError, match="Nothing is recorded under perplexity"):
        inspector.watch(model, optimizer, tmp_path / "run.inspect", break_on="perplexity > 3")
    watcher = inspector.watch(model, optimizer, tmp_path / "run.inspect")
    with pytest.raises(ValueError, match="Nothing is recorded under perplexity"):
        watcher.break_when("perplexity > 3")
    watcher.close()


def test_conditions_are_read_and_written() -> None:
    told = parse_condition("Non-finite;  gradient norm>1e2 \n iteration >= 500, weight/norm[rnn.weight_hh_l0] < .5")
    assert str(told) == "non-finite, gradient norm > 1e2, iteration 500, weight/norm[rnn.weight_hh_l0] < .5"
    assert parse_condition(str(told)) == told and told.iterations() == [500] and told.of_numbers


def test_something_not_finite_breaks(tmp_path: Path) -> None:
    path = tmp_path / "run.inspect"
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.0)
    with inspector.watch(model, optimizer, path, every=1, break_on="non-finite", pause_timeout=0.3) as watcher:
        for n in range(8):
            x = torch.ones(3, 2) * (float("inf") if n in (4, 5) else 1)
            model(x).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
            with torch.no_grad():
                model.weight.fill_(0.5)
        assert watcher.error is None
    (one,) = events(path, "paused")
    assert one.iteration == 5 and "became NaN or infinite" in one.text


def test_without_a_probe_the_frame_is_of_the_sequence_that_was_trained_on(tmp_path: Path) -> None:
    def attach(model: nn.Module, optimizer: Any) -> Any:
        return inspector.watch(model, optimizer, tmp_path / "run.inspect", break_on="iteration 7", pause_timeout=0.1)

    assert train(Case(model="gru"), 12, attach) == train(Case(model="gru"), 12)
    with inspector.open_capture(tmp_path / "run.inspect") as capture:
        (paused,) = [one for one in capture.events if one.kind == "paused"]
        assert capture.frames[paused.frame].step == 7 and paused.frame == 1
        assert capture.array("rnn.l0:h", paused.frame).shape == (6, 8)
        assert not [log.text for log in capture.logs if "failed" in log.text] and not capture.damage
