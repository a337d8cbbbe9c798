"""From a, b and h as the model has them to a recurrence of the trace, checked by a plain loop over the steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from inspector.engine.cells.check import Check
from inspector.engine.scans.step import DiagonalStep, split
from inspector.engine.scans.values import rounding, wide
from inspector.engine.trace.trace import Recurrence, Trace

MOST_NUMBERS = 1 << 24
"""States of all sequences, steps × sequences × units, that are stored; beyond, those of the selected sequence alone."""
MOST = 1 << 26
"""Of the selected sequence: beyond, the scan is refused."""


@dataclass(slots=True)
class Steps:
    """A diagonal recurrence: h (t + 1, b, k) with the initial state, b (t, b, k), a (t or 1, b or 1, k).

    real or complex; `base` is the number of the first sequence of the batch that is there.
    """

    h: Tensor
    b: Tensor
    a: Tensor
    base: int = 0
    stored: dict[str, Tensor] = field(default_factory=dict)

    @property
    def twofold(self) -> bool:
        """Whether the state is complex."""
        return self.h.is_complex()

    def rebuilt(self) -> Tensor:
        """The states by the loop that the scan stands for, in double precision: (t + 1, b, k)."""
        a, b = wide(self.a), wide(self.b).to(wide(self.h).dtype)
        a, states = a.expand(len(b), *a.shape[1:]), [wide(self.h[0])]
        for decay, given in zip(a, b, strict=True):
            states.append(decay * states[-1] + given)
        return torch.stack(states)

    def check(self) -> Check:
        """Largest difference between the model's states and the rebuilt ones."""
        error = (self.rebuilt() - wide(self.h)).abs().amax()
        return Check(float(error), float(self.h.abs().amax()) * rounding(self.h.dtype))


def first_state(h: Tensor, b: Tensor, a: Tensor) -> Tensor:
    """The state before the first step (1, b, k) that explains the first one: 0 where b alone does, to rounding."""
    rest, decay = wide(h[:1]) - wide(b[:1]), wide(a[:1])
    least = float(h.abs().amax()) * rounding(h.dtype)
    solved = rest / decay.where(decay.abs() > 0, torch.ones_like(decay))
    return solved.where(rest.abs() > least, torch.zeros_like(solved)).to(h)


def recurrence_of(steps: Steps, place: str, module: str, trace: Trace) -> Recurrence:
    """The recurrence of some steps, in main memory; lengths are those of the batch where it has as many steps."""
    count, samples, units = steps.b.shape
    real = steps.h.real.dtype if steps.twofold else steps.h.dtype
    constant = len(steps.a) == 1
    fixed = steps.a[0, 0] if constant else None
    bounded = bool((steps.a.abs() <= 1 + torch.finfo(real).eps).all())
    cell = DiagonalStep(units, twofold=steps.twofold, fixed=fixed, bounded=bounded, like=real)
    x = [split(steps.b, steps.twofold)]
    if not constant:
        x.append(split(steps.a.expand(count, samples, units), steps.twofold))
    own = trace.batch.lengths[steps.base : steps.base + samples].cpu()
    lengths = own if count == trace.batch.steps and len(own) == samples else torch.full((samples,), count)
    return Recurrence(
        place=place, module=module, cell=cell.in_main_memory(), x=torch.cat(x, -1).to("cpu", real),
        states=split(steps.h, steps.twofold).cpu(), lengths=lengths, check=steps.check(), base=steps.base,
    )  # fmt: skip


def arriving(recurrence: Recurrence, rows: Callable[[Tensor], Tensor]) -> Callable[[Tensor | None], None]:
    """What takes the gradient of the loss at the model's states, whose rows (t, b, k) are those of the recurrence.

    No step of the scan reads that tensor, so the gradient at it is what arrives from outside of the recurrence; the
    whole gradient of a state is that and what the next state hands back: δ_t = arriving_t + conj(a_{t+1}) δ_{t+1}.
    """

    def take(gradient: Tensor | None) -> None:
        cell = recurrence.cell
        assert isinstance(cell, DiagonalStep)
        if gradient is None:
            recurrence.arriving = recurrence.delta = torch.zeros_like(recurrence.states[1:])
            return
        recurrence.arriving = split(rows(gradient.detach()), cell.twofold).to(recurrence.states)
        recurrence.delta = _swept(recurrence.arriving, cell, recurrence.x)

    return take


def _swept(arriving: Tensor, cell: DiagonalStep, x: Tensor) -> Tensor:
    """δ (t, b, s) from what arrives."""
    back, delta = cell.conjugate(cell.decay(x)), arriving.clone()
    for t in range(len(delta) - 2, -1, -1):
        delta[t] += cell.times(back[t + 1], delta[t + 1])
    return delta
