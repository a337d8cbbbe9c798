"""Code that calls or takes no hooks: the training is the same, and what has no numbers is said once."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import inspector

NO_CALLS = "No call of a module was seen: code that torch.compile compiled calls no hooks."


class Net(nn.Module):
    """Two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(3, 8), nn.Linear(8, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.b(torch.tanh(self.a(x)))


@pytest.fixture(autouse=True)
def nothing_is_compiled() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def scripted(model: nn.Module) -> nn.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = torch.jit.script(model)
    assert isinstance(found, nn.Module)
    return found


def trained(called: nn.Module, path: Path | None, watched: nn.Module | None = None) -> list[Tensor]:
    """The weights after six iterations, watched where there is a path."""
    model = called if watched is None else watched
    optimizer, draws = torch.optim.SGD(model.parameters(), 0.1), torch.Generator().manual_seed(1)
    watcher = inspector.watch(model, optimizer, path, every=1) if path is not None else None
    for _ in range(6):
        optimizer.zero_grad()
        called(torch.randn(2, 5, 3, generator=draws)).square().mean().backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    if watcher is not None:
        watcher.close()
        assert watcher.error is None
    return [one.detach().clone() for one in model.parameters()]


def said(path: Path) -> list[str]:
    with inspector.open_capture(path) as capture:
        assert len(capture.array("training:loss")) == 6
        return [line.text for line in capture.logs]


def made() -> Net:
    torch.manual_seed(0)
    return Net()


@pytest.mark.parametrize("first", [False, True], ids=["attached first", "compiled first"])
@pytest.mark.parametrize("itself", [False, True], ids=["the model", "what torch.compile returned"])
def test_a_compiled_model(first: bool, itself: bool, tmp_path: Path) -> None:
    plain = trained(made(), None)
    model = made()
    compiled: nn.Module = torch.compile(model, backend="eager")  # type: ignore[assignment]
    if first:
        compiled(torch.zeros(2, 5, 3))
    after = trained(compiled, tmp_path / "run.inspect", compiled if itself else model)
    assert all(map(torch.equal, plain, after))
    (line,) = said(tmp_path / "run.inspect")
    assert line.startswith(NO_CALLS)


def test_a_model_that_is_not_compiled_though_another_was(tmp_path: Path) -> None:
    torch.compile(made(), backend="eager")(torch.zeros(2, 5, 3))
    trained(made(), tmp_path / "run.inspect")
    assert not said(tmp_path / "run.inspect")


@pytest.mark.filterwarnings("ignore:`torch.jit")
def test_a_scripted_model(tmp_path: Path) -> None:
    plain = trained(scripted(made()), None)
    assert all(map(torch.equal, plain, trained(scripted(made()), tmp_path / "run.inspect")))
    (line,) = said(tmp_path / "run.inspect")
    assert line.startswith("Of activations and states in the model nothing is recorded: what torch.jit.script makes")


@pytest.mark.filterwarnings("ignore:`torch.jit")
def test_a_scripted_part_is_named_and_the_others_are_recorded(tmp_path: Path) -> None:
    model = nn.Sequential(scripted(made()), nn.Linear(4, 2))
    trained(model, tmp_path / "run.inspect")
    (line,) = said(tmp_path / "run.inspect")
    assert line.startswith("Of activations and states in 0 nothing is recorded: ")
    with inspector.open_capture(tmp_path / "run.inspect") as capture:
        assert list(capture.labels("module")) == ["1"]
