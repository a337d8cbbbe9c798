"""Where the tensors that a loop reads come from: results of recorded calls, inputs, parameters and buffers."""

from __future__ import annotations

from collections.abc import Container, Iterable

from torch import Tensor

from inspector.engine.recurrent.traced.record.op_table import Table
from inspector.engine.trace.trace import Trace


def inputs_of(trace: Trace) -> frozenset[int]:
    """Ids of the tensors of the batch."""
    batch = trace.batch
    return frozenset(
        id(tensor) for name, one in batch.named.items() for tensor in (one.tensor, batch[name], one.lengths)
    )


class Origins(Container[int]):
    """Ids of the tensors whose origin is known: results of recorded functions, inputs, parameters, buffers.

    Attributes:
        left: ids of the tensors whose numbers left torch.
    """

    def __init__(self, table: Table, trace: Trace, left: Iterable[Tensor] = ()) -> None:
        self.left = frozenset(map(id, left))
        model = trace.subject.model
        self._given = inputs_of(trace) | frozenset(map(id, (*model.parameters(), *model.buffers())))
        self._knows = table.knows

    def __contains__(self, number: object) -> bool:
        return number in self._given or (isinstance(number, int) and self._knows(number))
