"""The constant error carousel of an LSTM: the block c → c of the step Jacobian."""

from __future__ import annotations

from torch import Tensor

from inspector.engine.cells.base import StepBlock
from inspector.engine.errors import NotApplicable
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.quantity import Describe, per_step


@QUANTITIES.register("jacobian/carousel_norm")
@per_step(
    Describe(
        kind="jacobian", compare="ratio",
        title="c → c block", formula="‖∂c_t/∂c_{t−1}‖₂ = max_h f_t[h], h_{t−1} held fixed",
        source="Hochreiter & Schmidhuber 1997", scale="log",
    ),
    signal="jacobian/carousel_norm", summary="spectral norm of the c → c block of an LSTM", order=42,
)  # fmt: skip
def carousel_norm(block: StepBlock) -> Tensor:
    """With h_{t−1} held fixed ∂c_t/∂c_{t−1} = diag(f_t), whose spectral norm is the largest forget gate. → (t, b)."""
    if "c" not in block.cell.parts or "gate/forget" not in block.gates:
        raise NotApplicable("Only an LSTM has a c → c block.")
    return block.gates["gate/forget"].abs().amax(-1)
