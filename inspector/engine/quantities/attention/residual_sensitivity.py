"""How each layer's stream answers to the stream that enters: ‖∂x_lt/∂x_0s‖ by layer."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from inspector.engine.analyses.attention.residual_stream import Stream, streams
from inspector.engine.analyses.input_gradients import spaced
from inspector.engine.errors import Unsupported
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import Describe, per_run
from inspector.engine.trace.trace import Trace
from inspector.records import Option
from inspector.records.catalogue import ATTENTION

NAME = "residual/sensitivity"
QUERIES, DIRECTIONS = 16, 4
ABOUT = Describe(
    kind="attention_map", title="sensitivity of the stream",
    formula="‖∂x_lt/∂x_0s‖_F / √e, x_0 the stream before the first layer", scale="log",
    source="Novak et al. 2018; random directions: Hutchinson 1990",
)  # fmt: skip
EXACT = "exact; {} evenly spaced steps t"
ESTIMATE = "{} evenly spaced steps t; {} seeded directions, standard error of the square about {:.0%}"


@QUANTITIES.register(NAME)
@per_run(
    summary="input–output sensitivity by layer, ‖∂x_lt/∂x_0s‖", order=64, default=False, needs=(ATTENTION,),
    cost="a backward pass for each layer, step and direction",
    work=lambda run: run.call * (24 * min(QUERIES, max(1, run.steps)) * DIRECTIONS),
    options=(
        Option(name="queries", type="int", default=QUERIES, low=1, high=4096, help="Most steps t that are taken."),
        Option(
            name="directions", type="int", default=DIRECTIONS, low=1, high=65536,
            help="Random directions for each; as many as the stream is wide, or more, is exact.",
        ),
    ),
)  # fmt: skip
def sensitivity(trace: Trace, emit: Emitter, queries: int = QUERIES, directions: int = DIRECTIONS) -> None:
    """Write `STACK:residual/sensitivity` (layer, query, key) of each stack of layers; steps that were left out have no
    page."""
    if not trace.attentions:
        return
    try:
        _, found = streams(trace)
    except Unsupported as reason:
        emit.refuse(f"layers:{NAME}", str(reason))
        return
    for stream in found:
        if not stream.values[0].requires_grad:
            emit.refuse(f"{stream.name}:{NAME}", "Nothing before the layers needs a gradient (no_grad in the model?).")
            continue
        steps = spaced(stream.length, queries)
        width = stream.values[0].shape[-1]
        method = EXACT.format(len(steps))
        if directions < width:
            method = ESTIMATE.format(len(steps), directions, (2 / directions) ** 0.5)
        channel = ABOUT.channel(
            f"{stream.name}:{NAME}", ("layer", "query", "key"), (len(stream.layers), stream.length, stream.length),
            "float64", labels={"layer": stream.names[1:]}, method=method,
            domains={"query": stream.domain, "key": stream.domain},
        )  # fmt: skip
        emit.channel(channel)
        for layer, t, row in _rows(stream, steps, directions, emit):
            emit.page(channel.name, (layer, t, 0), row[None, None])


def _rows(stream: Stream, steps: list[int], directions: int, emit: Emitter) -> Iterator[tuple[int, int, Tensor]]:
    """(layer, step, (s,) norms)."""
    first = stream.values[0]
    width = first.shape[-1]
    draws = torch.Generator().manual_seed(0)
    vectors = torch.eye(width) if directions >= width else torch.randn(directions, width, generator=draws)
    for layer, value in enumerate(stream.values[1:]):
        own = stream.of_sample(value)
        for t in steps:
            emit.check()
            total = torch.zeros(stream.length, dtype=torch.float64)
            for vector in vectors:
                (slope,) = torch.autograd.grad(own[t] @ vector.to(own), first, retain_graph=True)
                total += stream.of_sample(slope).double().square().sum(1).cpu()
            scale = width if directions >= width else len(vectors) * width  # E ‖uᵀJ‖² = ‖J‖_F² for unit normal u
            yield layer, t, (total / scale).sqrt()
