"""Attention beside gradient: ∂L/∂A, A ⊙ ∂L/∂A, and how much each head matters to the loss."""

from __future__ import annotations

from dataclasses import replace

import torch

from inspector.engine.analyses.attention.attended import TARGET, Attended, Target, attended
from inspector.engine.analyses.attention.head_maps import (
    FOLLOWED,
    HeadRows,
    head_rows,
    known,
    with_heads,
    write_heads,
    write_map,
    write_rows,
)
from inspector.engine.errors import Unsupported
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import Describe, per_run
from inspector.engine.trace.trace import Attention, Trace
from inspector.records import LOSS_UNIT
from inspector.records.catalogue import ATTENTION

GRADIENT, PRODUCT, BY_QUERY, IMPORTANCE = (
    "attention/gradient", "attention/times_gradient", "attention/importance_by_query", "attention/importance",
)  # fmt: skip
STATISTICS = ("whole", "by query")
METHOD = f"exact; one more call and one backward pass; {FOLLOWED}"
MAPS = {
    GRADIENT: Describe(
        kind="attention_map", unit=LOSS_UNIT, title="gradient at the attention", formula="∂L/∂A_qk = ∂L/∂z_q · v_k",
        source="Jain & Wallace 2019", scale="diverging", method=METHOD,
    ),
    PRODUCT: Describe(
        kind="attention_map", unit=LOSS_UNIT, title="attention × gradient", formula="A_qk ∂L/∂A_qk",
        source="Chefer, Gur & Wolf 2021; Michel et al. 2019", scale="diverging", method=METHOD,
    ),
}  # fmt: skip
ABOUT_QUERY = Describe(
    kind="attention_statistic", unit=LOSS_UNIT, title="attention × gradient, summed over keys", scale="diverging",
    formula="Σ_k A_qk ∂L/∂A_qk = z_q · ∂L/∂z_q", source="Michel, Levy & Neubig 2019", method=METHOD,
)  # fmt: skip
ABOUT_HEAD = Describe(
    kind="attention_statistic", unit=LOSS_UNIT, title="importance by gradient",
    source="Michel, Levy & Neubig 2019, eq. 4",
    formula="whole: |Σ_qk A_qk ∂L/∂A_qk|, the change of L to first order as the head is scaled; by query: "
    "Σ_q |Σ_k A_qk ∂L/∂A_qk|", method=METHOD,
)  # fmt: skip


@QUANTITIES.register(GRADIENT)
@per_run(
    summary="attention beside gradient: ∂L/∂A, A ⊙ ∂L/∂A, and the importance of each head", order=60, default=False,
    needs=(ATTENTION,), cost="a second forward and backward pass", work=lambda run: run.call * 4, options=TARGET,
)  # fmt: skip
def gradient(trace: Trace, emit: Emitter, of: str = "loss", step: int = -1, token: int = -1) -> None:
    """Write, of every attention of the selected sequence, `PLACE:attention/gradient` and `…/times_gradient` (head,
    query, key), `…/importance_by_query` (head, query), and `…/importance` (head, statistic).

    L is the loss (summed over its steps, or of one step), or the score of one class. ∂L/∂A counts what a changed
    weight does through the values that it multiplies, the other weights of its row unchanged; 0 at masked keys.
    """
    if not trace.attentions:
        return
    try:
        found = attended(trace, Target(of, step, token))
    except Unsupported as reason:
        emit.refuse(f"{trace.attentions[0].place}:{GRADIENT}", str(reason))
        return
    for number, attention in enumerate(with_heads(found.attentions, emit, GRADIENT, gradient=True)):
        emit.progress(number, len(found.attentions), f"gradient of {attention.place}")
        _write(trace, emit, attention, found)


def _write(trace: Trace, emit: Emitter, attention: Attention, found: Attended) -> None:
    """The four channels of one attention."""
    heads = known(attention)
    assert heads.delta is not None
    by_query = torch.zeros(heads.delta.shape[0], _queries(trace, attention), dtype=torch.float64)
    for block in head_rows(attention, trace.look_at, gradient=False):
        delta = heads.delta[block.heads, block.rows]
        by_query[block.heads, block.rows] = (block.sums.double() * delta.double()).sum(-1).cpu()
    importance = torch.stack([by_query.sum(1).abs(), by_query.abs().sum(1)])
    write_heads(emit, attention, IMPORTANCE, _of(ABOUT_HEAD, found), importance, STATISTICS)
    write_rows(emit, attention, BY_QUERY, _of(ABOUT_QUERY, found), by_query)
    write_map(emit, trace, attention, GRADIENT, _of(MAPS[GRADIENT], found), _gradient)
    write_map(emit, trace, attention, PRODUCT, _of(MAPS[PRODUCT], found), _product)


def _gradient(block: HeadRows) -> torch.Tensor:
    assert block.gradient is not None
    return block.gradient


def _product(block: HeadRows) -> torch.Tensor:
    return block.weights * _gradient(block)


def _queries(trace: Trace, attention: Attention) -> int:
    tensor = attention.query if attention.weights is None else attention.weights
    return int(tensor.shape[2])


def _of(about: Describe, found: Attended) -> Describe:
    """With what L is; the score of a class has no unit."""
    formula = f"{about.formula}; L is the {found.of}"
    return replace(about, formula=formula, unit=about.unit if found.sign < 0 else "1")
