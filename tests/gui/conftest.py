"""Real captures for the panels, and a check that no window is left behind."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtWidgets import QApplication

from inspector.capture import Writer, open_capture
from inspector.capture.older import SEPARATE
from inspector.gui.export.offscreen import Stage
from inspector.gui.runtime.gc_timer import collect
from inspector.records import ANSWER_DOMAIN, STEP_DOMAIN, Channel, Frame, Labels, Page, Place, RunStart, RunStop, Scalar

Put = Callable[[Channel, np.ndarray], None]
MANY = 100
_imported = 0
HOSTILE = ("<s>", "<img src=file:///etc/passwd>", "a&b", "\n", " ", "\u202eevil", "日本")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Iterator[None]:
    """As in the window (gui/runtime/gc_timer.py): Qt objects never die in the thread of a writer or of a pipe.

    Around the whole protocol, since fixtures of any scope write captures too. What modules hold is not searched again
    after every test: it is set aside whenever many have been imported.
    """
    global _imported
    gc.disable()
    if len(sys.modules) > _imported + MANY:
        gc.collect()
        gc.freeze()
        _imported = len(sys.modules)
    try:
        return (yield)
    finally:
        collect()
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


def make_capture(
    path: Path, steps: int, units: int, *, nan: bool = False, hostile: bool = False, domain: str = STEP_DOMAIN
) -> Path:
    """A capture with every kind of channel, its numbers from a seeded walk, over the input's or the answer's steps."""
    random = np.random.default_rng(0)
    places = (Place(name="", module="Model"), Place(name="rnn", module="LSTM", parameters=3))
    with Writer(path, RunStart(run="r", title="<b>a run</b>", places=places)) as writer:
        writer.write(Frame(index=0))
        names = [HOSTILE[i % len(HOSTILE)] if hostile else chr(97 + i % 26) for i in range(steps)]
        for start in range(0, steps, 4096):
            writer.write(Labels(domain, tuple(names[start : start + 4096]), 0, start))
        writer.write(Labels("vocabulary", ("<s>", "a", "b", "c"), -1))

        def put(channel: Channel, values: np.ndarray) -> None:
            apart = channel.kind in SEPARATE
            channel = replace(
                channel, compare="separate" if apart else "ratio" if channel.scale == "log" else "difference"
            )
            writer.write(channel if domain == STEP_DOMAIN else channel.over(domain))
            size = max(1, -(-len(values) // 3))
            for start in range(0, len(values), size):
                writer.write(Page(channel.name, 0, (start, *[0] * (values.ndim - 1)), values[start : start + size]))

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
        put_paths_and_openers(writer, put, random, steps, units, nan=nan, hostile=hostile)
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
        layers = {"layer": ("rnn.l0", "rnn.l1", "rnn.l2")}
        put(Channel(name="layers:gradient/depth", kind="depth", dims=("statistic", "layer"), shape=(3, 3), dtype="float64",
                    title="gradient by layer", scale="log", labels={**layers, "statistic": ("mean", "p10", "p90")}),
            np.array([[1.0, 2, 4], [0.5, 1, np.nan if nan else 2], [2, 4, 8]]))  # fmt: skip
        put(Channel(name="layers:gradient/depth_ratio", kind="depth", dims=("layer",), shape=(2,), dtype="float64",
                    title="ratio", scale="log", labels={"layer": ("rnn.l0 / rnn.l1", "rnn.l1 / rnn.l2")}),
            np.array([0.25, np.inf if nan else 0.25]))  # fmt: skip
        put(Channel(name="layers:h/depth_rms", kind="depth", dims=("layer",), shape=(3,), dtype="float64", title="size",
                    labels=layers), np.array([0.1, 0.2, np.nan if nan else 0.4]))  # fmt: skip
        put(Channel(name="layers:parameter/gradient", kind="depth", dims=("statistic", "module"), shape=(2, 3),
                    dtype="float64", title="by module", scale="log",
                    labels={"statistic": ("root mean square", "norm"), "module": ("rnn.l0", "rnn.l1", "head")}),
            np.array([[0.1, 0.2, np.nan if nan else 0.4], [1.0, 2, 4]]))  # fmt: skip
        put(Channel(name="layers:gradient/depth_map", kind="depth", dims=("step", "layer"), shape=(steps, 3), scale="log",
                    title="map", labels=layers), np.abs(state[:, [0, 1, 1]]))  # fmt: skip
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
        put_residual(put, random, steps, nan)
        put_latent(put, writer, steps, units, nan)
        put_words(put, steps, nan)
        put_bptt(put, writer, min(steps, 300))
        put_clipping(put, writer, units, hostile, nan)
        put(Channel(name="rnn.l0:health/h", kind="health", dims=("count",), shape=(7,), dtype="int64", title="health",
                    labels={"count": ("-inf", "<0", "0", ">0", "+inf", "nan", "first_bad_step")}),
            np.array([0, 5, 1, 7, int(nan), int(nan) * units, 0 if nan else -1]))  # fmt: skip
        writer.write(RunStop("done"))
    return path


def put_paths_and_openers(
    writer: Writer, put: Callable[[Channel, np.ndarray], None], random: np.random.Generator, steps: int, units: int,
    *, nan: bool, hostile: bool,
) -> None:  # fmt: skip
    """What the panels of paths and of gate openers show."""
    lags, unit = min(steps, 60), ("statistic", "unit")
    for name in ("direct", "whole"):
        put(Channel(name=f"rnn.l0:path/{name}_norm", kind="path", dims=("step",), shape=(steps,), scale="log",
                    title=f"{name} path"), np.exp(random.normal(size=steps)).astype(np.float32))  # fmt: skip
        curve = np.exp(-0.2 * np.arange(lags))
        curve[lags // 2 :] = np.nan if nan else curve[lags // 2 :]
        put(Channel(name=f"rnn.l0:path/lag_{name}", kind="path", dims=("statistic", "lag"), shape=(3, lags),
                    dtype="float64", title=name, scale="log", labels={"statistic": ("mean", "p10", "p90")}),
            np.stack([curve, curve / 2, curve * 2]))  # fmt: skip
    put(Channel(name="rnn.l0:path/direct_share", kind="path", dims=("step",), shape=(steps,), limits=(0, 1),
                title="share of the direct path"), random.random(steps).astype(np.float32))  # fmt: skip
    put(Channel(name="rnn.l0:path/retention", kind="path", dims=("lag", "unit"), shape=(lags, units), dtype="float64",
                title="retention of a unit"), random.random((lags, units)))  # fmt: skip
    put(Channel(name="rnn.l0:mask", kind="mask", dims=("step", "unit"), shape=(steps, units), dtype="float16",
                title="active units", limits=(0, 1)), (random.random((steps, units)) < 0.5).astype(np.float16))  # fmt: skip
    put(Channel(name="rnn.l0:mask/open_paths", kind="mask", dims=("lag",), shape=(lags,), dtype="float64", scale="log",
                title="share of open paths"), 0.5 ** np.arange(lags))  # fmt: skip
    names = tuple(HOSTILE) if hostile else tuple("abcdefg")
    counts, table = np.arange(1, 8) ** 3, random.random((7, units))
    put(Channel(name="rnn.l0:gate/tokens", kind="opener", dims=("token",), shape=(7,), dtype="int64", title="occurrences",
                labels={"token": names}), counts)  # fmt: skip
    put(Channel(name="rnn.l0:gate/forget/by_token", kind="opener", dims=("token", "unit"), shape=(7, units),
                dtype="float64", title="forget gate by token", labels={"token": names}), table)  # fmt: skip
    put(Channel(name="rnn.l0:gate/forget/by_feature", kind="opener", dims=("feature", "unit"), shape=(200, units),
                dtype="float64", title="forget gate by input feature", limits=(-1, 1)),
        np.where(random.random((200, units)) < 0.1, np.nan, random.normal(size=(200, units)).clip(-1, 1)))  # fmt: skip
    put(Channel(name="rnn.l0:gate/memory", kind="memory", dims=("step", "unit"), shape=(steps, units), dtype="uint8",
                title="long-term memory (f > 0.9 and i < 0.1)"), np.ones((steps, units), np.uint8))  # fmt: skip
    put(Channel(name="rnn.l0:gate/memory/runs", kind="memory", dims=unit, shape=(4, units), dtype="float64",
                title="runs of memory (f > 0.9 and i < 0.1)",
                labels={"statistic": ("longest", "longest_start", "runs", "share")}),
        np.tile([[34.0], [5.0], [1.0], [0.4]], (1, units)))  # fmt: skip
    scales = np.exp(random.normal(size=units) * 3)
    scales[0] = np.inf
    put(Channel(name="rnn.l0:gate/forget/timescale", kind="unit", dims=("unit",), shape=(units,), dtype="float64",
                title="memory timescale", unit="step", scale="log"), scales)  # fmt: skip
    writer.write(Scalar("rnn.l0:gate/forget/keeps", 0, 1.0))


def put_residual(put: Put, random: np.random.Generator, steps: int, nan: bool) -> None:
    """The stream of two layers: norms, the lens, massive activations; and the cost of an attention."""
    layers = {"layer": ("into blocks.0", "blocks.0", "blocks.1")}
    norms = np.abs(random.normal(size=(3, steps))) + 0.1
    norms[1, : steps // 10] = np.nan if nan else 1.0
    put(Channel(name="blocks:residual/norm", kind="residual", dims=("layer", "step"), shape=norms.shape, dtype="float64",
                title="norm of the stream", scale="log", labels=layers), norms)  # fmt: skip
    put(Channel(name="blocks:residual/lens_token", kind="residual", dims=("layer", "step"), shape=norms.shape,
                dtype="int32", title="most probable class", labels=layers, value_domain="vocabulary"),
        random.integers(0, 4, norms.shape).astype(np.int32))  # fmt: skip
    put(Channel(name="blocks:residual/lens_probability", kind="residual", dims=("layer", "step"), shape=norms.shape,
                dtype="float64", title="probability of the prediction", labels=layers, limits=(0, 1)),
        random.random(norms.shape))  # fmt: skip
    put(Channel(name="blocks:residual/massive", kind="residual", dims=("statistic", "layer"), shape=(2, 3), dtype="float64",
                title="massive activations", labels={**layers, "statistic": ("largest", "position")}),
        np.array([[3.0, np.nan if nan else 9.0, 5.0], [0.0, 1.0, 2.0]]))  # fmt: skip
    put(Channel(name="attn:attention/flops", kind="attention_cost", dims=("part", "length"), shape=(2, 2),
                dtype="float64", title="multiplications", labels={"part": ("Q", "scores"), "length": ("this run", "256")}),
        np.array([[1.0, 2.0], [3.0, 4e9]]))  # fmt: skip


def put_latent(put: Put, writer: Writer, steps: int, units: int, nan: bool) -> None:
    """A hidden variable with its prior, sample and terms, one a sequence, innovations, and a hidden Markov model."""
    random, both = np.random.default_rng(3), {"statistic": ("mean", "deviation")}

    def write(name: str, kind: str, dims: tuple[str, ...], values: np.ndarray, **more: object) -> None:
        if nan and values.dtype.kind == "f":
            values.reshape(-1)[:2] = np.nan, np.inf
        told = {"title": name.rpartition("/")[2], **more}
        put(Channel(name=name, kind=kind, dims=dims, shape=values.shape, dtype=str(values.dtype), **told), values)

    for name in ("z", "prior"):
        write(
            f"rnn.l0:latent/z/{name}",
            "latent",
            ("step", "unit", "statistic"),
            random.random((steps, units, 2)),
            labels=both,
        )
    write("rnn.l0:latent/z/sample", "latent", ("step", "unit"), random.normal(size=(steps, units)))
    write("rnn.l0:latent/z/kl", "latent", ("step", "unit"), random.random((steps, units)), unit="nat")
    write("rnn.l0:latent/z/kl_total", "latent", ("step",), random.random(steps), unit="nat")
    write("rnn.l0:latent/once/once", "latent", ("unit", "statistic"), random.random((units, 2)), labels=both)
    write("rnn.l0:innovation/standardised", "innovation", ("step", "unit"), random.normal(size=(steps, 2)))
    write("rnn.l0:innovation/nis", "innovation", ("step",), random.random(steps))
    write("rnn.l0:innovation/gain", "innovation", ("step", "component"), random.random((steps, 2)))
    write("rnn.l0:innovation/autocorrelation", "innovation", ("lag", "unit"), random.random((1 + steps // 4, 2)))
    for end, value in (("low", 0.05), ("high", 7.4)):
        writer.write(Scalar(f"rnn.l0:innovation/nis/{end}", 0, value))
    write("rnn.l0:states/smoothed", "occupancy", ("step", "state"), random.dirichlet(np.ones(3), steps), limits=(0, 1))
    write("rnn.l0:states/viterbi", "occupancy", ("step",), random.integers(0, 3, steps), compare="separate")
    write("rnn.l0:states/transition", "occupancy", ("state", "next"), random.dirichlet(np.ones(3), 3), limits=(0, 1))
    write("rnn.l0:states/dwell", "occupancy", ("state", "statistic"), random.random((3, 2)),
          labels={"statistic": ("occupancy", "mean dwell")})  # fmt: skip
    write(
        "rnn.l0:states/tokens", "occupancy", ("state", "rank"), random.integers(0, 4, (3, 2)), value_domain="vocabulary"
    )
    write("rnn.l0:states/token_shares", "occupancy", ("state", "rank"), random.random((3, 2)))
    use, wide = "rnn.l0:latent/z/use", ("its own z", "z of other sequences", "z from the prior")
    write(f"{use}/units", "latent_use", ("unit", "statistic"), random.random((units, 2)),
          labels={"statistic": ("KL", "variance of the mean")})  # fmt: skip
    write(
        f"{use}/loss",
        "latent_use",
        ("step", "statistic"),
        random.random((steps, 3)),
        unit="nat",
        labels={"statistic": wide},
    )
    write(f"{use}/gradient", "latent_use", ("step", "statistic"), random.random((steps, 2)),
          labels={"statistic": ("through z", "own path")})  # fmt: skip
    write(f"{use}/share", "latent_use", ("step",), random.random(steps))
    write(f"{use}/texts", "latent_use", ("number", "position"), random.integers(-1, 4, (3, 5)),
          value_domain="vocabulary", labels={"number": ("read: x", "μ(x)", "prior, 1")})  # fmt: skip
    for end, value in (("kl", 3.0), ("mutual_information", 1.5), ("most_information", 4.0), ("active_units", 2.0)):
        writer.write(Scalar(f"{use}/{end}", 0, value))


def put_words(put: Put, steps: int, nan: bool) -> None:
    """What patches of a picture that was not kept change of each word."""
    values = np.random.default_rng(5).normal(size=(steps, 2, 3))
    if nan:
        values[0, 0] = np.nan
    put(Channel(name="input:words/blanked", kind="picture_words", dims=("step", "patch_row", "patch_column"),
                shape=values.shape, dtype="float64", unit="nat", scale="diverging", title="blanked"), values)  # fmt: skip


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
                    title=f"{name} by lag", dtype="float64", method="an estimate",
                    labels={"statistic": ("norm of the sum", "sum of the norms", "standard error")}), sums)  # fmt: skip
        for signal, value in (("check_error", 1e-7), ("total_norm", 2.0), ("immediate_norm", 1.0)):
            writer.write(Scalar(f"rnn.l0:bptt/{name}/{signal}", 0, value))
    ks = np.arange(1.0, size + 1)
    table = np.stack((ks, by_lag, 1 - by_lag / 2, ks / size))
    put(Channel(name="rnn.l0:truncation/all", kind="truncation", dims=("statistic", "truncation"), shape=(4, size),
                dtype="float64", title="all parameters", scale="log",
                labels={"statistic": ("K", "relative error", "cosine", "share of the cost")}), table)  # fmt: skip
    writer.write(Scalar("rnn.l0:truncation/all/smallest_k_10_percent", 0, 13.0 if size > 13 else float("nan")))
    put(Channel(name="rnn.l0:truncation/adaptive", kind="truncation", dims=("statistic", "step"), shape=(2, size),
                dtype="float64", title="smallest K by step", labels={"statistic": ("10%", "1%")}), np.stack((ks, 2 * ks)))  # fmt: skip


def put_decoding(put: Put, writer: Writer, hostile: bool, nan: bool) -> None:
    """A search of 30 tokens (hostile: 600), each after one of those before it, and what drifts."""
    random, count = np.random.default_rng(2), 600 if hostile else 30
    names = [HOSTILE[i % len(HOSTILE)] if hostile else chr(97 + i % 26) for i in range(count)]
    writer.write(Labels("node", tuple(names), 0))
    parents = np.array([random.integers(max(-1, i - 9), i) for i in range(count)], np.int32)
    fate = np.isin(np.arange(count), parents, invert=True) * random.integers(1, 4, count)
    total = -np.cumsum(random.random(count))
    fields = {"token": np.arange(count, dtype=np.int32), "parent": parents, "log_probability": -random.random(count),
              "total": total, "score": total, "fate": fate.astype(np.uint8), "times": np.ones(count, np.int32)}  # fmt: skip
    for name, values in fields.items():
        put(Channel(name=f"decoding:{name}", kind="decoding", dims=("node",), shape=(count,), dtype=str(values.dtype),
                    title=name), values)  # fmt: skip
    drift = np.full(9, np.nan) if nan else random.random(9)
    put(Channel(name="rnn.l0:drift/state", kind="decoding", dims=("step",), shape=(9,), dtype="float64",
                title="drift of the state"), drift)  # fmt: skip


def put_clipping(put: Put, writer: Writer, count: int, hostile: bool, nan: bool) -> None:
    """Gradients of parameters, thresholds, and 50,000 noted steps of training."""
    random = np.random.default_rng(1)
    names = [HOSTILE[i % len(HOSTILE)] if hostile else f"layer.{i}.weight" for i in range(count)]
    writer.write(Labels("trained parameter", tuple(names), 0))
    norms = np.tile(np.array([[1.0], [0.1], [0.5], [0.0], [0.0], [100.0]]), (1, count)) * random.random(count)
    if nan:
        norms[:, 0] = np.nan
    put(Channel(name="parameters:clipping/norms", kind="clipping", dims=("statistic", "parameter"), shape=(6, count),
                dtype="float64", title="gradient by parameter", domains={"parameter": "trained parameter"},
                labels={"statistic": ("norm", "root mean square", "largest", "zeros", "underflow", "entries")}), norms)  # fmt: skip
    share = np.linspace(1, 0, 241)
    put(Channel(name="parameters:clipping/by_value", kind="clipping", dims=("statistic", "bin"), shape=(4, 241),
                dtype="float64", title="by value",
                labels={"statistic": ("threshold", "share cut", "norm after", "cosine")}), np.stack((10 ** (-8 * share), share, 1 - share, 1 - share / 2)))  # fmt: skip
    noted = np.stack((np.arange(50_000.0), np.exp(random.normal(size=50_000))))
    noted[1, 7] = np.nan
    put(Channel(name="parameters:clipping/history", kind="clipping", dims=("statistic", "iteration"),
                shape=(2, 50_000), dtype="float64", title="history", labels={"statistic": ("step", "gradient norm")}), noted)  # fmt: skip
    names = ("step", "loss", "<b>W</b>: largest", "<b>W</b>: smallest", "constant")
    table = np.stack((np.arange(9_000.0), *np.exp(random.normal(size=(3, 9_000))), np.ones(9_000)))
    table[1:, 5] = np.nan
    table[1, 6:8] = (np.inf, -1.0) if nan else (1.0, 1.0)
    put(Channel(name="parameters:training", kind="training", dims=("statistic", "iteration"), shape=table.shape,
                dtype="float64", title="training", labels={"statistic": names}), table)  # fmt: skip
    put(Channel(name="parameters:training/measured", kind="training", dims=("statistic", "iteration"), shape=(2, 1),
                dtype="float64", title="training", labels={"statistic": ("step", "accuracy")}),
        np.array([[0.0], [np.nan if nan else 0.5]]))  # fmt: skip
    few = 40
    moved = np.triu(random.random((few, few)))
    put(Channel(name="model:structure/causal", kind="structure", dims=("source", "step"), shape=(few, few), scale="log",
                dtype="float64", title="change"), moved * (np.nan if nan else 1.0))  # fmt: skip
    put(Channel(name="model:structure/causal/modules", kind="structure", dims=("module",), shape=(2,), scale="log",
                dtype="float64", title="change, by module", domains={"module": "structure modules of causal"}),
        np.array([0.0, np.nan if nan else 0.1]))  # fmt: skip
    for name, size in (("", (2, 3, 30)), ("/after", (2, 3))):
        trained = random.random(size) + 1.0
        put(Channel(name=f"model:trial/cure/clip_gradient{name}", kind="cure", dims=("version", "seed", "iteration")[: len(size)],
                    shape=size, dtype="float64", title="Clip the gradient: loss"), trained * (np.nan if nan else 1.0))  # fmt: skip
    put_decoding(put, writer, hostile, nan)
    for signal, value in (("gradient_norm", float("nan") if nan else 2.0), ("used", 0.5), ("loss_terms", 9.0)):
        writer.write(Scalar(f"parameters:clipping/{signal}", 0, value))


CASES = {
    "normal": (300, 32, {}),
    "one step": (1, 4, {}),
    "two units": (50, 2, {}),
    "long": (20_000, 8, {}),
    "wide": (120, 700, {}),
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


@pytest.fixture(scope="session")
def answered_capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same over the steps of an answer."""
    return make_capture(tmp_path_factory.mktemp("captures") / "a.inspect", 40, 8, domain=ANSWER_DOMAIN)


@pytest.fixture
def stage_of() -> Iterator[Callable[[Path], Stage]]:
    """Makes a stage for the capture at a path; closed with its capture at the end."""
    stages = []

    def make(path: Path) -> Stage:
        stages.append(Stage(open_capture(path), (900, 600)))
        return stages[-1]

    yield make
    for stage in stages:
        stage.close()
        stage.capture.close()
