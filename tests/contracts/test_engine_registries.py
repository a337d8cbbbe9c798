"""Every entry of the engine's registries, before its own test exists: it describes itself and runs on every family."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from every_quantity import every_quantity
from kept import Kept
from torch import nn

import inspector
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform
from inspector.engine.registries import INPUTS, LOADERS, PROBES, QUANTITIES
from inspector.records import Channel, Page, Refusal
from inspector.registry import Registry

ROOMS = Path(inspector.__file__).parent
REGISTRIES: list[Registry[Any]] = [PROBES, QUANTITIES, LOADERS, INPUTS]


class Stack(nn.Module):
    """A recurrent module and a read-out."""

    def __init__(self, make: Callable[..., nn.Module], hidden: int) -> None:
        super().__init__()
        self.rnn = make()
        self.head = nn.Linear(hidden, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.head(self.rnn(x)[0])
        return out


class Encoder(nn.Module):
    """A small transformer encoder and a read-out."""

    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.0)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.head(self.encoder(x))
        return out


MODELS: dict[str, Callable[[], nn.Module]] = {
    "rnn": lambda: Stack(lambda: nn.RNN(8, 6, batch_first=True), 6),
    "relu": lambda: Stack(lambda: nn.RNN(8, 6, nonlinearity="relu", batch_first=True), 6),
    "gru": lambda: Stack(lambda: nn.GRU(8, 6, 2, batch_first=True), 6),
    "lstm": lambda: Stack(lambda: nn.LSTM(8, 6, bidirectional=True, batch_first=True), 12),
    "projected": lambda: Stack(lambda: nn.LSTM(8, 6, proj_size=3, batch_first=True), 3),
    "transformer": Encoder,
}


def loss(output: torch.Tensor, batch: Batch) -> torch.Tensor:
    """A loss at every step: minus the log-probability of class 1."""
    return -output.log_softmax(-1)[..., 1]


def run(key: str, steps: int, quantities: tuple[str, ...] = ()) -> Kept:
    """All records of a run of one of MODELS."""
    torch.manual_seed(0)
    subject = Subject(model=MODELS[key]().eval(), name=key, kind="vectors", width=8, labels=tuple("abcd"), loss=loss)
    batch = Batch(inputs=torch.randn(3, steps, 8), lengths=torch.full((3,), steps))
    kept = Kept()
    perform(subject, batch, kept, RunOptions(only=tuple(quantities), seed=0))
    return kept


@pytest.mark.parametrize("registry", REGISTRIES, ids=lambda registry: registry.name)
def test_every_file_of_a_registry_registers_and_loads(registry: Registry[Any]) -> None:
    registry.load()
    assert not registry.broken, registry.broken
    folder = ROOMS.joinpath(*registry.package.split(".")[1:])
    files = {f"{registry.package}.{path.stem}" for path in folder.glob("*.py") if path.stem != "__init__"}
    assert files <= {registry.origin(key) for key in registry}, "a file of the registry registers nothing"


@pytest.mark.parametrize("registry", REGISTRIES, ids=lambda registry: registry.name)
def test_every_entry_says_what_it_is_in_one_line(registry: Registry[Any]) -> None:
    for key, entry in registry.items():
        assert entry.summary and "\n" not in entry.summary, key


def test_keys_are_literal() -> None:
    for registry in REGISTRIES:
        for path in ROOMS.joinpath(*registry.package.split(".")[1:]).glob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "register":
                    assert isinstance(node.args[0], ast.Constant), f"{path.name} registers a computed key"


@pytest.mark.filterwarnings("ignore:LSTM with projections")
@pytest.mark.parametrize("steps", [1, 2, 37])
@pytest.mark.parametrize("key", sorted(MODELS))
def test_every_quantity_runs_on_every_family(key: str, steps: int) -> None:
    kept = run(key, steps, every_quantity())
    channels = {channel.name: channel for channel in kept.of(Channel)}
    assert channels
    for refusal in kept.of(Refusal):
        assert refusal.reason.endswith(".") and "Traceback" not in refusal.reason
        assert "failed with" not in refusal.reason, f"{refusal.channel} was refused by a fault: {refusal.reason}"
    for page in kept.of(Page):
        channel = channels[page.channel]
        assert str(page.array.dtype) == channel.dtype, page.channel
        assert page.array.ndim == len(channel.dims), page.channel
        for start, count, length in zip(page.offset, page.array.shape, channel.shape, strict=True):
            assert length is None or start + count <= length, page.channel


@pytest.mark.filterwarnings("ignore:LSTM with projections")
@pytest.mark.parametrize("key", sorted(MODELS))
def test_every_channel_describes_itself(key: str) -> None:
    for channel in run(key, 9).of(Channel):
        assert channel.title and channel.unit and channel.method, channel.name
        assert channel.kind in {"input", "output", "health", "state", "attention"} or channel.formula, channel.name


@pytest.mark.parametrize("key", ["gru", "transformer"])
def test_a_part_of_the_quantities_gives_a_part_of_the_channels(key: str) -> None:
    whole = {channel.name for channel in run(key, 9).of(Channel)}
    part = {channel.name for channel in run(key, 9, ("states",)).of(Channel)}
    assert part < whole


def test_states_equal_the_modules_own_output() -> None:
    torch.manual_seed(0)
    model = MODELS["rnn"]().eval()
    kept = run("rnn", 11)
    x = torch.manual_seed(0) and None
    del x
    pages = [page for page in kept.of(Page) if page.channel == "rnn.l0:h"]
    torch.manual_seed(0)
    MODELS["rnn"]()
    inputs = torch.randn(3, 11, 8)
    expected = model.rnn(inputs)[0][0]  # type: ignore[operator, union-attr]
    got = torch.full((11, 6), math.nan)
    for page in pages:
        got[page.offset[0] : page.offset[0] + len(page.array)] = torch.from_numpy(page.array.copy())
    torch.testing.assert_close(got, expected)
