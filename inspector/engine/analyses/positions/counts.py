"""How many positions a sequence of a run may have, and which axes of a tensor may be a picture's rows and columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from inspector.engine.trace.step_axes import axes_beside
from inspector.engine.trace.trace import Trace

MOST_IN_FRONT = 8
"""Class and register tokens that may stand beside the patches of a picture."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Steps of a sequence with padding → without; and how many patches a picture may have, where there is one."""

    lengths: Mapping[int, int]
    patches: frozenset[int] = field(default_factory=frozenset)

    def of_picture(self, shape: Sequence[int]) -> tuple[int, int] | None:
        """The axes of rows and columns of (b, d, rows, columns) or (b, rows, columns, d); None where these are no
        patches of a picture, or may be so in both ways."""
        if len(shape) not in (3, 4) or not self.patches:
            return None
        wide = len(shape)
        found = [
            (first, first + 1)
            for first in (wide - 3, wide - 2)
            if min(shape[first : first + 2]) > 1 and shape[first] * shape[first + 1] in self.patches
        ]
        return found[0] if len(found) == 1 else None


def counts_of(trace: Trace) -> Counts:
    """Those of the selected sequence: of its inputs, its answer, and of what attends (a class token in front makes one
    more than the input has)."""
    counts: dict[int, int] = {}
    queries = set[int]()
    for attention in trace.attentions:
        shape = attention.query.shape if attention.weights is None else attention.weights.shape
        counts |= {shape[2]: shape[2]}
        queries.add(shape[2])
    counts |= {one.steps: one.length(trace.look_at) for one in axes_beside(trace)}
    for one in trace.batch.named.values():
        if one.axis:
            counts[one.steps] = int(one.lengths[trace.batch.look_at])
    lengths = {steps: length for steps, length in counts.items() if length > 1}
    if not any(one.kind == "image" or one.grid is not None for one in trace.batch.named.values()):
        return Counts(lengths)
    patches = {one - front for one in queries for front in range(MOST_IN_FRONT + 1)}
    patches = {one for one in patches if one > 1}
    several = {one: one for one in patches if one > MOST_IN_FRONT}  # positions may be added before tokens in front
    return Counts(several | lengths, frozenset(patches))
