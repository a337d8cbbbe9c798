"""Depth: how gradients and states change from layer to layer, where recurrent layers are in series."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from inspector.engine.analyses.unit_statistics import rests_on
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter, to_numpy
from inspector.engine.trace.quantity import Describe, dtype_name, per_run, refusal
from inspector.engine.trace.trace import Recurrence, Trace
from inspector.records import LAYER_DOMAIN, LOSS_UNIT, STEP_DOMAIN, Axis

Array = npt.NDArray[np.float64]
BETWEEN = "layer and the next"
"""Axis of values between neighbouring layers: one position fewer than there are layers."""
SOURCE = "Schoenholz, Gilmer, Ganguli & Sohl-Dickstein 2017 (depth in place of time)"
ALL = "over all real steps and samples; L = Σ_t ℓ_t of each sample; both directions of a layer count as one state"
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

    And `layers:gradient/depth_map` (step, layer). Fewer than two layers of one length: nothing to write.
    """
    layers = in_series(trace)
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


def in_series(trace: Trace) -> list[Layer]:
    """The layers in the order in which they ran, the lowest first;
    only those with the most frequent number of steps."""
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
