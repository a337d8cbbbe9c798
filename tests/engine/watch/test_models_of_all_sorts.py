"""Models that change while they train, of other precision, or that are traced and transformed meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import inspector
from inspector.capture import CaptureError
from inspector.engine.model.subject import Subject
from inspector.engine.watch.hooks import NO_SCRIPT


def layers() -> nn.Sequential:
    return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 3))


Change = Callable[[nn.Sequential, Any, Any], Any]


def trained(
    path: Path, model: nn.Module, change: Change | None = None, batch: Callable[[], Tensor] = lambda: torch.randn(4, 8)
) -> list[float]:
    """Twelve iterations, with a change before the seventh; the norms of all gradients that the optimizer gets."""
    optimizer: Any = torch.optim.Adam(model.parameters(), 1e-2)
    norms = []
    with inspector.watch(model, optimizer, path, every=1) as watcher:
        for n in range(12):
            if n == 6 and change is not None:
                optimizer = change(model, optimizer, watcher) or optimizer  # type: ignore[arg-type]
            loss = model(batch()).abs().square().mean()
            optimizer.zero_grad()
            loss.backward()
            given = [one for group in optimizer.param_groups for one in group["params"] if one.grad is not None]
            norms.append(float(torch.stack([one.grad.abs().double().square().sum() for one in given]).sum().sqrt()))
            optimizer.step()
        assert watcher.error is None
    return norms


def replaced_in_place(model: nn.Sequential, optimizer: Any, watcher: Any) -> None:
    old = {id(one) for one in model[2].parameters()}
    model[2] = nn.Linear(16, 3)
    group = optimizer.param_groups[0]
    group["params"] = [one for one in group["params"] if id(one) not in old] + list(model[2].parameters())


def replaced_with_its_optimizer(model: nn.Sequential, optimizer: Any, watcher: Any) -> Any:
    model[2] = nn.Linear(16, 3)
    found = torch.optim.Adam(model.parameters(), 1e-2)
    assert watcher.also(found)
    return found


def added(model: nn.Sequential, optimizer: Any, watcher: Any) -> None:
    model.append(nn.Linear(3, 3))
    optimizer.add_param_group({"params": list(model[3].parameters())})


@pytest.mark.parametrize("change", [replaced_in_place, replaced_with_its_optimizer, added])
def test_gradients_are_those_of_the_parameters_that_are_trained(change: Change, tmp_path: Path) -> None:
    norms = trained(tmp_path / "run.inspect", layers(), change)
    with inspector.open_capture(tmp_path / "run.inspect") as capture:
        shown = capture.array("training:gradient_norm")
        assert shown[:, 0] == pytest.approx(norms, rel=1e-5) and shown[:, 1] == pytest.approx(norms, rel=1e-5)
        names = capture.labels("parameter")
        moved = dict(zip(names, capture.array("parameters:update/norm").T, strict=True))
        new, old = ("3.weight", "3.bias") if change is added else ("2.weight (2)", "2.bias (2)"), "2.weight"
        for name in new:
            assert np.isnan(moved[name][:6]).all() and (moved[name][6:] > 0).all()
        assert change is added or np.isnan(moved[old][6:]).all()


def test_a_model_that_gets_its_parameters_in_its_first_call(tmp_path: Path) -> None:
    model = nn.Sequential(nn.LazyLinear(16), nn.Tanh(), nn.LazyLinear(3))
    trained_before = torch.optim.SGD(model.parameters(), 1e-2)
    with inspector.watch(model, trained_before, tmp_path / "run.inspect", every=1) as watcher:
        for _ in range(3):
            model(torch.randn(4, 8)).square().mean().backward()
            trained_before.step()
        assert watcher.error is None
    with inspector.open_capture(tmp_path / "run.inspect") as capture:
        assert capture.array("parameters:weight/norm").shape == (3, 4)
        assert all(place.parameters == 0 for place in capture.start.places)


class Doubled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.LSTM(8, 6, batch_first=True)
        self.attention, self.head = nn.MultiheadAttention(6, 2, batch_first=True), nn.Linear(6, 2)

    def forward(self, x: Tensor) -> Tensor:
        y = self.rnn(x)[0]
        found: Tensor = self.head(self.attention(y, y, y)[0])
        return found


def test_a_model_in_double_precision_has_every_series(tmp_path: Path) -> None:
    norms = trained(tmp_path / "run.inspect", Doubled().double(), batch=lambda: torch.randn(4, 5, 8).double())
    with inspector.open_capture(tmp_path / "run.inspect") as capture:
        assert not capture.logs and capture.array("training:gradient_norm")[:, 0] == pytest.approx(norms, rel=1e-5)
        assert {"modules:activation/mean_abs", "modules:state/norm", "modules:gate/saturated"} <= set(capture.channels)


def test_a_second_moment_of_complex_numbers_is_a_mean_over_both_parts(tmp_path: Path) -> None:
    model = nn.Linear(8, 3, dtype=torch.cfloat)
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    with inspector.watch(model, optimizer, tmp_path / "run.inspect", every=1):
        model(torch.randn(4, 8, dtype=torch.cfloat)).abs().square().mean().backward()
        optimizer.step()
    v = torch.view_as_real(optimizer.state[model.weight]["exp_avg_sq"]).double() / (1 - 0.999)
    with inspector.open_capture(tmp_path / "run.inspect") as capture:
        assert capture.array("parameters:adam/root_v")[0, 0] == pytest.approx(float(v.mean().sqrt()), rel=1e-4)


@pytest.mark.filterwarnings("ignore:`torch.jit")
def test_traces_and_transforms_have_nothing_of_the_watcher_in_them(tmp_path: Path) -> None:
    def used(model: nn.Sequential, optimizer: Any, watcher: Any) -> None:
        x = torch.randn(4, 8)
        traced = torch.jit.trace(model, x)
        assert torch.equal(traced(x), model(x)) and "foreach" not in str(traced.inlined_graph)
        own = {name: one.detach() for name, one in model.named_parameters()}

        def loss(parameters: Any, one: Tensor) -> Tensor:
            return torch.func.functional_call(model, parameters, (one,)).square().mean()

        torch.func.vmap(torch.func.grad(loss), (None, 0))(own, x)
        with torch.inference_mode():
            model(x)

    trained(tmp_path / "run.inspect", layers(), used)
    with inspector.open_capture(tmp_path / "run.inspect") as capture:
        assert not capture.logs and len(capture.array("training:loss")) == 12


def test_inference_mode_before_anything_else(tmp_path: Path) -> None:
    def batch() -> Tensor:
        with torch.inference_mode():
            model(torch.randn(4, 8))
        return torch.randn(4, 8)

    model = layers()
    trained(tmp_path / "run.inspect", model, batch=batch)
    with inspector.open_capture(tmp_path / "run.inspect") as capture:
        read = np.isfinite(capture.array("modules:activation/mean_abs")[:, 0])
        assert not capture.logs and read.nonzero()[0].tolist() == [0, 4, 8]


@pytest.mark.filterwarnings("ignore:`torch.jit")
def test_scripting_a_watched_model_says_what_to_do(tmp_path: Path) -> None:
    model = layers()
    with inspector.watch(model, torch.optim.SGD(model.parameters(), 0.1), tmp_path / "run.inspect"):
        with pytest.raises(AttributeError) as found:
            torch.jit.script(model)
        assert str(found.value) == NO_SCRIPT
    torch.jit.script(model)


def test_a_number_beyond_all_floats_is_infinite(tmp_path: Path) -> None:
    model = layers()
    optimizer = torch.optim.SGD([{"params": model.parameters(), "own": -(10**400)}], 0.1)
    with inspector.watch(model, optimizer, tmp_path / "run.inspect", every=1) as watcher:
        watcher.log(large=10**400)
        model(torch.randn(4, 8)).sum().backward()
        optimizer.step()
        assert watcher.error is None
    with inspector.open_capture(tmp_path / "run.inspect") as capture:
        assert np.isposinf(capture.array("training:logged")).all()
        assert np.isneginf(capture.array("training:optimizer")).any()


class Unusual(nn.Module):
    """Returns a list that is a part of itself, or an object whose `data` raises; has a parameter in 8 bits."""

    class Output:
        def __init__(self, y: Tensor) -> None:
            self.y = y

        @property
        def data(self) -> Tensor:
            raise RuntimeError("no data")

    def __init__(self) -> None:
        super().__init__()
        self.inside, self.calls = nn.Linear(8, 3), 0
        self.stored = nn.Parameter(torch.zeros(4).to(torch.float8_e4m3fn), requires_grad=False)

    def forward(self, x: Tensor) -> Any:
        self.calls += 1
        itself: list[Any] = []
        itself.append(itself)
        return [itself, self.inside(x)] if self.calls % 2 else Unusual.Output(self.inside(x))


def test_outputs_and_parameters_that_nothing_can_be_done_with(tmp_path: Path) -> None:
    model = Unusual()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with inspector.watch(model, optimizer, tmp_path / "run.inspect", every=1, cost="full") as watcher:
        for _ in range(4):
            made = model(torch.randn(4, 8))
            (made[1] if isinstance(made, list) else made.y).sum().backward()
            optimizer.step()
        assert watcher.error is None
    with inspector.open_capture(tmp_path / "run.inspect") as capture:
        assert len(capture.array("training:loss")) == 4 and not capture.logs


def test_what_is_no_number_is_left_out_and_said_once(tmp_path: Path) -> None:
    model = layers()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with inspector.watch(model, optimizer, tmp_path / "run.inspect", every=1) as watcher:
        for n in range(3):
            watcher.log(status="fine", many=torch.ones(3), z=1j, loss="low", fine=n)
            model(torch.randn(4, 8)).sum().backward()
            optimizer.step()
        assert watcher.error is None
    with inspector.open_capture(tmp_path / "run.inspect") as capture:
        assert sorted(log.text.split(";")[0] for log in capture.logs) == [
            "log(loss=…) was given str", "log(many=…) was given a tensor of shape (3,)",
            "log(status=…) was given str", "log(z=…) was given complex",
        ]  # fmt: skip
        assert capture.array("training:logged")[:, 0].tolist() == [0, 1, 2]


def test_a_path_that_no_system_takes_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match=r"Nothing can be written at .* \(File name too long\)\."):
        inspector.watch(layers(), None, tmp_path / ("n" * 5000))


@pytest.mark.parametrize("also", ["run", "preflight"])
def test_a_run_of_the_model_in_the_loop_is_no_part_of_the_training(also: str, tmp_path: Path) -> None:
    """Neither its activations nor its batch, nor the optimizers of its trial steps."""

    def recorded(also: str | None, path: Path) -> dict[str, Any]:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Embedding(11, 4), nn.Linear(4, 11))
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        with inspector.watch(model, optimizer, path, every=1, cost="full") as watcher:
            for n in range(4):
                if also is not None and n == 2:
                    getattr(inspector, also)(Subject(model=model, next_token=True), [1, 2, 3, 4, 5])
                model(torch.randint(11, (3, 6))).square().mean().backward()
                optimizer.step()
                optimizer.zero_grad()
            assert watcher.error is None
        with inspector.open_capture(path) as capture:
            assert not capture.logs
            wanted = (name for name in capture.channels if "time" not in name and "cost" not in name)
            return {name: np.asarray(capture.array(name)) for name in wanted}

    plain, found = recorded(None, tmp_path / "a.inspect"), recorded(also, tmp_path / "b.inspect")
    assert plain.keys() == found.keys()
    for name, values in plain.items():
        np.testing.assert_array_equal(found[name], values, err_msg=name)
