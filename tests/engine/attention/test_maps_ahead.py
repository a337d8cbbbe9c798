"""Maps that are written while the model runs are those that are written when it has returned, described as they are."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from concurrent.futures import wait
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import inspector
from inspector.capture import Capture
from inspector.engine.attention import ahead as beside
from inspector.engine.attention.one_pass import Statistics, one_pass
from inspector.engine.errors import ModelError
from inspector.engine.quantities.attention import attention_maps

pytestmark = pytest.mark.usefixtures("one_thread")
D, STEPS = 8, 24
ONLY = ("attention/maps", "attention/entropy")


def heads(x: Tensor, count: int = 2) -> Tensor:
    return x.unflatten(-1, (count, -1)).transpose(1, 2)


class Layer(nn.Module):
    """Causal attention of two heads."""

    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(D, 3 * D)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (heads(one) for one in self.project(x).chunk(3, -1))
        return x + F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(-2)


class Causal(nn.Module):
    """Three layers; what the keys are is told by no graph, since nothing needs a gradient."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Layer() for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


class OneModule(Causal):
    """The same module called three times."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([self.layers[0]] * 3)


class Cached(nn.Module):
    """A prompt of half the steps, then one query after the other with the keys so far: calls that are one map."""

    def forward(self, x: Tensor) -> Tensor:
        half = x.shape[1] // 2
        rows = [F.scaled_dot_product_attention(x[:, :half], x[:, :half], x[:, :half], is_causal=True)]
        rows += [
            F.scaled_dot_product_attention(x[:, t : t + 1], x[:, : t + 1], x[:, : t + 1])
            for t in range(half, x.shape[1])
        ]
        return torch.cat(rows, 1)


class Masked(nn.Module):
    """A row that may attend to nothing, padding, and another sequence as keys."""

    def forward(self, x: Tensor) -> Tensor:
        mask = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool)
        mask[3], mask[:, -2:] = False, False
        own = F.scaled_dot_product_attention(x, x, x, attn_mask=mask).nan_to_num()
        other = x[:, : x.shape[1] // 2].flip(1)
        return F.scaled_dot_product_attention(own, other, other)


class Recurrent(nn.Module):
    """Attention over the states of a GRU whose steps are another axis's: known when the model has returned."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.decoder = nn.GRU(D, D, batch_first=True), nn.GRU(D, D, batch_first=True)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        states, _ = self.encoder(source)
        queries, _ = self.decoder(target)
        return F.scaled_dot_product_attention(queries, states, states)


class Beside(nn.Module):
    """Attention to another input, whose steps are found to be the keys when the model has returned."""

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(source, target, target)


MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "causal": (Causal, (STEPS,)), "one module": (OneModule, (STEPS,)), "cached": (Cached, (STEPS,)),
    "masked": (Masked, (STEPS,)), "two inputs": (Recurrent, (STEPS, 10)),
    "beside": (Beside, (STEPS, 10)),
}  # fmt: skip


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the threads in which passes that were begun ahead are made; every attention is large enough."""
    found: list[str] = []

    def noted(*given: Any) -> Statistics:
        found.append(threading.current_thread().name)
        return one_pass(*given)

    monkeypatch.setattr(beside, "one_pass", noted)
    monkeypatch.setattr(beside, "LEAST", 1)
    monkeypatch.setattr(beside, "_cores", lambda: 2)
    stop = beside.Ahead.stop

    def patient(self: beside.Ahead) -> None:
        wait([one.result for one in self.waiting.values()])  # so short a model has returned before they begin
        stop(self)

    monkeypatch.setattr(beside.Ahead, "stop", patient)
    return found


def captured(name: str, path: Path) -> Capture:
    torch.manual_seed(3)
    make, steps = MODELS[name]
    model = make().eval().requires_grad_(False)
    given = {key: torch.randn(1, n, D) for key, n in zip(("source", "target"), steps, strict=False)}
    data: Any = {key: one[0] for key, one in given.items()} if len(steps) > 1 else given["source"]
    return inspector.run(model, data, out=path, only=ONLY)


@pytest.mark.parametrize("name", MODELS)
def test_they_are_those_that_are_written_afterwards(
    name: str, threads: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with captured(name, tmp_path / "ahead.inspect") as ahead:
        assert threads and all(one.startswith("attention-maps") for one in threads)
        del threads[:]
        monkeypatch.setattr(beside, "_cores", lambda: 1)
        with captured(name, tmp_path / "after.inspect") as after:
            assert not threads and any(one.endswith(":attention") for one in after.channels)
            assert set(ahead.channels) == set(after.channels)
            for channel in after.channels:
                assert ahead.channel(channel) == after.channel(channel)
                np.testing.assert_array_equal(ahead.array(channel), after.array(channel))
            assert [one.reason for one in ahead.refusals] == [one.reason for one in after.refusals]


def test_they_are_the_softmax_in_float64(threads: list[str], tmp_path: Path) -> None:
    torch.manual_seed(3)
    model = Causal().eval().requires_grad_(False)
    x = torch.randn(1, STEPS, D)
    with inspector.run(model, x, out=tmp_path / "run.inspect", only=ONLY) as capture:
        shown = capture.array("layers.0:attention")
    project = model.layers[0].project
    weights, biases = project.weight.double(), project.bias.double()
    q, k, _ = (x[0].double() @ weights.T + biases).chunk(3, -1)
    for head in range(2):
        at = slice(head * 4, head * 4 + 4)
        for t in range(STEPS):
            row = torch.softmax(k[: t + 1, at] @ q[t, at] / math.sqrt(4), 0)
            np.testing.assert_allclose(shown[head, t, : t + 1], row, atol=5e-4)
            assert not shown[head, t, t + 1 :].any()
    assert len(threads) == 3


class Breaks(Causal):
    """The last layer fails."""

    def forward(self, x: Tensor) -> Tensor:
        super().forward(x)
        raise ValueError("no output")


def test_a_model_that_fails_leaves_the_maps_that_were_written(threads: list[str], tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no output"):
        inspector.run(Breaks().eval(), torch.randn(1, STEPS, D), out=tmp_path / "run.inspect", only=ONLY)
    assert threads
    assert not [one for one in threading.enumerate() if one.name.startswith("attention-maps")]


def test_where_not_all_fit_those_begun_stay(
    threads: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = 2 * 2 * STEPS * STEPS
    monkeypatch.setattr(attention_maps, "BUDGET_BYTES", int(2.9 * one))
    with captured("causal", tmp_path / "fits.inspect") as before:
        maps = [name for name in before.channels if name.endswith(":attention")]
        stored = {name: before.channel(name).computed for name in maps}
        numbers = {name: before.array(name) for name in maps}
    monkeypatch.setattr(beside, "MAP_BYTES", one)
    with captured("causal", tmp_path / "one.inspect") as capture:
        for name in maps:
            np.testing.assert_allclose(capture.array(name), numbers[name], atol=5e-4)
            assert f"{name}/allowed" in capture.channels
        kinds = [bool(capture.channel(name).computed) for name in maps]
    assert not any(stored.values()) and kinds == [False, True, True]


def test_a_full_disk_is_left_alone(threads: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beside, "free_bytes", lambda _emit: 1000)
    with captured("causal", tmp_path / "run.inspect") as capture:
        assert not threads and any(name.endswith(":attention") for name in capture.channels)
