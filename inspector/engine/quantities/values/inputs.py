"""The inputs themselves, as the model got them: ids, vectors, images, masks and states of the selected sample."""

from __future__ import annotations

import math

from torch import Tensor

from inspector.engine.model.batch import INPUT, SEQUENCES, NamedInput
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import dtype_name, per_run
from inspector.engine.trace.trace import Trace
from inspector.records import STEP_DOMAIN, VOCABULARY_DOMAIN, Channel, place_name

AXES: dict[str, dict[int, tuple[str, ...]]] = {
    "image": {3: ("channel", "row", "column")},
    "mask": {2: ("row", "column")},
    "state": {1: ("unit",), 2: ("layer", "unit")},
}
"""Names of the axes of one sequence's array, by kind and number; any other array is flattened to features."""
MOST_SAMPLES = 1 << 25
"""Samples of a recording that are kept (128 MiB): 35 minutes at 16 kHz."""


@QUANTITIES.register("input")
@per_run(summary="the tokens, vectors and other inputs of the model", order=0)
def inputs(trace: Trace, emit: Emitter) -> None:
    """`input:token` (step,) ids, or `input:value` (step, feature), of the real steps of the selected sample.

    That is the primary input; others are `input.NAME:…`, over a step axis of their own where they are sequences, and an
    image is `…:image` (channel, row, column), a mask `…:mask` (step,), a state `…:state` (layer, unit), an array
    `…:value`. Vectors that are a picture read part by part are `…:picture` (row, column) as well, and those that were
    made of a recording have its samples as `…:waveform` (sample,), with their rate in hertz as `…:waveform/rate`.
    """
    for name, one in trace.batch.named.items():
        if one.tensor is None:
            continue
        primary = name == trace.batch.primary
        domain = VOCABULARY_DOMAIN if primary else trace.subject.vocabulary_domain(name)
        place = INPUT if primary else place_name(f"{INPUT}.{name}")
        values = one.tensor[trace.look_at]
        if one.axis:
            values = values[: int(one.lengths[trace.look_at])]
        values = _laid_out(values, one)
        channel = _channel(place, INPUT if primary else name, one, values, domain)
        settled = one.axis in ("", STEP_DOMAIN) or place in emit.step_domains
        emit.array(channel if settled else channel.over(one.axis), values)
        if channel.dims == ("step", "feature"):
            _picture(trace, emit, name, place, values)
        if one.sound:
            _waveform(emit, place, *one.sound[trace.look_at])


def _picture(trace: Trace, emit: Emitter, name: str, place: str, values: Tensor) -> None:
    """The numbers of all steps (t, i) as the picture that they are declared to be: p[r, c] = x[(r·columns + c) ÷ i]."""
    declared = trace.subject.declared.get(name)
    size = trace.subject.picture if declared is None else declared.picture
    if size is None:
        return
    if math.prod(size) != values.numel():
        emit.refuse(
            f"{place}:picture",
            f"{values.shape[0]:,} steps of {values.shape[1]:,} numbers are no picture of {size[0]} × {size[1]}, which "
            "is what the subject declares.",
        )
        return
    channel = Channel(
        name=f"{place}:picture", kind="input", dims=("row", "column"), shape=size, dtype=dtype_name(values),
        title="picture", formula="the numbers of all steps, one step after the other, row by row",
    )  # fmt: skip
    emit.array(channel, values.reshape(size))


def _waveform(emit: Emitter, place: str, samples: Tensor, rate: int) -> None:
    """The recording of which the vectors were made, as it was read: the mean of its channels."""
    name = f"{place}:waveform"
    if len(samples) > MOST_SAMPLES:
        emit.refuse(name, f"The recording has {len(samples):,} samples; up to {MOST_SAMPLES:,} are kept.")
        return
    emit.scalar(f"{name}/rate", rate)
    emit.array(
        Channel(
            name=name, kind="input", dims=("sample",), shape=(len(samples),), dtype="float32", title="waveform",
            scale="diverging", formula="the samples of the recording, the mean of its channels",
        ),
        samples,
    )  # fmt: skip


def _laid_out(values: Tensor, one: NamedInput) -> Tensor:
    if one.kind in SEQUENCES and (values.dim() != 1 or values.is_floating_point()):
        return values.reshape(values.shape[0], -1)
    known = one.kind in SEQUENCES or values.dim() in AXES.get(one.kind, {}) or (one.kind == "mask" and one.axis)
    return values if known else values.reshape(-1)


def _channel(place: str, title: str, one: NamedInput, values: Tensor, domain: str) -> Channel:
    """The channel of one input, by its kind."""
    shape, dtype = tuple(values.shape), dtype_name(values)
    if one.kind in SEQUENCES and values.dim() == 1:
        return Channel(
            name=f"{place}:token", kind="input", dims=("step",), shape=shape, dtype=dtype,
            title="token" if title == INPUT else f"tokens of {title}", value_domain=domain, compare="separate",
        )  # fmt: skip
    if one.kind in SEQUENCES:
        return Channel(
            name=f"{place}:value", kind="input", dims=("step", "feature"), shape=shape, dtype=dtype, title=title,
            scale="diverging",
        )  # fmt: skip
    own = ("step",) if one.axis else AXES.get(one.kind, {}).get(values.dim(), ("feature",))
    signal = one.kind if one.kind != "other" else "value"
    scale = "sequential" if one.kind == "mask" else "diverging"
    return Channel(
        name=f"{place}:{signal}", kind="input", dims=own, shape=shape, dtype=dtype, title=title,
        scale=scale,  # type: ignore[arg-type]
        domains={"layer": f"layer of {place}"} if "layer" in own else {},  # times directions: not the layers of a stack
    )  # fmt: skip
