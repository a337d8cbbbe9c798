"""Steps that cannot be run again, differentiated through autograd's own graph of the forward pass.

On the unrolled graph the derivative with respect to one part of a state includes its path through the other parts of
the same step's state (for example ∂h_t/∂c_{t−1} through h_{t−1}). With D(q, p) those paths, total_p = Σ_q J_q D(q, p),
from which the step Jacobian's own columns J_p, the other parts held fixed, are found one after the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from inspector.engine.cells.base import StepBlock
from inspector.engine.cells.matrix_block import MatrixBlock
from inspector.engine.errors import Unsupported
from inspector.engine.recurrent.traced.cells.base import RecordedStep
from inspector.engine.recurrent.traced.cells.replayed import LARGEST
from inspector.engine.recurrent.traced.loops.carried_state import Slot
from inspector.engine.recurrent.traced.program.state_layout import Part
from inspector.engine.trace.gradient_hooks import without_hooks
from inspector.engine.trace.trace import Recurrence
from inspector.records.plain_text import shortened

LET_GO = (
    "The derivatives of this recurrence are read off autograd's graph, which the backward pass has freed; "
    "use backward(retain_graph=True)."
)


def no_way_back(problem: RuntimeError) -> Unsupported:
    """The reason why autograd cannot compute a derivative."""
    text = shortened(" ".join(str(problem).split()), 160)
    gone = "a second time" in text
    return Unsupported(LET_GO if gone else f"Autograd cannot go back through this step ({text}).")


class GraphStep(RecordedStep):
    """The cell of a recurrence whose derivatives are read off the graph of the run."""

    method = "exact: through autograd's graph of the run"

    def __init__(self, layout: Mapping[str, Part], state: Sequence[Slot], gate_names: tuple[str, ...]) -> None:
        self.layout, self.slots, self.gate_names = dict(layout), list(state), gate_names
        self.hooked = ""  # reason, where nodes of the graph may have hooks that change what comes back
        self.parts, start = {}, 0
        for name, part in layout.items():
            self.parts[name] = slice(start, start + part.width)
            start += part.width

    def matrix(self, i: int, column: int) -> Tensor:
        """J of step i for one sample, (s, s); NaN for the first step from a state that autograd does not follow."""
        before = [slot.values[i] for slot in self.slots]
        after = [slot.values[i + 1] for slot in self.slots]
        if not all(tensor.requires_grad for tensor in before):
            size = self.state_size
            return after[0].new_full((size, size), torch.nan)
        total = _derivative(after, before, self._parts(), column)
        within = _derivative(before, before, self._parts(), column)
        order = sorted(range(len(before)), key=lambda n: self.slots[n].made[i - 1] if i else 0)
        entries = [self.parts[name] for name in self.layout]
        found = total.clone()
        for at, p in reversed(list(enumerate(order))):
            for q in order[at + 1 :]:
                found[:, entries[p]] -= found[:, entries[q]] @ within[entries[q], entries[p]]
        return found

    def _parts(self) -> list[Part]:
        return list(self.layout.values())


def _derivative(outputs: Sequence[Tensor], inputs: Sequence[Tensor], parts: Sequence[Part], column: int) -> Tensor:
    """Total derivative of one sample's outputs with respect to its inputs on the graph, (s, s)."""
    rows = []
    for out, part in zip(outputs, parts, strict=True):
        width = part.width
        if not out.requires_grad:
            rows.append(out.new_zeros(width, sum(p.width for p in parts)))
            continue
        pick = out.new_zeros(width, *out.shape)
        for n in range(width):
            one = out.new_zeros(out.shape[part.batch] if part.batch is not None else 1, width)
            one[column if part.batch is not None else 0, n] = 1
            pick[n] = part.tensor(one)
        wanted = [tensor for tensor in inputs if tensor.requires_grad]
        found = iter(
            torch.autograd.grad(out, wanted, pick, retain_graph=True, is_grads_batched=True, allow_unused=True)
            if wanted
            else ()
        )
        blocks = []
        for tensor, other in zip(inputs, parts, strict=True):
            gradient = next(found) if tensor.requires_grad else None
            at = column if other.batch is not None else 0
            blocks.append(
                out.new_zeros(width, other.width)
                if gradient is None
                else torch.stack([other.rows(gradient[n])[at] for n in range(width)])
            )
        rows.append(torch.cat(blocks, 1))
    return torch.cat(rows).detach()


@dataclass(slots=True)
class GraphRecurrence(Recurrence):
    """A recurrence whose blocks have the numbers of their steps on the graph."""

    def block(self, start: int, stop: int, samples: slice | Tensor = slice(None)) -> StepBlock:
        """Steps start … stop-1 of the given samples."""
        assert isinstance(self.cell, GraphStep)
        columns = torch.arange(self.states.shape[1])[samples]
        known = tuple(values[start:stop, samples] for values in self.known)
        return GraphBlock(self.cell, start, columns, self.states[start : stop + 1, samples], known)


class GraphBlock(MatrixBlock):
    """Consecutive steps of some samples."""

    cell: GraphStep

    def __init__(self, cell: GraphStep, start: int, columns: Tensor, states: Tensor, known: tuple[Tensor, ...]) -> None:
        self.cell, self.start, self.columns = cell, start, columns
        self.previous, self.following = states[:-1], states[1:]
        self.x = states.new_zeros(*self.following.shape[:2], 0)
        self.gates = dict(zip(cell.gate_names, known, strict=True))

    @cached_property
    def matrices(self) -> Tensor:
        """J, (t, b, s, s). Raises Unsupported."""
        t, b, s = self.shape
        if s > LARGEST:
            raise Unsupported(f"The state has {s} entries; Jacobians are built for at most {LARGEST}.")
        if self.cell.hooked:
            raise Unsupported(self.cell.hooked)
        try:
            with torch.enable_grad(), without_hooks():
                rows = [
                    torch.stack([self.cell.matrix(self.start + n, int(column)).cpu() for column in self.columns])
                    for n in range(t)
                ]
        except RuntimeError as problem:
            raise no_way_back(problem) from None
        return torch.stack(rows).view(t, b, s, s).to(self.following.dtype)

    def input_vjp(self, u: Tensor) -> Tensor:
        """Not available for recorded steps: autograd has their input gradients already."""
        raise Unsupported("The gradient at a recorded step's inputs is autograd's own.")
