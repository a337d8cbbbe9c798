"""Attention sink: the weight that goes to the first keys, whatever their content."""

from __future__ import annotations

from torch import Tensor

from inspector.engine.attention.rows import RowBlock
from inspector.engine.attention.statistics import per_attention_row
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.quantity import Describe

SINKS = 4


@QUANTITIES.register("attention/sink_mass")
@per_attention_row(
    Describe(
        kind="attention_statistic", title="weight on the first key", formula="A_q0", limits=(0.0, 1.0),
        source="Gu et al. 2025, When attention sink emerges in language models",
    ),
    signal="attention/sink_mass", summary="weight on the first key of each head, per query",
)  # fmt: skip
def sink_mass(block: RowBlock) -> Tensor:
    """A[a, q, 0]: (a, q)."""
    return block.weights[..., 0]


@QUANTITIES.register("attention/sink_mass_4")
@per_attention_row(
    Describe(
        kind="attention_statistic", title=f"weight on the first {SINKS} keys", formula=f"Σ_{{k<{SINKS}}} A_qk",
        source="Xiao et al. 2023, arXiv 2309.17453", limits=(0.0, 1.0),
    ),
    signal="attention/sink_mass_4", summary=f"weight on the first {SINKS} keys of each head, per query",
)  # fmt: skip
def sink_mass_4(block: RowBlock) -> Tensor:
    """Σ_{k<4} A[a, q, k]: (a, q); 1 at most where the weights of the row sum to 1."""
    mass = block.weights[..., :SINKS].sum(dim=-1)
    return mass.clamp_max(1.0).where(block.bounded, mass)
