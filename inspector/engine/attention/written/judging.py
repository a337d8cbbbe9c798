"""Whether weights that a model computes itself are attention, or what else: a gate, a mixture, a router.

Attention looks at *items that were treated alike*: positions, or memories, each scored by the same function. A mixture
weighs the results of different layers or different parameters; its scores are the outputs of a layer that has a weight
for each of them.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from inspector.engine.attention.selected_sample import SelectedSample
from inspector.engine.attention.written.contraction import Contraction, Roles
from inspector.engine.attention.written.facts import Facts, Origin

ATTENDING = ("attn", "attention")
"""A module whose name or class contains one of these attends, whatever its scores come from."""
MIXING = ("expert", "moe", "router", "mixture")

COMMON = "the values are the same for all sequences of the batch"
UNUSED = "its result is not multiplied with values and summed over that axis, as that of a classifier or a policy"
UNSEEN = "how its result is put together with values was not recognised, so there is no map"
GATE = "it multiplies numbers one by one and nothing is summed: a gate"
ROUTED = "the largest of it are picked (topk): a router"
PARAMETERS = "it weighs parameters, not what was computed from the sequence: a mixture"
FIXED = "its scores are parameters, the same for every input: a mixture"
LAYERS = "it weighs the results of layers with different weights: a mixture"
OUTPUTS = "its scores are the outputs of one layer, with a weight for each: a mixture or a router"
ELSEWHERE = "its result is summed over another axis than the one over which it is normalised"
PIECES = "its weights are taken one by one (by an index), so its sum is not seen as one"
LAYER = "a layer reads it, which mixes its heads or reads probabilities: what it makes of it is not followed"
SCALED = "it multiplies other numbers, and these products are not summed over that axis as weights of values"

TOLERANCE, AT_LEAST = 4.0, 1e-5
"""How far the sum of n weights may be from 1, in rounding errors of n weights, and at least (weights that were computed
in single precision and cast)."""


def verdict(
    selected: SelectedSample, origin: Origin, contraction: Contraction, roles: Roles, scores: Facts, values: Facts
) -> str:
    """Why a weighted sum is not attention, or "". `scores` and `values` are what is known of both operands."""
    named = any(word in f"{origin.place}.{origin.module}".lower() for word in ATTENDING)
    keys = math.prod(map(contraction.left.size, roles.keys))
    positions = keys in (selected.padded, selected.length)
    if is_parameter(contraction.right.tensor):
        return ELSEWHERE if _over_another_axis(origin, contraction, roles) else PARAMETERS
    if origin.fixed and not (positions and _from_positions(selected, contraction, roles)):
        return FIXED
    if values.experts:
        return LAYERS
    if named:
        return ""
    if any(word in f"{origin.place}.{origin.module}".lower() for word in MIXING):
        return OUTPUTS
    if origin.features and not positions:
        return OUTPUTS
    if origin.kind in ("sigmoid", "hard") and not positions:
        return OUTPUTS if origin.kind == "sigmoid" else ROUTED
    if not roles.shared and contraction.right.tensor.dim() == 2 and not (values.worth or positions):
        return PARAMETERS
    return ""


def _from_positions(selected: SelectedSample, contraction: Contraction, roles: Roles) -> bool:
    """Whether there is a row of weights for each position: a map that is learned as it is (Tay et al. 2021)."""
    return any(contraction.left.size(axis) in (selected.padded, selected.length) for axis in roles.queries)


def _over_another_axis(origin: Origin, contraction: Contraction, roles: Roles) -> bool:
    """Whether weights are summed over another axis than that of their softmax (heads that are mixed)."""
    left = contraction.left
    same = tuple(left.tensor.shape) == tuple(origin.shape) and len(left.axes) == left.tensor.dim()
    return same and left.axes[origin.axis] not in roles.keys


def no_weights(origin: Origin, contraction: Contraction, roles: Roles) -> bool:
    """Whether what is summed is no weights: exponentials that are divided by nothing, or a softmax that was multiplied
    by other numbers, or mixed, over something else than its own axis."""
    if origin.kind == "exp" and origin.reason:
        return True
    keys = math.prod(map(contraction.left.size, roles.keys))
    return origin.kind in ("scaled", "mixed") and (
        keys != origin.shape[origin.axis] or _over_another_axis(origin, contraction, roles)
    )


def is_parameter(tensor: object) -> bool:
    """Whether a tensor is a parameter or a view of one."""
    if type(tensor) is nn.Parameter or getattr(tensor, "_is_param", False):  # isinstance takes 10 µs here
        return True
    base = tensor._base if isinstance(tensor, Tensor) else None
    return type(base) is nn.Parameter or getattr(base, "_is_param", False)


def may_sum_to_one(weights: Tensor, axis: int) -> bool:
    """Whether the first row along an axis could be weights: a quick look before the whole tensor is read."""
    if not weights.is_floating_point() or weights.shape[axis] < 2 or weights.numel() == 0:
        return False
    at = tuple(slice(None) if n == axis % weights.dim() else 0 for n in range(weights.dim()))
    total = float(weights.detach()[at].float().sum())
    return math.isnan(total) or total == 0.0 or abs(total - 1.0) < 0.05


def sums_to_one(weights: Tensor) -> bool:
    """Whether rows (…, k) are weights: none below 0, each sums to 1, to 0 (nothing allowed) or is NaN; one to 1."""
    wide = widened(weights.detach())
    total = wide.sum(-1)
    one = (total - 1.0).abs() <= _allowed(weights)
    right = one | (total == 0.0) | total.isnan()
    return bool(right.all()) and bool(one.any()) and not bool((wide < 0).any())


def at_most_one(weights: Tensor) -> bool:
    """Whether rows (…, k) of a softmax sum to 1 at most (less where a mask was applied after it)."""
    total = widened(weights.detach()).nan_to_num().sum(-1)
    return bool((total <= 1.0 + _allowed(weights)).all())


def _allowed(weights: Tensor) -> float:
    return max(AT_LEAST, TOLERANCE * torch.finfo(weights.dtype).eps * max(16, weights.shape[-1]))


def widened(tensor: Tensor) -> Tensor:
    """At least single precision."""
    return tensor if tensor.dtype == torch.float64 else tensor.float()


def may_be_map(origin: Origin, weights: Tensor) -> bool:
    """Whether the weights of a sample are shares over its keys; where not, the origin is told."""
    if origin.kind in ("softmax", "linear") and not at_most_one(weights):
        origin.taken, origin.reason = False, origin.reason or ELSEWHERE
    elif origin.kind == "linear" and (bool((weights < 0).any()) or not bool((weights.sum(-1) > 0.5).any())):
        origin.taken = False
    else:
        return True
    return False
