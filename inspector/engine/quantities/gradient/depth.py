"""Depth: how gradients and states change from layer to layer, where recurrent layers are in series."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from inspector.engine.analyses.own_gradients import acts_before
from inspector.engine.analyses.unit_statistics import rests_on
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter, to_numpy
from inspector.engine.trace.quantity import Describe, dtype_name, per_run, refusal
from inspector.engine.trace.trace import Recurrence, Trace
from inspector.records import LAYER_DOMAIN, LOSS_UNIT, STEP_DOMAIN, Axis, Log

Array = npt.NDArray[np.float64]
BETWEEN = "layer and the next"
"""Axis of values between neighbouring layers: one position fewer than there are layers."""
SOURCE = "Schoenholz, Gilmer, Ganguli & Sohl-Dickstein 2017 (depth in place of time)"
ALL = "over all real steps and samples; L = Σ_t ℓ_t of each sample; both directions of a layer count as one state"
LEFT_OUT = "Depth is over {1}, of which each reads what the one before made; not over {0}, which run beside them."
OF_A_STACK = re.compile(r"(.*)\.l\d+")
"""The names of the layers of one module."""
BESIDE = "{} run beside each other: none of them reads what another one made, so there is no depth over them."
GRADIENT = Describe(
    kind="depth", compare="ratio", unit=LOSS_UNIT, title="gradient by layer", scale="log", source=SOURCE,
    formula=f"mean, 10 % and 90 % quantile of ‖∂L/∂h_t‖₂ {ALL}", labels={"statistic": ("mean", "p10", "p90")},
)  # fmt: skip
RATIO = Describe(
    kind="depth", compare="ratio", title="gradient ratio", scale="log", source=SOURCE,
    formula=f"E‖∂L/∂h_l‖² / E‖∂L/∂h_(l+1)‖² of neighbouring layers, {ALL}; below 1 it shrinks downwards",
)  # fmt: skip
RMS = Describe(kind="depth", title="state RMS", formula="root mean square of h over all real steps and samples")
MAP = Describe(
    kind="depth", compare="ratio", unit=LOSS_UNIT, title="‖∂L/∂hₜ‖ by layer and step", scale="log", source=SOURCE,
    formula="‖∂L/∂h_t‖₂ of every layer at every step of the selected sample",
)  # fmt: skip


@dataclass(slots=True)
class Layer:
    """One layer: its forward direction, and the backward one where there is one."""

    name: str
    directions: list[Recurrence] = field(default_factory=list)

    def steps(self, sample: int) -> int:
        """Real steps of one sample; a backward direction runs over the padding too, where a batch is not packed."""
        return min(item.length(sample) for item in self.directions)

    def gradient(self, sample: int) -> Array | None:
        """‖∂L/∂h_t‖ of one sample's real steps in sequence order, (t,); None without gradients."""
        squares = []
        for item in self.directions:
            if item.delta is None:
                return None
            values = item.delta[: item.length(sample), sample - item.base, item.cell.parts[item.cell.main]]
            rows = item.in_order(values, sample)[: self.steps(sample)]
            squares.append(to_numpy(rows).astype(np.float64))
        found: Array = np.linalg.norm(np.concatenate(squares, axis=1), axis=1)
        return found

    def mean_square(self) -> float:
        """Mean of h² over all real steps, samples, units and directions."""
        total, count = 0.0, 0
        for item in self.directions:
            for sample in samples(item):
                part = _state(item, sample).double()
                if item.length(sample) > self.steps(sample):
                    part = item.in_order(part, sample)[: self.steps(sample)]
                total, count = total + float(part.square().sum()), count + part.numel()
        return total / max(1, count)


@QUANTITIES.register("depth")
@per_run(summary="gradients and states from layer to layer of a stack", order=27)
def depth(trace: Trace, emit: Emitter) -> None:
    """Write `layers:gradient/depth` (statistic, layer), `layers:gradient/depth_ratio`, `layers:h/depth_rms` (layer,).

    And `layers:gradient/depth_map` (step, layer). Fewer than two layers of one length: nothing to write. Layers beside
    each other (two encoders, two directions): refused; those beside the longest chain are left out.
    """
    layers, others = in_series(trace)
    if others:
        _say_which(layers, others, emit)
    if len(layers) < 2:
        return
    wrong = [item for layer in layers for item in layer.directions if item.check is not None and not item.check.passed]
    if wrong:
        emit.refuse("layers:gradient/depth", refusal(wrong[0]))
        return
    names = tuple(layer.name for layer in layers)
    labels, count = {"layer": names}, len(layers)
    domains = {"layer": describe_layers(names, emit)}
    rms = np.sqrt([layer.mean_square() for layer in layers])
    emit.array(RMS.channel("layers:h/depth_rms", ("layer",), (count,), "float64", labels=labels, domains=domains), rms)
    gradients = [_everywhere(layer) for layer in layers]
    if any(values is None for values in gradients):
        return
    known = [values for values in gradients if values is not None]
    method = f"exact; {rests_on(len(samples(layers[0].directions[0])), len(known[0]))}"
    statistics = np.array([[v.mean(), np.quantile(v, 0.1), np.quantile(v, 0.9)] for v in known]).T
    labelled = {**GRADIENT.labels, **labels}
    emit.array(
        replace(GRADIENT, method=method).channel(
            "layers:gradient/depth", ("statistic", "layer"), (3, count), "float64", labels=labelled, domains=domains
        ),
        statistics,
    )
    squares = np.array([np.mean(values**2) for values in known])
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = squares[:-1] / squares[1:]
    pairs = {"layer": tuple(f"{below} / {above}" for below, above in pairwise(names))}
    between = {"labels": pairs, "domains": {"layer": BETWEEN}}
    emit.array(RATIO.channel("layers:gradient/depth_ratio", ("layer",), (count - 1,), "float64", **between), ratio)
    _write_map(layers, trace.look_at, emit, labels=labels, domains=domains)


def _say_which(layers: list[Layer], others: list[Layer], emit: Emitter) -> None:
    """Name the recurrences that run beside the layers; refuse where there are no layers but those."""
    if len(layers) < 2:
        every = ", ".join(layer.name for layer in (*layers, *others))
        emit.refuse("layers:gradient/depth", BESIDE.format(every))
        return
    left_out, chain = (", ".join(layer.name for layer in some) for some in (others, layers))
    emit.sink.write(Log(LEFT_OUT.format(left_out, chain), "info", "engine"))


def describe_layers(names: tuple[str, ...], emit: Emitter) -> str:
    """The axis of stacked recurrent layers: "layer", unless a recurrence over the depth of the model has that name."""
    axis = LAYER_DOMAIN if LAYER_DOMAIN not in emit.axes else f"recurrent {LAYER_DOMAIN}"
    emit.axis(Axis(name=axis, title=LAYER_DOMAIN, length=len(names), layout="layers"))
    emit.labels(axis, names)
    return axis


def _write_map(layers: list[Layer], sample: int, emit: Emitter, **axes: Mapping[str, Any]) -> None:
    """‖∂L/∂h_t‖ of every layer and step of one sample, in the model's own precision."""
    dtype = dtype_name(layers[0].directions[0].states)
    rows = [layer.gradient(sample) for layer in layers]
    values = np.stack([row for row in rows if row is not None], axis=1).astype(dtype)
    channel = MAP.channel("layers:gradient/depth_map", ("step", "layer"), values.shape, dtype, **axes)
    domain = layers[0].directions[0].domain
    emit.array(channel if domain == STEP_DOMAIN else channel.over(domain), values)


def in_series(trace: Trace) -> tuple[list[Layer], list[Layer]]:
    """The longest chain of layers of which each reads, also through others, what the one below made, the lowest first;
    and the layers beside it. Only those with the most frequent number of steps."""
    every = _of_one_length(trace)
    best: list[list[Layer]] = []
    for n, upper in enumerate(every):
        below = [best[m] for m in range(n) if _is_above(upper, every[m])]
        best.append([*max(below, key=len, default=[]), upper])
    chain = max(best, key=len, default=[])
    return chain, [layer for layer in every if layer not in chain]


def _is_above(upper: Layer, lower: Layer) -> bool:
    """Whether a layer, which ran later, reads what another one made. Where no graph says it, unless both read the same.

    Layers of one module are on top of each other.
    """
    one, other = (OF_A_STACK.fullmatch(layer.name) for layer in (upper, lower))
    if one is not None and other is not None and one[1] == other[1]:
        return True
    known = [acts_before(below, above) for below in lower.directions for above in upper.directions]
    if any(known) or None not in known:
        return any(known)
    return not any(_read_alike(below, above) for below in lower.directions for above in upper.directions)


def _read_alike(one: Recurrence, other: Recurrence) -> bool:
    """Whether both were given the same numbers, in this order or the reverse."""
    mine, yours = one.x, other.x
    if mine.shape != yours.shape or not bool(mine.any()):
        return False
    return torch.equal(mine, yours) or torch.equal(mine, yours.flip(0))


def _of_one_length(trace: Trace) -> list[Layer]:
    """The layers in the order in which they ran."""
    found: dict[str, Layer] = {}
    for item in trace.recurrences:
        if trace.look_at in samples(item):
            name = item.place.removesuffix(".reverse")
            found.setdefault(name, Layer(name)).directions.append(item)
    lengths = [(layer.directions[0].domain, layer.directions[0].length(trace.look_at)) for layer in found.values()]
    commonest = max(dict.fromkeys(lengths), key=lengths.count, default=(STEP_DOMAIN, 0))
    return [layer for layer, length in zip(found.values(), lengths, strict=True) if length == commonest]


def samples(item: Recurrence) -> range:
    """The numbers of the samples that a recurrence has."""
    return range(item.base, item.base + len(item.lengths))


def _everywhere(layer: Layer) -> Array | None:
    """‖∂L/∂h_t‖ over all samples, side by side; None without gradients."""
    rows = [layer.gradient(sample) for sample in samples(layer.directions[0])]
    return np.concatenate([row for row in rows if row is not None]) if all(row is not None for row in rows) else None


def _state(item: Recurrence, sample: int) -> Tensor:
    """h of one sample's real steps, (t, h)."""
    return item.states[1 : item.length(sample) + 1, sample - item.base, item.cell.parts[item.cell.main]]
