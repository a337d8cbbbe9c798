"""Compiled parts run uncompiled under the probes; what no probe can watch is named with what to do."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from listed import Listed
from torch import Tensor, nn

import inspector
from inspector.engine.errors import InputError
from inspector.engine.model.subject import Batch, adopt
from inspector.engine.opening.open_subject import open_subject
from inspector.engine.pipeline import RunOptions, perform
from inspector.engine.pipeline.watched_call import WatchedCall
from inspector.records import Frame, Load, Log

OPTIONS = RunOptions(only=("states",))


class Hand(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.x, self.h, self.rnn = nn.Linear(3, 4), nn.Linear(4, 4), nn.GRU(4, 4, batch_first=True)

    def step(self, x: Tensor, h: Tensor) -> Tensor:
        return torch.tanh(self.x(x) + self.h(h))

    def forward(self, x: Tensor) -> Tensor:
        h, states = x.new_zeros(len(x), 4), []
        for t in range(x.shape[1]):
            h = self.step(x[:, t], h)
            states.append(h)
        found: Tensor = self.rnn(torch.stack(states, 1))[0]
        return found


class Around(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.inner(x)
        return found


def compiled(thing: Callable[..., Tensor]) -> nn.Module:
    made: nn.Module = torch.compile(thing, backend="eager")  # type: ignore[assignment]
    return made


def whole() -> nn.Module:
    return compiled(Hand())


def part() -> nn.Module:
    return Around(compiled(Hand()))


def in_place() -> nn.Module:
    model = Hand()
    model.compile(backend="eager")
    return model


def method() -> nn.Module:
    model = Hand()
    model.step = compiled(model.step)  # type: ignore[method-assign, assignment]
    return model


def sequence() -> Tensor:
    torch.manual_seed(1)
    return torch.randn(1, 5, 3)


@pytest.mark.parametrize(("make", "outer"), [(whole, ""), (part, "inner"), (in_place, ""), (method, "")])
def test_compiled_parts_run_uncompiled_and_are_shown(
    make: Callable[[], nn.Module], outer: str, capfd: pytest.CaptureFixture[str]
) -> None:
    plain, sink = Listed(), Listed()
    perform(adopt(Hand()), Batch(sequence(), torch.tensor([5])), plain, OPTIONS)
    model = make()
    before = [type(module).__name__ for module in model.modules()]
    perform(adopt(model), Batch(sequence(), torch.tensor([5])), sink, OPTIONS)
    names = (f"{outer or 'model'}:h", f"{outer}.rnn.l0:h".lstrip("."))
    for own, name in zip(("model:h", "rnn.l0:h"), names, strict=True):
        assert sink.array(name).tolist() == plain.array(own).tolist()
    assert not sink.refusals() and capfd.readouterr().err == ""
    assert [type(module).__name__ for module in model.modules()] == before


def test_a_compiled_part_is_named_in_the_log() -> None:
    sink = Listed()
    perform(adopt(part()), Batch(sequence(), torch.tensor([5])), sink, OPTIONS)
    assert any("(inner) runs uncompiled" in log.text for log in sink.of(Log))


def test_a_watched_call_of_a_compiled_model_is_shown_and_leaves_it_compiled() -> None:
    model, sink = part(), Listed()
    with WatchedCall(model, Batch(sequence(), torch.tensor([5])), sink, OPTIONS, Frame(index=0)):
        model(sequence())
    assert {"inner:h", "inner.rnn.l0:h"} <= sink.names() and not sink.refusals()
    assert type(model.inner).__name__ == "OptimizedModule"


class Fused(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.GRU(3, 4, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.rnn(x)[0]
        return found


@pytest.mark.parametrize("how", ["script", "trace"])
@pytest.mark.parametrize("outer", ["", "inner"])
def test_torchscript_has_a_sentence_of_its_own(how: str, outer: str) -> None:
    with warnings.catch_warnings(action="ignore"):  # torch.jit is deprecated, and tracing warns of sizes
        made: nn.Module = torch.jit.script(Fused()) if how == "script" else torch.jit.trace(Fused(), sequence())
    sink = Listed()
    model = Around(made) if outer else made
    trace = perform(adopt(model), Batch(sequence(), torch.tensor([5])), sink, OPTIONS)
    assert trace.output.shape == (1, 5, 4)
    reason = sink.refusals()[f"{outer or 'model'}:h"]
    assert "TorchScript" in reason and "open the Python module" in reason


class Mapped(Hand):
    def forward(self, x: Tensor) -> Tensor:
        return torch.vmap(self.one)(x)

    def one(self, x: Tensor) -> Tensor:
        h = x.new_zeros(4)
        for t in range(x.shape[0]):
            h = self.step(x[t], h)
        return h


def test_a_loop_inside_vmap_has_a_sentence_of_its_own() -> None:
    sink = Listed()
    perform(adopt(Mapped()), Batch(sequence(), torch.tensor([5])), sink, OPTIONS)
    reason = sink.refusals()["model:h"]
    assert "vmap" in reason and "Mapped." in reason and "INTERNAL" not in reason


def test_a_model_object_without_values_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"weight has no values \(device 'meta'\)"):
        inspector.run(nn.Linear(3, 2).to("meta"), torch.zeros(4, 3), out=tmp_path / "x.inspect")
    assert not (tmp_path / "x.inspect").exists()


@pytest.mark.parametrize("which", ["all", "buffer"])
def test_a_model_without_values_is_refused(which: str, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import torch\nfrom torch import nn\n"
        "def make():\n    model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))\n"
        f"    return model.to('meta') if {which!r} == 'all' else half(model)\n"
        "def half(model):\n    model[1].running_mean = model[1].running_mean.to('meta')\n    return model\n"
    )
    count = "7 tensors" if which == "all" else "1 tensor"
    with pytest.raises(InputError, match=f"{count} without values, on the device 'meta'"):
        open_subject(Load(subject=f"{tmp_path / 'mine.py'}:make", trusted=True))
