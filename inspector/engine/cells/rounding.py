"""The error that rounding may cause in the sums of a step: running error analysis.

The error of a gate is its slope times the error of its pre-activation, which is some roundings of the terms of the sum;
a part of the state that is carried over also carries its error from step to step. The h before each step is the
module's own and thus exact. Source: Higham (2002), Accuracy and Stability of Numerical Algorithms, ch. 3.
"""

from __future__ import annotations

from torch import Tensor

ROUNDINGS = 8
"""Roundings of a long sum, in units of the sum of the absolute values of its terms, that two kernels may differ by."""


def absolute_sums(x: Tensor, h: Tensor, w_ih: Tensor, w_hh: Tensor, *biases: Tensor | None) -> Tensor:
    """Σ of the absolute values of all terms of the pre-activations: x (t, b, i), h (t, b, r) → (t, b, g·h)."""
    sums = x.abs() @ w_ih.abs().T + h.abs() @ w_hh.abs().T
    return sums + sum(bias.abs() for bias in biases if bias is not None)
