"""Direct logit attribution: what each head adds to the score of the predicted class."""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Tensor

from inspector.engine.analyses.attention.attended import class_name, values_again
from inspector.engine.analyses.attention.direct_logits import at_heads, behind_layers, check_joined, final_norm
from inspector.engine.analyses.attention.head_maps import head_rows, known, with_heads, write_rows
from inspector.engine.analyses.attention.residual_stream import Readout, Stream, reading, streams
from inspector.engine.errors import Unsupported
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import Describe, per_run
from inspector.engine.trace.trace import Attention, Trace
from inspector.records import Option
from inspector.records.catalogue import ATTENTION

NAME = "attention/direct_logit"
ABOUT = Describe(
    kind="attention_statistic", title="added to the score on the direct path", scale="diverging",
    formula="(linear part, of norms and scales on the way to the head, of z_q W_O) · w_c, their scales held; c: {}",
    source="Elhage et al. 2021, A mathematical framework for transformer circuits: direct logit attribution",
    method="exact for the direct path (sums; norms and gates, their scales held); what other parts make of it is not "
    "in it",
)  # fmt: skip
PREDICTED = "the most probable class at each step"
NO_PROJECTION = "The projection behind the heads of {} was not found, so they have no part of their own in the stream."


@QUANTITIES.register(NAME)
@per_run(
    summary="what each head adds to the score of a class on the direct path (direct logit attribution)", order=61,
    default=False, needs=(ATTENTION,), cost="two more calls of the model", work=lambda run: run.call * 5,
    options=(
        Option(
            name="token", type="int", default=-1, low=-1,
            help="Of which class the score is: −1 is the most probable one at each step.",
        ),
    ),
)  # fmt: skip
def direct_logit(trace: Trace, emit: Emitter, token: int = -1) -> None:
    """Write `PLACE:attention/direct_logit` (head, query) of the attentions in the stack off which the scores are read.

    Where what an attention adds goes through anything but sums, norms and scales, it is refused with the reason.
    """
    if not trace.attentions:
        return
    try:
        again = values_again(trace)
        output, found = streams(trace)
        stream, read = reading(trace, output, found)
        check_joined(stream)
        direction, which = _direction(trace, stream, read, token)
        behind = behind_layers(stream, direction)
    except Unsupported as fault:
        emit.refuse(f"layers:{NAME}", str(fault))
        return
    for attention in with_heads(again, emit, NAME, gradient=False):
        try:
            values = _direct(trace, stream, attention, behind)
        except Unsupported as reason:
            emit.refuse(f"{attention.place}:{NAME}", str(reason))
            continue
        about = replace(ABOUT, formula=ABOUT.formula.format(which))
        write_rows(emit, attention, NAME, about, values.cpu())


def _direction(trace: Trace, stream: Stream, read: Readout, token: int) -> tuple[Tensor, str]:
    """((t, e) d with score = x · d + a number for each step, x the stream; which class). Raises Unsupported."""
    norm, head = final_norm(stream, read), read.modules[-1]
    with torch.no_grad():
        scores = stream.of_sample(read.scores(stream.values[-1].detach()))
    if token >= scores.shape[1]:
        raise Unsupported(f"There is no class {token}: the scores have {scores.shape[1]} classes.")
    classes = scores.argmax(-1) if token < 0 else torch.full((len(scores),), token, device=scores.device)
    weight = head.weight
    assert isinstance(weight, Tensor)
    weight = weight.detach().double()
    rows = weight[classes] if weight.shape[0] == scores.shape[1] else weight.T[classes]
    if norm.gamma is not None and norm.sigma is not None:
        rows = rows * norm.gamma / norm.sigma
        rows = rows - rows.mean(-1, keepdim=True) if norm.centred else rows
    which = PREDICTED if token < 0 else f"class {token}{class_name(trace, scores.shape[1], token)}"
    if math.isfinite(read.after.cap):
        which += f"; of the score before its soft cap of {read.after.cap:.4g}"
    return rows * read.after.factor, which


def _direct(trace: Trace, stream: Stream, attention: Attention, behind: list[Tensor | str]) -> Tensor:
    """(a, q) what each head adds to the score, given the direction behind each layer. Raises Unsupported."""
    layer = stream.layer_of(attention)
    if layer is None:
        raise Unsupported(f"{attention.place} lies in none of the layers of {stream.name}.")
    direction = next(one for call, one in zip(stream.layers, behind, strict=True) if call is layer)
    if isinstance(direction, str):
        raise Unsupported(direction)
    added = _added(trace, stream, attention)
    return (added * at_heads(stream, layer, attention.place, added.sum(0), direction)).sum(-1)


def _added(trace: Trace, stream: Stream, attention: Attention) -> Tensor:
    """(a, q, e) what each head gives to its layer. Raises Unsupported."""
    heads = known(attention)
    if heads.weight is None:
        raise Unsupported(NO_PROJECTION.format(attention.place))
    weight = heads.weight.double()
    parts: dict[int, list[Tensor]] = {}
    for block in head_rows(attention, trace.look_at, gradient=False):
        parts.setdefault(block.first, []).append(torch.bmm(block.sums.double(), weight[block.heads]))
    added = torch.cat([torch.cat(parts[first]) for first in sorted(parts)], dim=1)
    if added.shape[1] != stream.length or added.shape[2] != stream.values[0].shape[-1]:
        raise Unsupported(f"{attention.place} has other steps than the stream of {stream.name}.")
    return added
