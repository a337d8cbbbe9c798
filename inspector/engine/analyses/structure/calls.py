"""The subject called again, and what it returned, laid along the steps and sequences of what it was given.

Every call begins with the same random state and leaves the model as it was. A model whose answers to one input differ
from call to call cannot be tested by comparing answers, which is said.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from inspector.engine.analyses.rerun import undisturbed
from inspector.engine.errors import Unsupported, model_error
from inspector.engine.model.batch import SEQUENCES, Batch
from inspector.engine.model.model_output import candidates
from inspector.engine.model.uncompiled import uncompiled
from inspector.engine.trace.trace import Trace
from inspector.records import STEP_DOMAIN

ROUNDING = 32.0
"""So many units of rounding of the largest output are no change: a convolution by Fourier transforms, which sums over
all positions, moves outputs by a few. A leak that is smaller than that is not seen."""

NOTHING_FINITE = "No output of the model is finite, so outputs cannot be compared."


@dataclass(frozen=True, slots=True)
class Answer:
    """The outputs of a call: (b, t, f), or (b, 1, f) where they have no step axis."""

    values: Tensor
    steps: bool

    @property
    def scale(self) -> float:
        """The largest finite absolute value, 0 where there is none."""
        finite = self.values[self.values.isfinite()]
        return float(finite.abs().max()) if finite.numel() else 0.0

    @property
    def rounding(self) -> float:
        """Relative changes up to this are rounding."""
        return ROUNDING * torch.finfo(self.values.dtype).eps

    def change(self, other: Answer) -> Tensor:
        """(b, t) float64 the largest change of an output from this answer to another, relative to `scale`. NaN at the
        same place in both is no change, on one side only it is an infinite one."""
        a, b = self.values, other.values
        same = (a == b) | (a.isnan() & b.isnan())
        moved = (a.double() - b.double()).abs().nan_to_num(nan=torch.inf).masked_fill(same, 0.0)
        return moved.amax(-1) / (self.scale or 1.0)


class Calls:
    """Calls of the subject of a run, one sequence at a time unless told otherwise."""

    def __init__(self, trace: Trace) -> None:
        self.subject, self.seed = trace.subject, trace.seed
        self.model, self.primary = trace.subject.model, trace.batch.primary

    def output(self, batch: Batch) -> Any:
        """What the model returns. Raises Unsupported with one line about the error that it raised."""
        with self.ready():
            return self.once(batch)

    @contextmanager
    def ready(self, seed: int | None = None) -> Iterator[None]:
        """Calls inside begin with one random state, and see what the calls before them left in the model."""
        seed = self.seed if seed is None else seed
        with undisturbed(self.model, seed), uncompiled(self.model), torch.no_grad():
            yield

    def once(self, batch: Batch) -> Any:
        """One call, inside of `ready`. The subject sees its own primary input, whichever is changed."""
        if batch.primary != self.primary:
            batch = as_primary(batch, self.primary)
        try:
            return self.subject.run(self.subject.placed(batch))
        except (Exception, SystemExit) as fault:  # noqa: BLE001 - the user's code may raise anything
            raise Unsupported(str(model_error(fault, "The model, called again,"))) from None

    def answer(self, batch: Batch, steps: int | None = None) -> Answer:
        """The outputs of a call on a batch. Raises Unsupported."""
        return self.laid_out(self.output(batch), batch, steps)

    def laid_out(self, output: Any, batch: Batch, steps: int | None = None) -> Answer:
        """The scores, or the first output with the batch's sequences, over so many steps (the primary input's). Raises
        Unsupported."""
        steps = steps or batch.steps
        scored = self._scores(output)
        own = [scored] if isinstance(scored, Tensor) else []
        rest = [one for _, one in candidates(output)] if not own else []
        rest += [one for one in tree_leaves(output) if isinstance(one, Tensor)]
        for tensors in (own, rest):  # states of an encoder lie along the input's steps, and are no scores
            floating = [one.detach().cpu() for one in tensors if one.is_floating_point() and one.dim()]
            for value in floating:
                if (moved := along(value, batch.size, steps)) is not None:
                    return Answer(moved, steps=True)
            for value in floating:
                if len(value) == batch.size:
                    return Answer(value.reshape(batch.size, 1, -1).clone(), steps=False)
        shapes = ", ".join(str(tuple(one.shape)) for one in floating[:4]) or "nothing of numbers"
        raise Unsupported(
            f"The model returns {shapes}: no tensor of {batch.size} sequences, nor of their {steps} steps."
        )

    def _scores(self, output: Any) -> Any:
        try:
            return self.subject.scores(output)
        except (Exception, SystemExit):  # noqa: BLE001 - another output than in the run; the tensors themselves remain
            return None

    def settled(self, batch: Batch, steps: int | None = None) -> Answer:
        """The answer, which a second call gave again. Raises Unsupported where it did not."""
        first, second = self.answer(batch, steps), self.answer(batch, steps)
        if not bool(first.values.isfinite().any()):
            raise Unsupported(NOTHING_FINITE)
        if first.values.shape != second.values.shape or bool((first.change(second) > first.rounding).any()):
            raise Unsupported(
                "Called twice on the same input with the same random state, the model gives different outputs, so "
                "outputs cannot be compared. Its state may be kept in a list or a dictionary from call to call."
            )
        return first


def along(value: Tensor, sequences: int, steps: int) -> Tensor | None:
    """(b, t, f) a copy of a tensor with its sequences and steps in front; None where it has no such axes.

    Batch first is tried before time first, which decides where both numbers are equal.
    """
    if value.dim() >= 2 and tuple(value.shape[:2]) == (sequences, steps):
        return value.reshape(sequences, steps, -1).clone()
    if value.dim() >= 2 and tuple(value.shape[:2]) == (steps, sequences):
        return value.transpose(0, 1).reshape(sequences, steps, -1).clone()
    if sequences == 1 and value.dim() and value.shape[0] == steps:
        return value.reshape(1, steps, -1).clone()
    return None


def as_primary(batch: Batch, name: str) -> Batch:
    """The batch whose changes are those of another of its inputs."""
    return Batch.of(batch.named, name, targets=batch.targets, look_at=batch.look_at, title=batch.title)


def sequences_of(batch: Batch) -> list[str]:
    """Names of the inputs that lie along the primary one's steps, itself included."""
    return [
        name
        for name, one in batch.named.items()
        if one.tensor is not None and one.axis == STEP_DOMAIN and (one.kind in SEQUENCES or one.kind == "mask")
    ]
