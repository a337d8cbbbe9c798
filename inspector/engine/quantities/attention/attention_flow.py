"""Attention followed through the layers: rollout, and relevance by A ⊙ ∂y/∂A."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from inspector.engine.analyses.attention.attended import TARGET, Target, attended
from inspector.engine.analyses.attention.both_sides import BothSides
from inspector.engine.analyses.attention.descent import Layer
from inspector.engine.analyses.attention.head_maps import FOLLOWED, head_rows, with_heads
from inspector.engine.analyses.attention.layers_of_attention import in_series, mean_map, rolled, unit_of
from inspector.engine.analyses.attention.lineages import lineages
from inspector.engine.attention.rows import Rows
from inspector.engine.errors import Unsupported
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import Describe, per_run
from inspector.engine.trace.trace import Trace
from inspector.records.catalogue import ATTENTION

ROLLOUT, RELEVANCE = "attention/rollout", "attention/relevance"
ABOUT_ROLLOUT = Describe(
    kind="attention_map", title="rollout", limits=(0.0, 1.0), source="Abnar & Zuidema 2020, eq. 1",
    formula="R_l = ½ (mean over heads of A_l + I) R_{l−1}, R_0 = I",
    method="exact; a residual connection is taken to keep half of every layer, whatever it keeps in truth",
)  # fmt: skip
ABOUT_RELEVANCE = Describe(
    kind="attention_map", title="relevance", source="Chefer, Gur & Wolf 2021, Generic attention-model explainability",
    formula="R_l = R_{l−1} + mean over heads of max(0, A_l ∂y/∂A_l) R_{l−1}, R_0 = I; shown without I",
    method=f"exact; one more call and one backward pass; {FOLLOWED}",
)  # fmt: skip

NO_GRADIENT = "The gradient at the attention of {} is not known, so no chain of layers is."
TOGETHER = "attentions that are computed beside each other from the same are heads of one layer"
ACROSS = "cross"
"""The place of maps from the steps of an answer to those of its source, behind each cross attention."""
ABOUT_CROSS_ROLLOUT = replace(
    ABOUT_ROLLOUT, title="rollout to the source",
    formula="R_de = ½ (R_de + mean over heads of A · R), R = R_de of self attention, R_ee of cross attention",
)  # fmt: skip
ABOUT_CROSS_RELEVANCE = replace(
    ABOUT_RELEVANCE, title="relevance of the source",
    source="Chefer, Gur & Wolf 2021, Generic attention-model explainability, eqs. 6 to 10",
    formula="self attention: R_dd += Ā R_dd, R_de += Ā R_de; cross attention: R_de += R̄_ddᵀ Ā R̄_ee; "
    "Ā = mean over heads of max(0, A ∂y/∂A), R̄ = (R − I) / its row sums + I",
)  # fmt: skip


@QUANTITIES.register(ROLLOUT)
@per_run(
    summary="rollout: attention multiplied through the layers", order=60, default=False, needs=(ATTENTION,),
    cost="products of maps, one a layer", work=lambda run: run.call * 2,
)  # fmt: skip
def rollout(trace: Trace, emit: Emitter) -> None:
    """Write `layers:attention/rollout` (layer, query, key) of the layers that attend within one sequence, and
    `cross:attention/rollout` from the steps of an answer to those of its source."""
    if not trace.attentions:
        return

    def map_of(layer: Layer) -> Tensor:
        emit.check()
        return mean_map(layer, trace.look_at)

    known = partial(lineages, trace)

    try:
        chain, found = in_series(trace.attentions, trace.look_at, known), list[Tensor]()
        for layer in chain.layers:
            found.append(rolled(map_of(layer), found[-1] if found else None))
        _write(emit, f"layers:{ROLLOUT}", ABOUT_ROLLOUT, chain.layers, found, chain.note())
    except Unsupported as reason:
        emit.refuse(f"layers:{ROLLOUT}", str(reason))
    try:
        both = BothSides(trace.attentions, trace.look_at, known)
        if both.cross:
            _write(emit, f"{ACROSS}:{ROLLOUT}", ABOUT_CROSS_ROLLOUT, both.cross, list(both.rolled_out(map_of)))
    except Unsupported as reason:
        emit.refuse(f"{ACROSS}:{ROLLOUT}", str(reason))


@QUANTITIES.register(RELEVANCE)
@per_run(
    summary="relevance: A ⊙ ∂y/∂A, its positive part, followed through the layers", order=61, default=False,
    needs=(ATTENTION,), cost="a second forward and backward pass", work=lambda run: run.call * 4,
    options=TARGET,
)  # fmt: skip
def relevance(trace: Trace, emit: Emitter, of: str = "loss", step: int = -1, token: int = -1) -> None:
    """Write `layers:attention/relevance` (layer, query, key): what each position has taken in from each input; and
    `cross:attention/relevance`: what each step of an answer has taken in from its source.

    y is the score of the class, or minus the loss, so that relevance is what speaks for the prediction.
    """
    if not trace.attentions:
        return
    try:
        known = attended(trace, Target(of, step, token))
    except Unsupported as reason:
        emit.refuse(f"layers:{RELEVANCE}", str(reason))
        return
    with_heads(known.attentions, emit, RELEVANCE, gradient=True)
    y = known.of if known.sign > 0 else f"minus the {known.of}"

    def map_of(layer: Layer) -> Tensor:
        emit.check()
        return _positive(layer, trace.look_at, known.sign)

    try:
        chain, found = in_series(known.attentions, trace.look_at, partial(lineages, trace)), list[Tensor]()
        for layer in chain.layers:
            step_ = map_of(layer)
            before = found[-1] if found else unit_of(step_)
            found.append(before + step_ @ before)
        about = replace(ABOUT_RELEVANCE, formula=f"{ABOUT_RELEVANCE.formula}; y is {y}")
        _write(emit, f"layers:{RELEVANCE}", about, chain.layers, [one - unit_of(one) for one in found], chain.note())
    except Unsupported as reason:
        emit.refuse(f"layers:{RELEVANCE}", str(reason))
    try:
        both = BothSides(known.attentions, trace.look_at, partial(lineages, trace))
        if both.cross:
            about = replace(ABOUT_CROSS_RELEVANCE, formula=f"{ABOUT_CROSS_RELEVANCE.formula}; y is {y}")
            _write(emit, f"{ACROSS}:{RELEVANCE}", about, both.cross, list(both.relevant(map_of)))
    except Unsupported as reason:
        emit.refuse(f"{ACROSS}:{RELEVANCE}", str(reason))


def _positive(layer: Layer, sample: int, sign: float) -> Tensor:
    """(q, k) mean over heads of the positive part of A ∂y/∂A. Raises Unsupported where the gradient is not known."""
    count = 0
    total: Tensor | None = None
    for attention in layer.heads:
        if attention.heads is None or attention.heads.delta is None or attention.heads.incomplete:
            raise Unsupported(NO_GRADIENT.format(attention.place))
        count += attention.heads.delta.shape[0]
        for block in head_rows(attention, sample, gradient=True):
            assert block.gradient is not None
            part = (sign * block.weights * block.gradient).clamp_min(0.0).sum(0)
            if total is None:
                rows = Rows(attention, sample)
                total = part.new_zeros(rows.queries, rows.keys)
            total[block.rows, : part.shape[1]] += part
    assert total is not None
    return total / count


def _write(emit: Emitter, name: str, about: Describe, layers: list[Layer], found: list[Tensor], note: str = "") -> None:
    values, first = torch.stack(found), layers[0].first
    together = TOGETHER if any(len(one.heads) > 1 for one in layers) else ""
    channel = about.channel(
        name, ("layer", "query", "key"), tuple(values.shape), "float32",
        labels={"layer": tuple(one.name for one in layers)},
        domains={"query": first.queries_from, "key": first.keys_from},
        method="; ".join(filter(None, (about.method, together, note))),
    )  # fmt: skip
    emit.channel(channel)
    for number, one in enumerate(values):
        emit.page(channel.name, (number, 0, 0), one[None].float())
