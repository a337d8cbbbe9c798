"""The input that a decoder is given to say: the answer itself, or the answer behind a start sign (teacher forcing)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from inspector.engine.trace.trace import Trace


@dataclass(frozen=True, slots=True)
class Spoken:
    """An input beside the primary one that holds the answer.

    Attributes:
        name: the input.
        behind: its step s holds what the output is to say at step s − behind: 0, or 1 behind a start sign.
    """

    name: str
    behind: int


def spoken(trace: Trace) -> Spoken | None:
    """The input whose steps the output has, or whose ids are the answer's; None where there is none.

    Counter-example: a second source whose text happens to be the answer (a copy, beside another input).
    """
    answer, look_at = trace.answer, trace.look_at
    if answer is None:
        return None
    if answer.source:  # no `answer` says what is to be said: what comes after a step is all that is known to be ahead
        return Spoken(answer.source, 1)
    if answer.ids is None:
        return None
    own = answer.ids[look_at, : answer.length(look_at)]
    for name, one in trace.batch.others():
        if one.kind != "tokens" or one.tensor is None or one.tensor.dim() != 2 or len(one.tensor) <= look_at:
            continue
        given = one.tensor[look_at].cpu()
        found = next((n for n in (0, 1) if _holds(given[n:], own)), None)
        if found is not None:
            return Spoken(name, found)
    return None


def _holds(given: Tensor, own: Tensor) -> bool:
    """Whether ids are those of the answer, of which the last may be missing."""
    both = min(len(given), len(own))
    return both > 1 and both >= len(own) - 1 and torch.equal(given[:both].to(own), own[:both])
