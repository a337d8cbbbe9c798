"""Statistics that are computed beside the model are those of its attention, and end with the run that wants them."""

from __future__ import annotations

import gc
import math
import threading
from concurrent.futures import wait
from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from listed import Listed
from torch import Tensor, nn

from inspector.engine.attention import ahead as beside
from inspector.engine.attention.ahead import Ahead
from inspector.engine.attention.one_pass import Statistics, one_pass
from inspector.engine.cells.check import Check
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.probes.attention import AttentionProbe
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.trace import Attention, Trace

pytestmark = pytest.mark.usefixtures("one_thread")
KEYS = ("attention/entropy", "attention/distance")
D, STEPS = 8, 40


class Layers(nn.Module):
    """Three layers of causal attention with 2 heads."""

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(3):
            q = x.unflatten(-1, (2, -1)).transpose(1, 2)
            x = x + F.scaled_dot_product_attention(3 * q, q, q, is_causal=True).transpose(1, 2).flatten(-2)
        return x


class Decoder(nn.Module):
    """A query a step, with the keys so far: calls that are joined to one map when the model has returned."""

    def forward(self, x: Tensor) -> Tensor:
        rows = [F.scaled_dot_product_attention(x[:, t : t + 1], x[:, : t + 1], x[:, : t + 1]) for t in range(STEPS)]
        return torch.cat(rows, 1)


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the threads in which passes are made; every attention is large enough."""
    found: list[str] = []

    def noted(*given: object) -> Statistics:
        found.append(threading.current_thread().name)
        return one_pass(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(beside, "one_pass", noted)
    monkeypatch.setattr(beside, "LEAST", 1)
    monkeypatch.setattr(beside, "_cores", lambda: 2)
    return found


def run(model: nn.Module, x: Tensor, *, also: tuple[str, ...] = ()) -> Listed:
    trace = Trace(Subject(model), Batch(x, torch.tensor([STEPS])), chosen=frozenset((*KEYS, *also)))
    sink = Listed()
    emit, probe = Emitter(sink), AttentionProbe()
    probe.attach(model, trace, emit)
    try:
        model(x)
    finally:
        probe.detach()
    begun = trace.findings.get(Ahead)
    wait([] if begun is None else [one.result for one in begun.waiting.values()])  # else the caller takes what waits
    probe.finish(trace, emit)
    for key in KEYS:
        QUANTITIES[key].run(trace, emit)
    return sink


def expected(q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
    """Entropy and mean distance of causal attention, in float64 with a loop over its rows."""
    entropy, distance = [], []
    for t in range(len(q)):
        a = torch.softmax((k[: t + 1].double() @ q[t].double()) / math.sqrt(q.shape[-1]), 0)
        entropy.append(-(a * a.log()).sum())
        distance.append((a * (t - torch.arange(t + 1))).sum())
    return torch.stack(entropy), torch.stack(distance)


def test_they_are_those_of_the_attention(names: list[str]) -> None:
    torch.manual_seed(0)
    x = torch.randn(1, STEPS, D)
    sink = run(Layers(), x)
    assert names and all(name.startswith("attention-statistics") for name in names)
    for head in range(2):
        q = x[0, :, head * 4 : head * 4 + 4]
        entropy, distance = expected(3 * q, q)
        np.testing.assert_allclose(sink.array("model:attention/entropy")[head], entropy, atol=2e-5)
        np.testing.assert_allclose(sink.array("model:attention/distance")[head], distance, atol=2e-4)


def test_joined_calls_are_computed_as_one(names: list[str]) -> None:
    torch.manual_seed(1)
    x = torch.randn(1, STEPS, D)
    sink = run(Decoder(), x)
    entropy, _ = expected(x[0], x[0])
    np.testing.assert_allclose(sink.array("model:attention/entropy")[0], entropy, atol=2e-5)
    assert len(names) == STEPS  # each row came by itself; none of that was used


@pytest.mark.parametrize("change", ["threads", "cores"])
def test_nothing_is_begun(change: str, names: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    if change == "threads":
        monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    if change == "cores":
        monkeypatch.setattr(beside, "_cores", lambda: 1)
    also = ("attention/maps",) if change == "maps" else ()
    sink = run(Layers(), torch.randn(1, STEPS, D), also=also)
    assert sink.array("model:attention/entropy").shape == (2, STEPS) and not names


def attention() -> Attention:
    q = torch.randn(1, 2, STEPS, D)
    return Attention("a", "A", q, q, 1.0, causal=True, kept=0, check=Check(0.0, 1.0))


def test_what_nobody_waits_for_is_not_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, goes_on, ended, threads = threading.Event(), threading.Event(), [], []

    def slow(one: Attention, sample: int, check: object, *_: object) -> Statistics:
        threads.append(threading.current_thread())
        begun.set()
        assert goes_on.wait(10) and callable(check)
        try:
            check()
        except beside.Dropped:
            ended.append("dropped")
            raise
        return Statistics({}, 0, 0)

    monkeypatch.setattr(beside, "one_pass", slow)
    monkeypatch.setattr(beside, "LEAST", 1)
    whole = Ahead(0, KEYS)
    for _ in range(3):
        whole.arrived(attention())
    assert begun.wait(10)
    del whole
    gc.collect()
    goes_on.set()
    threads[0].join(10)
    assert not threads[0].is_alive() and ended == ["dropped"]


def test_only_what_is_unchanged_is_taken(names: list[str]) -> None:
    whole, one = Ahead(0, KEYS), attention()
    for changed in (replace(one, scale=2.0), replace(one, causal=False), replace(one, keys_from="source step")):
        whole.arrived(one)
        wait([whole.waiting[id(one.query)].result])
        assert whole.take(changed, KEYS) is None
    whole.arrived(one)
    wait([whole.waiting[id(one.query)].result])
    assert whole.take(one, ("attention/sink_mass",)) is None  # nobody said that it would be wanted
    whole.arrived(one)
    wait([whole.waiting[id(one.query)].result])
    found, expected = whole.take(replace(one, call=1), KEYS), one_pass(one, 0, lambda: None, KEYS)
    assert found is not None and len(names) == 5
    for key in KEYS:
        torch.testing.assert_close(found.values[key], expected.values[key], rtol=0, atol=0)
