"""Channels of single steps, by the panels that draw them: states, lags, spectra, ways, attention, outputs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from inspector.capture import Writer
from inspector.records import Channel, Scalar

Put = Callable[[Channel, np.ndarray], None]
HOSTILE = ("<s>", "<img src=file:///etc/passwd>", "a&b", "\n", " ", "\u202eevil", "日本")


def put_states(put: Put, random: np.random.Generator, steps: int, units: int, nan: bool) -> np.ndarray:
    """States, inputs, gates, and curves of Jacobians and gradients. Returns the states (steps, units)."""
    state = np.tanh(random.normal(size=(steps, units))).astype(np.float32)
    if nan:
        state[steps // 2] = np.nan
        state[0, 0] = np.inf
    put(Channel(name="rnn.l0:h", kind="state", dims=("step", "unit"), shape=(steps, units), title="hidden state",
                scale="diverging", formula="h"), state)  # fmt: skip
    put(Channel(name="input:value", kind="input", dims=("step", "feature"), shape=(steps, 2), title="input"),
        np.outer(np.sin(np.arange(steps)), (1, 0.5)).astype(np.float32))  # fmt: skip
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
    return state


def put_lags(put: Put, writer: Writer, random: np.random.Generator, steps: int, nan: bool) -> None:
    """What falls with the lag, a spike, and numbers of many sequences."""
    lags = min(steps, 60)
    decay = np.exp(-0.3 * np.arange(lags))
    put(Channel(name="rnn.l0:state_derivative/weight_hh/3", kind="state_derivative", dims=("step",), shape=(steps,),
                dtype="float64", scale="log"), np.geomspace(1e-3, 1, steps))  # fmt: skip
    statistics = {"statistic": ("norm", "share", "norm at the output")}
    for name, dim, count in (("samples", "sequence", 4), ("steps", "step", steps)):
        put(Channel(name=f"spike:{name}", kind="spike", dims=("statistic", dim), shape=(3, count), dtype="float64",
                    labels=statistics), np.abs(random.normal(size=(3, count))) / count)  # fmt: skip
    put(Channel(name="sequences:loss", kind="sequences", dims=("sequence",), shape=(9,), dtype="float64",
                title="mean loss"), np.arange(9.0))  # fmt: skip
    put(Channel(name="rnn.l0:jacobian/lag", kind="lag", dims=("statistic", "lag"), shape=(4, lags), dtype="float64",
                title="norm by lag", scale="log", labels={"statistic": ("median", "p10", "p90", "mean")}),
        np.stack([decay, decay / 2, decay * 2, decay * 1.1]))  # fmt: skip
    put(Channel(name="rnn.l0:jacobian/lag_map", kind="map", dims=("start", "lag"), shape=(5, lags), dtype="float64",
                title="norm by start and lag", scale="log", labels={"start": tuple("01234")}), np.tile(decay, (5, 1)))  # fmt: skip
    for name, lag in (("influence/reference_lag", 0), ("influence/reach", 29), ("gradient/reach", 17)):
        writer.write(Scalar(f"input:{name}", 0, float(min(lag, lags - 1))))
    writer.write(Scalar("rnn.l0:jacobian/lag_horizon", 0, 24.0 if lags > 24 else float("nan")))
    for signal, rate in (("influence/loss", 0.1), ("gradient/lag", 0.4)):
        fall = np.exp(-rate * np.arange(lags)) * (np.nan if nan and signal == "gradient/lag" else 1.0)
        put(Channel(name=f"input:{signal}", kind="influence", dims=("statistic", "lag"), shape=(3, lags), unit="nat",
                    dtype="float64", title=signal, scale="log", labels={"statistic": ("mean", "error", "positions")}),
            np.stack([fall, fall / 9, np.full(lags, 9.0)]))  # fmt: skip


def put_spectra(put: Put, writer: Writer, random: np.random.Generator, state: np.ndarray) -> None:
    """Singular values and eigenvalues of Jacobians and of weights."""
    steps, units = state.shape
    spread = (np.where(np.isinf(state[:, :1]), np.nan, state[:, :1]) ** 2 + 0.01) * np.array(
        [3, 1, 0.1, 1e-5, 0], dtype=np.float32
    )
    put(Channel(name="rnn.l0:jacobian/singular_values", kind="spectrum", dims=("step", "rank"), shape=(steps, 5),
                title="singular values of Jₜ", scale="log", labels={"rank": tuple("13579")}), spread)  # fmt: skip
    put(Channel(name="rnn.l0:jacobian/isometry", kind="spectrum", dims=("step",), shape=(steps,), scale="log",
                title="mean squared singular value"), (spread**2).mean(1))  # fmt: skip
    circle = np.stack((np.cos(np.arange(steps * 4.0)), np.sin(np.arange(steps * 4.0))), -1).reshape(steps, 4, 2)
    put(Channel(name="rnn.l0:jacobian/eigenvalues", kind="spectrum", dims=("step", "eigenvalue", "part"),
                shape=(steps, 4, 2), dtype="float64", title="eigenvalues of Jₜ", labels={"part": ("re", "im")}), circle)  # fmt: skip
    weight = "rnn.l0:weight/hidden"
    for name, value in (("spectral_radius", 1.04), ("spectral_norm", 1.84), ("bound", 1.84)):
        writer.write(Scalar(f"{weight}/{name}", 0, value))
    put(Channel(name=f"{weight}/eigenvalues", kind="spectrum", dims=("eigenvalue", "part"), shape=(units, 2),
                dtype="float64", title="Wₕₕ: eigenvalues", labels={"part": ("re", "im")}), random.normal(size=(units, 2)))  # fmt: skip
    put(Channel(name=f"{weight}/singular_values", kind="spectrum", dims=("rank",), shape=(units,), dtype="float64",
                title="Wₕₕ: singular values", scale="log"), np.sort(random.random(units))[::-1].copy())  # fmt: skip


def put_ways(put: Put, writer: Writer, random: np.random.Generator, state: np.ndarray) -> None:
    """Lyapunov exponents, the trajectory and its fixed points."""
    steps = len(state)
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
    put(Channel(name="rnn.l0:fixed_points/inputs", kind="fixed_point", dims=("input",), shape=(3,), dtype="int64",
                title="fixed points", labels={"input": ("mean input", "'<b>\n'", "zero input")}),
        np.array([3, 1, 0]))  # fmt: skip
    put(Channel(name="rnn.l0:fixed_points/statistics", kind="fixed_point", dims=("statistic", "point"), shape=(3, 4),
                dtype="float64", title="fixed points", labels={"statistic": ("speed", "stable", "input")}),
        np.array([[0, 0, 0.1, 0], [1, 0, 0, 1], [0, 0, 0, 1]]))  # fmt: skip
    put(Channel(name="rnn.l0:fixed_points", kind="fixed_point", dims=("point", "component"), shape=(4, way.shape[1]),
                dtype="float64", title="fixed points"), np.array([[0.5], [1.0], [1e6], [2]]) * np.ones(way.shape[1]))  # fmt: skip


def put_attention(put: Put, random: np.random.Generator, steps: int) -> None:
    """The map of two heads, and its entropy."""
    keys = min(steps, 200)
    weights = random.random((2, keys, keys)).astype(np.float16)
    put(Channel(name="attn:attention", kind="attention", dims=("head", "query", "key"), shape=(2, keys, keys),
                dtype="float16", title="attention", limits=(0, 1)), weights / weights.sum(-1, keepdims=True))  # fmt: skip
    put(Channel(name="attn:attention/entropy", kind="attention_statistic", dims=("head", "query"), shape=(2, keys),
                title="entropy", unit="nat"), random.random((2, keys)).astype(np.float32))  # fmt: skip


def put_output(put: Put, random: np.random.Generator, steps: int) -> None:
    """Surprise and the most probable tokens."""
    put(Channel(name="output:surprise", kind="output", dims=("step",), shape=(steps,), title="surprise", unit="nat"),
        random.random(steps).astype(np.float32))  # fmt: skip
    put(Channel(name="output:probability", kind="output", dims=("step", "rank"), shape=(steps, 3), title="top 3"),
        random.random((steps, 3)).astype(np.float32))  # fmt: skip
    put(Channel(name="output:token", kind="output", dims=("step", "rank"), shape=(steps, 3), dtype="int64",
                title="tokens", value_domain="vocabulary"), random.integers(0, 4, (steps, 3)))  # fmt: skip
