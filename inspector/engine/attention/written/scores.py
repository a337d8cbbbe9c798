"""Scores of queries and keys, and weights that are computed from them without a softmax.

Weights that do not sum to 1 cannot be recognised by their values, so they are followed from the scores: products of
queries and keys summed over features, or the one output of a layer for each position. What is computed from these entry
by entry and then multiplied with values and summed over the keys is weights: tanh, ReLU over n, a decay, exp over one
more than its sum. exp alone is not: its sum may be divided by later, or carried on from block to block.
"""

from __future__ import annotations

from torch import Tensor

from inspector.engine.attention.selected_sample import SelectedSample
from inspector.engine.attention.written.contraction import Contraction, Roles
from inspector.engine.attention.written.facts import Facts, Origin
from inspector.engine.attention.written.judging import is_parameter

PRODUCT, ADDITIVE, FUNCTION, POWER, QUOTIENT = "product", "additive", "function", "power", "quotient"
LOGARITHM = "logarithm"
"""How something was computed from scores: it is a product of queries and keys, or the output of a layer; a function of
either, or the logarithm of one, whose exp is one again; exp of it; that divided by something for each query."""
LOG_SUM, LOG_SHARE = "log_sum", "log_share"
"""The logarithm of the sum of exp of scores, for each query, with a sink or without; scores minus that, whose exp is
weights."""

BLOCKS = (
    "it is exp of the scores of a block of keys, whose sum is carried on to the next block: no weights of whole rows"
)
UNDIVIDED = "what it is multiplied to is not divided by its sum where that was seen, so the weights are not known"


def of_product(selected: SelectedSample, contraction: Contraction, *, named: bool = False) -> Facts | None:
    """Facts of a product that may be of queries and keys: along an axis of positions that only one of both has.

    None where positions are summed over too, as those of keys and values are in linear attention, and for parameters.
    Counter-example: features that are as many as positions, where nothing tells these apart. `named`: letters do.
    """
    left, right, out = contraction.left, contraction.right, contraction.out
    positions = (selected.padded, selected.length)
    own = [axis for axis in out.axes if (axis in left.axes) != (axis in right.axes)]
    summed = [axis for axis in left.axes if axis in right.axes and axis not in out.axes]
    if not summed or is_parameter(left.tensor) or is_parameter(right.tensor):
        return None
    sizes = [max(left.size(axis), right.size(axis)) for axis in own]
    alike = not named and any(left.size(axis) in positions for axis in summed)
    return Facts(scored=PRODUCT) if any(size in positions for size in sizes) and not alike else None


def for_each_row(factor: object, weights: Tensor) -> bool:
    """Whether a factor or divisor has one number for all entries along one of the last two axes of the weights."""
    if not isinstance(factor, Tensor) or not 0 < factor.dim() <= weights.dim():
        return False
    count = min(2, factor.dim())
    return any(size == 1 < wide for size, wide in zip(factor.shape[-count:], weights.shape[-count:], strict=True))


def after_function(scored: str | None) -> str | None:
    """Of a function of each entry."""
    return FUNCTION if scored in (PRODUCT, ADDITIVE) else scored


def origin_of(
    selected: SelectedSample, known: Facts, contraction: Contraction, roles: Roles, where: tuple[str, str]
) -> Origin | None:
    """The origin of weights that are no softmax of their scores; with a reason where they are no weights yet."""
    left = contraction.left
    if known.scored in (None, ADDITIVE) or len(roles.keys) != 1 or not roles.features:
        return None  # without features it may be a masked sum
    positions = left.size(roles.keys) in (selected.padded, selected.length)
    powers = known.scored == POWER
    if not positions and not powers:
        return None
    kind = "exp" if known.scored in (POWER, QUOTIENT) else "scores"
    reason = "" if not powers else UNDIVIDED if positions else BLOCKS
    return Origin(kind, *where, tuple(left.tensor.shape), left.axes.index(roles.keys), reason=reason)
