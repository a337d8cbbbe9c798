"""Recorded steps run again in float64, at the states that a model in a smaller type had."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from inspector.engine.errors import Unsupported
from inspector.engine.recurrent.traced.program.state_layout import Steps
from inspector.engine.recurrent.traced.record.operator_traits import Kind, operator_of

OF_A_STEP = 4096
"""Roundings of the model's own type that a step may differ by from the same step in float64: sums of some thousand
entries, the last of them far from 0. Counter-example: a step that amplifies its own rounding more is not run again."""


def in_float64(groups: Sequence[Steps]) -> list[Steps]:
    """The same programs with all numbers from outside in float64."""
    return [
        replace(group, outside=[t.double() if t.is_floating_point() else t for t in group.outside]) for group in groups
    ]


def runs_in_float64(
    again: Callable[[Steps, Tensor], Tensor], groups: Sequence[Steps], wide: Sequence[Steps], states: Tensor
) -> bool:
    """Whether the steps `wide` give the recorded states (t + 1, b, s) again, to the precision that those have; False
    where the model is in float64, and where an operation gives its result a type of its own."""
    if states.dtype == torch.float64 or any(map(_names_a_type, groups)):
        return False
    whole = states.double()
    allowed = OF_A_STEP * torch.finfo(states.dtype).eps * max(1.0, float(whole.abs().max()))
    try:
        with torch.no_grad():
            apart = [(again(one, whole[one.numbers]) - whole[one.numbers + 1]).abs().max() for one in wide]
    except (RuntimeError, Unsupported):
        return False
    return all(float(one) <= allowed for one in apart)


def _names_a_type(group: Steps) -> bool:
    return any(
        operator_of(one.name).traits.kind is Kind.CAST or any(isinstance(leaf[1], torch.dtype) for leaf in one.leaves)
        for one in group.program.instructions
    )
