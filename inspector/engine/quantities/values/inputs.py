"""The inputs themselves, as the model got them: ids, vectors, images, masks and states of the selected sample."""

from __future__ import annotations

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


@QUANTITIES.register("input")
@per_run(summary="the tokens, vectors and other inputs of the model", order=0)
def inputs(trace: Trace, emit: Emitter) -> None:
    """`input:token` (step,) ids, or `input:value` (step, feature), of the real steps of the selected sample.

    That is the primary input; others are `input.NAME:…`, over a step axis of their own where they are sequences, and an
    image is `…:image` (channel, row, column), a mask `…:mask` (step,), a state `…:state` (layer, unit), an array
    `…:value`.
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
            title="token" if title == INPUT else f"tokens of {title}", value_domain=domain,
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
