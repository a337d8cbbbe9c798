"""The input itself, as the model got it: token ids or vectors, of the sample looked at."""

from __future__ import annotations

from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import dtype_name, per_run
from inspector.engine.trace.trace import Trace
from inspector.records import VOCABULARY_DOMAIN, Channel


@QUANTITIES.register("input")
@per_run(summary="the tokens or vectors that went in", order=0)
def inputs(trace: Trace, emit: Emitter) -> None:
    """`input:token` (step,) ids, or `input:value` (step, feature), of the real steps of the sample looked at."""
    values = trace.batch.inputs[trace.look_at, : trace.batch.length]
    if values.dim() == 1 and not values.is_floating_point():
        channel = Channel(
            name="input:token", kind="input", dims=("step",), shape=tuple(values.shape), dtype=dtype_name(values),
            title="token", value_domain=VOCABULARY_DOMAIN,
        )  # fmt: skip
    else:
        values = values.reshape(values.shape[0], -1)
        channel = Channel(
            name="input:value", kind="input", dims=("step", "feature"), shape=tuple(values.shape),
            dtype=dtype_name(values), title="input", scale="diverging",
        )  # fmt: skip
    emit.array(channel, values)
