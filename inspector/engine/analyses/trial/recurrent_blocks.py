"""The recurrent weights and biases of torch's own recurrent modules, block by block.

PyTorch stacks the blocks of all gates by rows: one of nn.RNN; reset, update, new of nn.GRU; input, forget, cell,
output of nn.LSTM (the documentation of these classes).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor, nn

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
CANDIDATE = 2
"""Which block is no gate: "new" of a GRU, "cell" of an LSTM."""
MEMORY = {"GRU": 1, "LSTM": 1}
"""Which block keeps the state where its gate is open: update of a GRU (h' = (1 − z) n + z h), forget of an LSTM."""


@dataclass(frozen=True, slots=True)
class Recurrent:
    """One layer and direction: its kind ("RNN", "GRU", "LSTM"), its number of units, and names of its parameters."""

    kind: str
    units: int
    weight: str
    biases: tuple[str, ...]

    @property
    def blocks(self) -> list[slice]:
        """The rows of each gate."""
        return [slice(n * self.units, (n + 1) * self.units) for n in range(GATES[self.kind])]

    @property
    def gates(self) -> list[slice]:
        """The rows of the gates, without those of the candidate (the third block of both)."""
        return [rows for n, rows in enumerate(self.blocks) if self.kind != "RNN" and n != CANDIDATE]

    @property
    def memory(self) -> slice | None:
        """The rows of the gate that keeps the state; None where there is none."""
        at = MEMORY.get(self.kind)
        return None if at is None else self.blocks[at]


def recurrent_parts(model: nn.Module) -> Iterator[Recurrent]:
    """Every layer and direction of torch's own recurrent modules, cells of one step included."""
    for place, module in model.named_modules():
        if isinstance(module, (nn.RNNBase, nn.RNNCellBase)):
            kind, prefix = _kind(module), f"{place}." if place else ""
            own = [name for name in module._parameters if name.startswith("weight_hh")]
            for name in own:
                end = name.removeprefix("weight_hh")
                biases = tuple(f"{one}{end}" for one in ("bias_ih", "bias_hh") if f"{one}{end}" in module._parameters)
                yield Recurrent(kind, int(module.hidden_size), f"{prefix}{name}", tuple(prefix + one for one in biases))


def trained_blocks(model: nn.Module, held: Mapping[str, Tensor]) -> Iterator[Tensor]:
    """Each square block of recurrent weights among the `held` parameters, as a view that may be changed in place."""
    for part in recurrent_parts(model):
        for rows in part.blocks if part.weight in held else []:
            yield held[part.weight][rows]


def _kind(module: nn.Module) -> str:
    if isinstance(module, (nn.LSTM, nn.LSTMCell)):
        return "LSTM"
    return "GRU" if isinstance(module, (nn.GRU, nn.GRUCell)) else "RNN"


def known_range(values: Sequence[float]) -> str:
    """From the least to the largest; the number alone where there is one."""
    return f"{min(values):.3g} to {max(values):.3g}" if len(values) > 1 else f"{values[0]:.3g}"
