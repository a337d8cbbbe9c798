"""Every gate and candidate of every recurrent layer, at every step, recomputed in one batched product a block."""

from __future__ import annotations

from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import Describe, dtype_name, per_recurrence, rows_per_page
from inspector.engine.trace.trace import Recurrence

GRU = "Cho et al. 2014, as torch.nn.GRU computes it"
LSTM = "Hochreiter & Schmidhuber 1997; Gers et al. 2000"
DESCRIBE: dict[tuple[str, str], Describe] = {
    ("lstm", "gate/input"): Describe(
        kind="gate", title="input gate i", formula="i = σ(W_i x + U_i h + b_i)", limits=(0, 1), source=LSTM
    ),
    ("lstm", "gate/forget"): Describe(
        kind="gate", title="forget gate f", formula="f = σ(W_f x + U_f h + b_f), 1 keeps", limits=(0, 1), source=LSTM
    ),
    ("lstm", "gate/output"): Describe(
        kind="gate", title="output gate o", formula="o = σ(W_o x + U_o h + b_o)", limits=(0, 1), source=LSTM
    ),
    ("lstm", "candidate"): Describe(
        kind="gate", title="candidate g", formula="g = tanh(W_g x + U_g h + b_g)", limits=(-1, 1),
        scale="diverging", source=LSTM,
    ),
    ("gru", "gate/reset"): Describe(
        kind="gate", title="reset gate r", formula="r = σ(W_r x + U_r h + b_r)", limits=(0, 1), source=GRU
    ),
    ("gru", "gate/update"): Describe(
        kind="gate", title="update gate z", formula="z = σ(W_z x + U_z h + b_z); PyTorch: z = 1 keeps", limits=(0, 1),
        source=GRU,
    ),
    ("gru", "candidate"): Describe(
        kind="gate", title="candidate n", formula="n = tanh(W_n x + b_in + r ⊙ (U_n h + b_hn))", limits=(-1, 1),
        scale="diverging", source=GRU,
    ),
}  # fmt: skip


def describe(family: str, signal: str) -> Describe:
    """What is known of a gate; gates of other families are described by their own name."""
    name = signal.removeprefix("gate/")
    limits = (0.0, 1.0) if name != signal else None
    plain = Describe(
        kind="gate", title=f"gate {name}" if limits else name, formula=f"{name}, as the model's own code computes it",
        limits=limits, scale="sequential" if limits else "diverging", source="the model's own code",
    )  # fmt: skip
    return DESCRIBE.get((family, signal), plain)


@QUANTITIES.register("gates")
@per_recurrence(signal="gate", summary="every gate and candidate, step by step", order=10)
def gates(recurrence: Recurrence, emit: Emitter, sample: int) -> None:
    """Write `place:gate/NAME` and `place:candidate`, (step, unit), for the sample looked at."""
    length = recurrence.length(sample)
    for start, block in recurrence.blocks(sample, _block_size(recurrence, length)):
        for signal, values in block.gates.items():
            name = f"{recurrence.place}:{signal}"
            rows = recurrence.in_order(values[:, 0], sample)
            shape = (length, rows.shape[1])
            about = describe(recurrence.cell.family, signal)
            emit.channel(about.channel(name, ("step", "unit"), shape, dtype_name(rows), module=recurrence.module))
            emit.page(name, (recurrence.sequence_offset(start, len(rows), sample), 0), rows)


def _block_size(recurrence: Recurrence, length: int) -> int:
    """The 64 steps of the other quantities (whose blocks are then shared), more for small states of long runs."""
    row = recurrence.cell.state_size * recurrence.states.element_size()
    return 64 if length <= 4096 else max(64, rows_per_page(length, row))
