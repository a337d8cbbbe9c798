"""Attention whose weights are a product of one matrix for all and one factor for each key and feature.

An attention-free transformer (Zhai et al. 2021, arXiv 2105.14103) has y_td = Σ_s A_dts v_sd, A_dts in proportion to
e^{w_ts + k_sd}, computed as E (P ⊙ v) / (E P). Its map has one head a feature, A_dts = E_ts P_sd / Σ_s E_ts P_sd.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from inspector.engine.attention.written.contraction import Contraction, Operand

TOO_MANY = "one map for each feature of every sequence would be too large"
REMEMBERED = 4
MOST_WEIGHTS = 1 << 26
NEAR = 1e-3
"""By how much, beside itself, the divisor may differ from the sum of the weights (a small number that is added)."""
Apart = Callable[[Tensor], tuple[Tensor, Tensor] | None]
"""The factors of a product, that which is an exponential first; None for other tensors."""


@dataclass(slots=True)
class Factored:
    """Products of a matrix and P ⊙ v, by the identity of the result."""

    sums: dict[int, tuple[weakref.ref[Tensor], Contraction, Tensor, Tensor]] = field(default_factory=dict)

    def knows(self, tensor: Tensor) -> bool:
        """Whether a tensor is such a product."""
        known = self.sums.get(id(tensor))
        return known is not None and known[0]() is tensor

    def summed(self, contraction: Contraction, out: Tensor, apart: Apart) -> None:
        """A sum of products of which one operand may be P ⊙ v."""
        for one in (contraction, contraction.swapped()):
            parts = apart(one.right.tensor)
            if parts is not None:
                self.sums[id(out)] = weakref.ref(out), one, *parts
                if len(self.sums) > REMEMBERED:
                    self.sums.pop(next(iter(self.sums)))
                return

    def divided(self, source: object, by: object, out: Tensor) -> Contraction | str | None:
        """E (P ⊙ v) divided by E P: the sum of weights and values that it is, or why it is not shown; None for other
        quotients."""
        known = self.sums.get(id(source))
        if known is None or known[0]() is not source or not isinstance(by, Tensor):
            return None
        _, given, power, values = known
        roles, shape = given.roles(), given.right.tensor.shape
        if roles is None or len(roles.keys) != 1 or not roles.features or len(given.out.axes) != out.dim():
            return None
        letters = given.out.axes + roles.keys
        if math.prod(max(given.left.size(axis), given.right.size(axis)) for axis in letters) > MOST_WEIGHTS:
            return TOO_MANY
        left, wide = given.left, power.detach().expand(shape)
        weights = torch.einsum(f"{left.axes},{given.right.axes}->{letters}", left.tensor.detach(), wide)
        divisor = by.detach().expand(out.shape)
        total = weights.sum(-1)
        if bool(((total - divisor).abs() > NEAR * total.abs()).any()):
            return None
        rest = "".join(axis for axis in letters if axis not in roles.keys + roles.queries)
        order = rest + roles.queries + roles.keys
        laid = Operand(Operand(weights / divisor[..., None], letters).ordered(order).contiguous(), order)
        right = Operand(values.expand(shape), given.right.axes)
        return Contraction.of(laid, right, Operand(out, given.out.axes))
