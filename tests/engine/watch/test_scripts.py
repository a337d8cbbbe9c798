"""Which models an optimizer trains, and what happens in a script that has no line for watching, in this process."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import inspector
from inspector.engine.watch.backward_calls import leave
from inspector.engine.watch.called import Several, called
from inspector.engine.watch.scripts import claims
from inspector.engine.watch.scripts.claims import Asked
from inspector.engine.watch.scripts.roots import model_of, roots_of
from inspector.engine.watch.scripts.supervisor import Supervisor


class DistributedDataParallel(nn.Module):
    """By its name what torch's is."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module


def test_the_model_is_the_outermost_module_with_the_parameters() -> None:
    inside = nn.Linear(2, 2)
    outer = nn.Sequential(nn.Sequential(inside), nn.Tanh())
    assert model_of(list(inside.parameters())) is outer
    other = nn.Linear(3, 3)
    both = model_of([*other.parameters(), *inside.parameters(), torch.zeros(1, requires_grad=True)])
    assert isinstance(both, Several) and set(both._modules) == {"Linear", "Sequential"}
    assert set(map(id, called(both))) == {id(other), id(outer)}
    assert roots_of([torch.zeros(1)]) == [] and isinstance(model_of([torch.zeros(1)]), Several)


def test_wrappers_that_spread_a_model_are_preferred_and_copies_are_not() -> None:
    model = nn.Linear(2, 2)
    wrapped, compiled = DistributedDataParallel(model), nn.ModuleDict({"_orig_mod": model})
    with_copy = nn.ModuleDict({"model": model, "average": nn.Linear(2, 2)})
    assert model_of(list(model.parameters())) is wrapped
    del wrapped
    assert model_of(list(model.parameters())) is compiled and with_copy is not None


def test_parts_of_a_module_with_a_training_step_are_called() -> None:
    class Module(nn.Sequential):
        def training_step(self) -> None: ...

    module = Module(nn.Linear(1, 1), nn.Tanh())
    assert called(module) == [module, module[0], module[1]] and called(module[0]) == [module[0]]


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Makes a supervisor whose captures go to a path."""
    made: list[Supervisor] = []

    def make(out: Path) -> Supervisor:
        (tmp_path / "told").mkdir(exist_ok=True)
        told = {"out": str(out), "folder": str(tmp_path / "told"), "options": {"every": 1}}
        monkeypatch.setenv("INSPECTOR_WATCH", json.dumps(told))
        made.append(Supervisor())
        return made[-1]

    yield make
    for one in made:
        one._over = True
        leave(one)
        for watcher in one._watchers:
            watcher.close()


def steps(model: nn.Module, optimizer: torch.optim.Optimizer, count: int) -> None:
    for _ in range(count):
        model(torch.ones(3, 2)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


def test_a_model_that_is_trained_no_more_is_let_go(asked: Any, tmp_path: Path) -> None:
    """Its capture is finished while the next model trains; a new optimizer of a watched model goes on with it."""
    supervisor = asked(tmp_path / "run.inspect")
    for _ in range(3):
        model = nn.Linear(2, 1)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        supervisor.made(optimizer)
        steps(model, optimizer, 4)
        assert len(supervisor._watchers) == 1
    again = torch.optim.SGD(model.parameters(), 0.1)
    supervisor.made(again)
    steps(model, again, 2)
    assert supervisor._watchers[0].iteration == 6
    supervisor._watchers[0].close()
    for name, count in (("run", 4), ("run-2", 4), ("run-3", 6)):
        with inspector.open_capture(tmp_path / f"{name}.inspect") as capture:
            assert capture.status == "done" and len(capture.array("training:loss")) == count


def test_where_nothing_can_be_written_the_script_runs_on(
    asked: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    supervisor = asked(tmp_path / "file" / "run.inspect")
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    supervisor.made(optimizer)
    before = model.weight.detach().clone()
    steps(model, optimizer, 2)
    assert not torch.equal(before, model.weight)
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 1 and "it runs on" in told[0] and list((tmp_path / "told").glob("fault-*"))


def test_paths_are_claimed_once_and_not_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "MOST_CAPTURES", 3)
    (tmp_path / "told").mkdir()
    (tmp_path / "run.inspect").mkdir()
    one = Asked(tmp_path / "run.inspect", tmp_path / "told", {})
    found = [one.claim() for _ in range(4)]
    assert [path and path.name for path in found] == ["run-2.inspect", "run-3.inspect", "run-4.inspect", None]
    monkeypatch.setenv("RANK", "1")
    assert not one.may_write()
