"""Real captures for the panels, and a check that no window is left behind."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtWidgets import QApplication

from inspector.capture import Writer
from inspector.records import Channel, Frame, Labels, Page, Place, RunStart, RunStop, Scalar

Put = Callable[[Channel, np.ndarray], None]
HOSTILE = ("<s>", "<img src=file:///etc/passwd>", "a&b", "\n", " ", "\u202eevil", "日本")


@pytest.fixture(autouse=True)
def collected_in_the_main_thread() -> Iterator[None]:
    """As in the window (gui/collecting.py): Qt objects never die in the thread of a writer or of a pipe."""
    gc.disable()
    yield
    gc.collect(1)
    gc.enable()


@pytest.fixture(autouse=True)
def no_window_is_left(qapp: QApplication) -> Iterator[None]:
    """A test that leaves a visible window fails."""
    yield
    qapp.processEvents()
    left = [w for w in qapp.topLevelWidgets() if w.isVisible()]
    for widget in left:
        widget.close()
    assert not left, left


def make_capture(path: Path, steps: int, units: int, *, nan: bool = False, hostile: bool = False) -> Path:
    """A capture with every kind of channel, its numbers from a seeded walk."""
    random = np.random.default_rng(0)
    places = (Place(name="", module="Model"), Place(name="rnn", module="LSTM", parameters=3))
    with Writer(path, RunStart(run="r", title="<b>a run</b>", places=places)) as writer:
        writer.write(Frame(index=0))
        names = [HOSTILE[i % len(HOSTILE)] if hostile else chr(97 + i % 26) for i in range(steps)]
        for start in range(0, steps, 4096):
            writer.write(Labels("step", tuple(names[start : start + 4096]), 0, start))
        writer.write(Labels("vocabulary", ("<s>", "a", "b", "c"), -1))

        def put(channel: Channel, values: np.ndarray) -> None:
            writer.write(channel)
            size = max(1, -(-len(values) // 3))
            for start in range(0, len(values), size):
                writer.write(Page(channel.name, 0, (start, *[0] * (values.ndim - 1)), values[start : start + size]))

        state = np.tanh(random.normal(size=(steps, units))).astype(np.float32)
        if nan:
            state[steps // 2] = np.nan
            state[0, 0] = np.inf
        put(Channel(name="rnn.l0:h", kind="state", dims=("step", "unit"), shape=(steps, units), title="hidden state",
                    scale="diverging", formula="h"), state)  # fmt: skip
        for gate in ("input", "forget"):
            put(Channel(name=f"rnn.l0:gate/{gate}", kind="gate", dims=("step", "unit"), shape=(steps, units),
                        title=f"{gate} gate", limits=(0, 1)), np.abs(state))  # fmt: skip
            put(Channel(name=f"rnn.l0:gate/{gate}/saturation", kind="unit", dims=("statistic", "unit"), dtype="float64",
                        shape=(3, units), labels={"statistic": ("left", "right", "graded")}), random.random((3, units)))  # fmt: skip
        for kind, signal in (("jacobian", "jacobian/spectral_norm"), ("gradient", "gradient/state_norm")):
            line = np.exp(random.normal(size=steps)).astype(np.float32)
            line[: steps // 10] = np.nan if nan else line[: steps // 10]
            put(
                Channel(name=f"rnn.l0:{signal}", kind=kind, dims=("step",), shape=(steps,), title=signal, scale="log"),
                line,
            )
        lags = min(steps, 60)
        decay = np.exp(-0.3 * np.arange(lags))
        put(Channel(name="rnn.l0:jacobian/lag", kind="lag", dims=("statistic", "lag"), shape=(3, lags), dtype="float64",
                    title="norm by lag", scale="log", labels={"statistic": ("mean", "p10", "p90")}),
            np.stack([decay, decay / 2, decay * 2]))  # fmt: skip
        put(Channel(name="rnn.l0:jacobian/lag_map", kind="map", dims=("start", "lag"), shape=(5, lags), dtype="float64",
                    title="norm by start and lag", scale="log", labels={"start": tuple("01234")}), np.tile(decay, (5, 1)))  # fmt: skip
        writer.write(Scalar("rnn.l0:jacobian/lag_horizon", 0, 24.0 if lags > 24 else float("nan")))
        keys = min(steps, 200)
        weights = random.random((2, keys, keys)).astype(np.float16)
        put(Channel(name="attn:attention", kind="attention", dims=("head", "query", "key"), shape=(2, keys, keys),
                    dtype="float16", title="attention", limits=(0, 1)), weights / weights.sum(-1, keepdims=True))  # fmt: skip
        put(Channel(name="attn:attention/entropy", kind="attention_statistic", dims=("head", "query"), shape=(2, keys),
                    title="entropy", unit="nat"), random.random((2, keys)).astype(np.float32))  # fmt: skip
        put(Channel(name="output:surprise", kind="output", dims=("step",), shape=(steps,), title="surprise", unit="nat"),
            random.random(steps).astype(np.float32))  # fmt: skip
        put(Channel(name="output:probability", kind="output", dims=("step", "rank"), shape=(steps, 3), title="top 3"),
            random.random((steps, 3)).astype(np.float32))  # fmt: skip
        put(Channel(name="output:token", kind="output", dims=("step", "rank"), shape=(steps, 3), dtype="int64",
                    title="tokens", value_domain="vocabulary"), random.integers(0, 4, (steps, 3)))  # fmt: skip
        put_bptt(put, writer, min(steps, 300))
        put_clipping(put, writer, units, hostile, nan)
        put(Channel(name="rnn.l0:health/h", kind="health", dims=("count",), shape=(7,), dtype="int64", title="health",
                    labels={"count": ("-inf", "<0", "0", ">0", "+inf", "nan", "first_bad_step")}),
            np.array([0, 5, 1, 7, int(nan), int(nan) * units, 0 if nan else -1]))  # fmt: skip
        writer.write(RunStop("done"))
    return path


def put_bptt(put: Put, writer: Writer, size: int) -> None:
    """Itemised and truncated gradients through time: a decaying triangle, its sums, curves over K."""
    lag = np.arange(size)[:, None] - np.arange(size)
    items = np.where(lag >= 0, np.exp(-0.2 * np.abs(lag)), 0.0)
    by_lag = np.exp(-0.2 * np.arange(size))
    sums = np.stack((by_lag, 2 * by_lag, 0.1 * by_lag))
    for name in ("weight_ih", "weight_hh"):
        put(Channel(name=f"rnn.l0:bptt/{name}", kind="bptt", dims=("step", "source"), shape=(size, size), unit="nat",
                    title=name, scale="log"), items.astype(np.float32))  # fmt: skip
        put(Channel(name=f"rnn.l0:bptt/{name}/lag", kind="bptt", dims=("statistic", "lag"), shape=(3, size), scale="log",
                    title=f"{name} by lag", dtype="float64", method="an estimate"), sums)  # fmt: skip
        for signal, value in (("check_error", 1e-7), ("total_norm", 2.0), ("immediate_norm", 1.0)):
            writer.write(Scalar(f"rnn.l0:bptt/{name}/{signal}", 0, value))
    ks = np.arange(1.0, size + 1)
    table = np.stack((ks, by_lag, 1 - by_lag / 2, ks / size))
    put(Channel(name="rnn.l0:truncation/all", kind="truncation", dims=("statistic", "truncation"), shape=(4, size),
                dtype="float64", title="all parameters", scale="log"), table)  # fmt: skip
    writer.write(Scalar("rnn.l0:truncation/all/smallest_k_10_percent", 0, 13.0 if size > 13 else float("nan")))
    put(Channel(name="rnn.l0:truncation/adaptive", kind="truncation", dims=("statistic", "step"), shape=(2, size),
                dtype="float64", title="smallest K by step"), np.stack((ks, 2 * ks)))  # fmt: skip


def put_clipping(put: Put, writer: Writer, count: int, hostile: bool, nan: bool) -> None:
    """Gradients of parameters, thresholds, and 50,000 noted steps of training."""
    random = np.random.default_rng(1)
    names = [HOSTILE[i % len(HOSTILE)] if hostile else f"layer.{i}.weight" for i in range(count)]
    writer.write(Labels("trained parameter", tuple(names), 0))
    norms = np.tile(np.array([[1.0], [0.1], [0.5], [0.0], [0.0], [100.0]]), (1, count)) * random.random(count)
    if nan:
        norms[:, 0] = np.nan
    put(Channel(name="parameters:clipping/norms", kind="clipping", dims=("statistic", "parameter"), shape=(6, count),
                dtype="float64", title="gradient by parameter", domains={"parameter": "trained parameter"}), norms)  # fmt: skip
    share = np.linspace(1, 0, 241)
    put(Channel(name="parameters:clipping/by_value", kind="clipping", dims=("statistic", "bin"), shape=(4, 241),
                dtype="float64", title="by value"), np.stack((10 ** (-8 * share), share, 1 - share, 1 - share / 2)))  # fmt: skip
    noted = np.stack((np.arange(50_000.0), np.exp(random.normal(size=50_000))))
    noted[1, 7] = np.nan
    put(Channel(name="parameters:clipping/history", kind="clipping", dims=("statistic", "iteration"),
                shape=(2, 50_000), dtype="float64", title="history"), noted)  # fmt: skip
    for signal, value in (("gradient_norm", float("nan") if nan else 2.0), ("used", 0.5), ("loss_terms", 9.0)):
        writer.write(Scalar(f"parameters:clipping/{signal}", 0, value))


CASES = {
    "normal": (300, 32, {}),
    "one step": (1, 4, {}),
    "two units": (50, 2, {}),
    "long": (100_000, 8, {}),
    "wide": (120, 2000, {}),
    "broken": (200, 16, {"nan": True}),
    "hostile": (40, 6, {"hostile": True}),
}


@pytest.fixture(scope="session", params=sorted(CASES))
def any_capture(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One of the captures above."""
    steps, units, options = CASES[request.param]
    return make_capture(tmp_path_factory.mktemp("captures") / "a.inspect", steps, units, **options)


@pytest.fixture(scope="session")
def a_capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The normal one."""
    return make_capture(tmp_path_factory.mktemp("captures") / "a.inspect", 300, 32)
