"""Verdicts on a step Jacobian or a recurrent matrix from its eigenvalues and singular values."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.analysis.verdict import Verdict

Array = npt.NDArray[Any]


def eigenvalue_verdict(values: Array, singular: Array) -> Verdict:
    """Eigenvalues (k, 2), real and imaginary part, beside the unit circle: "contracting" or "expanding".

    `singular` are the singular values that are known, largest first; it may be empty. One step may stretch (σ₁ > 1)
    while all eigenvalues lie inside: the sequence of steps decides then, which the spectrum of one does not show.
    """
    moduli = np.hypot(values[:, 0], values[:, 1])
    outside = int((moduli > 1).sum())
    ends = [f"σ₁ = {singular[0]:.3g}", f"smallest shown {singular[-1]:.3g}"] if len(singular) else []
    parts = [f"ρ = {moduli.max():.3g}", *ends, f"{outside} of {len(values)} eigenvalues outside the unit circle"]
    word = "expanding" if outside else "contracting"
    return Verdict(word, ", ".join(parts), {"radius": float(moduli.max()), "outside": float(outside)})


def bound_verdict(bound: float) -> Verdict:
    """The bound γσ₁(W) of a plain recurrence: "vanishing" below 1, else "undecided".

    Below 1 gradients must vanish; above it they may explode, which is necessary and not sufficient.
    Source: Pascanu, Mikolov & Bengio 2013.
    """
    below = bound < 1
    what = "< 1: gradients must vanish" if below else "≥ 1: gradients may explode (necessary, not sufficient)"
    return Verdict("vanishing" if below else "undecided", f"γσ₁(W) = {bound:.3g} {what}", {"bound": bound})
