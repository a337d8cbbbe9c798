"""The gradient of the loss at the residual stream, by layer and position."""

from __future__ import annotations

from dataclasses import replace

import torch

from inspector.engine.analyses.attention.attended import TARGET, Target, chosen
from inspector.engine.analyses.attention.residual_stream import no_stack, streams
from inspector.engine.errors import Unsupported
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import Describe, per_run
from inspector.engine.trace.trace import Trace
from inspector.records import LOSS_UNIT
from inspector.records.catalogue import ATTENTION

NAME = "residual/gradient"
ABOUT = Describe(
    kind="residual", unit=LOSS_UNIT, title="gradient at the residual stream", scale="log", compare="ratio",
    formula="‖∂L/∂x_lt‖₂", source="He et al. 2016, Identity mappings; Xiong et al. 2020, On layer normalization",
    method="exact; one more call and one backward pass",
)  # fmt: skip
CUT = "The {} is not connected to the layers by autograd (no_grad or detach inside the model?)."


@QUANTITIES.register(NAME)
@per_run(
    summary="gradient of the loss at the residual stream, by layer and position", order=61, default=False,
    needs=(ATTENTION,), cost="a second forward and backward pass", work=lambda run: run.call * 4, limit=no_stack,
    options=TARGET,
)  # fmt: skip
def gradient(trace: Trace, emit: Emitter, of: str = "loss", step: int = -1, token: int = -1) -> None:
    """Write `STACK:residual/gradient` (layer, step) of each stack of layers; NaN where no gradient arrives."""
    if not trace.attentions:
        return
    try:
        output, found = streams(trace)
        number, text, sign = chosen(trace, output, Target(of, step, token))
        values = [value for stream in found for value in stream.values]
        if not number.requires_grad or not any(value.requires_grad for value in values):
            raise Unsupported(CUT.format(text))
    except Unsupported as reason:
        emit.refuse(f"layers:{NAME}", str(reason))
        return
    asked = [value for value in values if value.requires_grad]
    slopes = iter(torch.autograd.grad(number, asked, allow_unused=True))
    by_value = [next(slopes) if value.requires_grad else None for value in values]
    for stream in found:
        own, by_value = by_value[: len(stream.values)], by_value[len(stream.values) :]
        rows = [
            torch.full((stream.length,), torch.nan) if one is None else stream.of_sample(one).double().norm(dim=1).cpu()
            for one in own
        ]
        norms = torch.stack([row.double() for row in rows])
        about = replace(ABOUT, formula=f"{ABOUT.formula}; L is the {text}", unit=LOSS_UNIT if sign < 0 else "1")
        channel = about.channel(
            f"{stream.name}:{NAME}", ("layer", "step"), tuple(norms.shape), "float64",
            labels={"layer": stream.names}, domains={"step": stream.domain},
        )  # fmt: skip
        emit.array(channel, norms)
