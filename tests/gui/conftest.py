"""Real captures for the panels, and a check that no window is left behind."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtWidgets import QApplication

from inspector.capture import Writer
from inspector.records import Channel, Frame, Labels, Page, Place, RunStart, RunStop, Scalar

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
        spread = (np.where(np.isinf(state[:, :1]), np.nan, state[:, :1]) ** 2 + 0.01) * np.array(
            [3, 1, 0.1, 1e-5, 0], dtype=np.float32
        )
        put(Channel(name="rnn.l0:jacobian/singular_values", kind="spectrum", dims=("step", "rank"), shape=(steps, 5),
                    title="singular values of J_t", scale="log", labels={"rank": tuple("13579")}), spread)  # fmt: skip
        put(Channel(name="rnn.l0:jacobian/isometry", kind="spectrum", dims=("step",), shape=(steps,), scale="log",
                    title="mean squared singular value"), (spread**2).mean(1))  # fmt: skip
        circle = np.stack((np.cos(np.arange(steps * 4.0)), np.sin(np.arange(steps * 4.0))), -1).reshape(steps, 4, 2)
        put(Channel(name="rnn.l0:jacobian/eigenvalues", kind="spectrum", dims=("step", "eigenvalue", "part"),
                    shape=(steps, 4, 2), dtype="float64", title="eigenvalues of J_t"), circle)  # fmt: skip
        weight = "rnn.l0:weight/hidden"
        for name, value in (("spectral_radius", 1.04), ("spectral_norm", 1.84), ("bound", 1.84)):
            writer.write(Scalar(f"{weight}/{name}", 0, value))
        put(Channel(name=f"{weight}/eigenvalues", kind="spectrum", dims=("eigenvalue", "part"), shape=(units, 2),
                    dtype="float64", title="W_hh: eigenvalues"), random.normal(size=(units, 2)))  # fmt: skip
        put(Channel(name=f"{weight}/singular_values", kind="spectrum", dims=("rank",), shape=(units,), dtype="float64",
                    title="W_hh: singular values", scale="log"), np.sort(random.random(units))[::-1].copy())  # fmt: skip
        running = np.cumsum(random.normal(size=(steps, 5)), 0) / np.arange(1, steps + 1)[:, None] - np.arange(5)
        running[: steps // 10], running[:, 4] = np.nan, -np.inf
        put(Channel(name="rnn.l0:lyapunov/running", kind="lyapunov", dims=("step", "exponent"), shape=(steps, 5),
                    dtype="float64", unit="nat/step", title="running"), running)  # fmt: skip
        writer.write(Scalar("rnn.l0:lyapunov/kaplan_yorke", 0, 2.5))
        put(Channel(name="rnn.l0:lyapunov/exponents", kind="lyapunov", dims=("exponent",), shape=(5,), dtype="float64",
                    unit="nat/step", title="Lyapunov exponents"), np.array([0.2, 0.0, -1.0, -2.0, -np.inf]))  # fmt: skip
        way = np.cumsum(np.where(np.isinf(state[:, :3]), 0, state[:, :3]).astype(float), 0)
        put(Channel(name="rnn.l0:trajectory/share", kind="trajectory", dims=("component",), shape=(way.shape[1],),
                    dtype="float64", title="share"), np.array([0.6, 0.3, 0.1])[: way.shape[1]])  # fmt: skip
        put(Channel(name="rnn.l0:trajectory/speed", kind="trajectory", dims=("step",), shape=(steps,), title="speed"),
            state[:, 0] ** 2)  # fmt: skip
        put(Channel(name="rnn.l0:trajectory", kind="trajectory", dims=("step", "component"), shape=way.shape,
                    dtype="float64", title="state in principal components", scale="diverging"), way)  # fmt: skip
        put(Channel(name="rnn.l0:fixed_points/statistics", kind="fixed_point", dims=("statistic", "point"), shape=(2, 3),
                    dtype="float64", title="fixed points", labels={"statistic": ("speed", "stable")}),
            np.array([[0, 0, 0.1], [1, 0, 0]]))  # fmt: skip
        put(Channel(name="rnn.l0:fixed_points", kind="fixed_point", dims=("point", "component"), shape=(3, way.shape[1]),
                    dtype="float64", title="fixed points"), np.array([[0.5], [1.0], [1e6]]) * np.ones(way.shape[1]))  # fmt: skip
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
        put(Channel(name="rnn.l0:health/h", kind="health", dims=("count",), shape=(7,), dtype="int64", title="health",
                    labels={"count": ("-inf", "<0", "0", ">0", "+inf", "nan", "first_bad_step")}),
            np.array([0, 5, 1, 7, int(nan), int(nan) * units, 0 if nan else -1]))  # fmt: skip
        writer.write(RunStop("done"))
    return path


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
