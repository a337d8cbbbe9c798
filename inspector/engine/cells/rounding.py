"""How far off rounding may put the sums in a step: running error analysis.

Every gate is off by its slope times what its pre-activation is off by, and that is some roundings of the terms that it
sums; a part that is carried takes its error along from step to step. The h before each step is the module's own and
thus exact. Source: Higham (2002), Accuracy and Stability of Numerical Algorithms, ch. 3.
"""

from __future__ import annotations

from torch import Tensor

ROUNDINGS = 8
"""Roundings of a long sum, in units of the sum of the absolute values of its terms, that two kernels may differ by."""


def absolute_sums(x: Tensor, h: Tensor, w_ih: Tensor, w_hh: Tensor, *biases: Tensor | None) -> Tensor:
    """Σ of the absolute values of all terms of the pre-activations: x (t, b, i), h (t, b, r) → (t, b, g·h)."""
    sums = x.abs() @ w_ih.abs().T + h.abs() @ w_hh.abs().T
    return sums + sum(bias.abs() for bias in biases if bias is not None)
