"""Channels of a run as a whole, by the panels that draw them: paths, depth, latents, truncation, training."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from channels_of_steps import HOSTILE, Put

from inspector.capture import Writer
from inspector.records import Channel, Labels, Scalar

Write = Callable[..., None]


def put_paths(put: Put, random: np.random.Generator, steps: int, units: int, nan: bool) -> None:
    """Direct and whole paths of the gradient, and masks of active units."""
    lags = min(steps, 60)
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


def put_openers(put: Put, writer: Writer, random: np.random.Generator, steps: int, units: int, hostile: bool) -> None:
    """What opens the gates, and how long they remember."""
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
    put(Channel(name="rnn.l0:gate/memory/runs", kind="memory", dims=("statistic", "unit"), shape=(4, units), dtype="float64",
                title="runs of memory (f > 0.9 and i < 0.1)",
                labels={"statistic": ("longest", "longest_start", "runs", "share")}),
        np.tile([[34.0], [5.0], [1.0], [0.4]], (1, units)))  # fmt: skip
    scales = np.exp(random.normal(size=units) * 3)
    scales[0] = np.inf
    put(Channel(name="rnn.l0:gate/forget/timescale", kind="unit", dims=("unit",), shape=(units,), dtype="float64",
                title="memory timescale", unit="step", scale="log"), scales)  # fmt: skip
    writer.write(Scalar("rnn.l0:gate/forget/keeps", 0, 1.0))


def put_depth(put: Put, state: np.ndarray, steps: int, nan: bool) -> None:
    """Gradients and states by layer."""
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


def latent_writer(put: Put, nan: bool) -> Write:
    """Writes an array under the name of a channel; `nan`: it begins with two numbers that are none."""

    def write(name: str, kind: str, dims: tuple[str, ...], values: np.ndarray, **more: object) -> None:
        if nan and values.dtype.kind == "f":
            values.reshape(-1)[:2] = np.nan, np.inf
        told = {"title": name.rpartition("/")[2], **more}
        put(Channel(name=name, kind=kind, dims=dims, shape=values.shape, dtype=str(values.dtype), **told), values)

    return write


def put_latent(put: Put, writer: Writer, steps: int, units: int, nan: bool) -> None:
    """A hidden variable with its prior, sample and terms, one a sequence, innovations, and a hidden Markov model."""
    random, both = np.random.default_rng(3), {"statistic": ("mean", "deviation")}
    write = latent_writer(put, nan)
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
    put_latent_use(writer, write, random, steps, units)


def put_latent_use(writer: Writer, write: Write, random: np.random.Generator, steps: int, units: int) -> None:
    """Whether a hidden variable is used."""
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
    put_training(put, random, nan)
    put_structure(put, random, nan)
    put_decoding(put, writer, hostile, nan)
    for signal, value in (("gradient_norm", float("nan") if nan else 2.0), ("used", 0.5), ("loss_terms", 9.0)):
        writer.write(Scalar(f"parameters:clipping/{signal}", 0, value))


def put_training(put: Put, random: np.random.Generator, nan: bool) -> None:
    """Numbers noted at 9,000 iterations, and one that was measured."""
    names = ("step", "loss", "<b>W</b>: largest", "<b>W</b>: smallest", "constant")
    table = np.stack((np.arange(9_000.0), *np.exp(random.normal(size=(3, 9_000))), np.ones(9_000)))
    table[1:, 5] = np.nan
    table[1, 6:8] = (np.inf, -1.0) if nan else (1.0, 1.0)
    put(Channel(name="parameters:training", kind="training", dims=("statistic", "iteration"), shape=table.shape,
                dtype="float64", title="training", labels={"statistic": names}), table)  # fmt: skip
    put(Channel(name="parameters:training/measured", kind="training", dims=("statistic", "iteration"), shape=(2, 1),
                dtype="float64", title="training", labels={"statistic": ("step", "accuracy")}),
        np.array([[0.0], [np.nan if nan else 0.5]]))  # fmt: skip


def put_structure(put: Put, random: np.random.Generator, nan: bool) -> None:
    """What depends on what before training, and a cure that was tried."""
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
