"""Has a gradient vanished, or does the loss not depend on so early an input? Influence beside gradient, by lag."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.analysis.verdict import Verdict

Array = npt.NDArray[Any]
INFLUENTIAL, VANISHED, EXPLODED = 0.05, 1e-3, 1e3
"""Shares of the value at the reference lag: from 5 % on an influence counts; a gradient below 10⁻³ has vanished and one
above 10³ has exploded. Three powers of ten are far outside the spread of gradients that train well (about one); a model
whose gradient falls by 10⁻³ over the whole task and still learns it would wrongly be called vanished."""


def influence_verdict(
    influence: Array, gradient: Array | None, reference: int, reaches: tuple[float, float]
) -> Verdict:
    """The verdict on the curves (lag,): "independent", "unknown", "exploded", "vanished", "kept" or "natural".

    `reference` is the lag that shares refer to; `reaches` the longest lags that both reach, NaN for none.
    """
    far, flowing = reaches
    if not influence[reference] > 0 or math.isnan(far):
        return Verdict("independent", "the loss does not depend on the inputs at all")
    at, lag = f"of lag {reference}", int(far)
    felt = influence / influence[reference]
    numbers = {"influence_reach": far, "gradient_reach": flowing}
    if gradient is None or not np.isfinite(gradient[reference]):
        why = f" (influence ≥ 5 % {at}); there is no gradient to compare"
        if gradient is not None:
            why = f"; the gradient is NaN or infinite at lag {reference}"
        return Verdict("unknown", f"the loss depends on inputs {lag} steps back{why}", numbers)
    share = gradient / gradient[reference] if gradient[reference] > 0 else np.zeros_like(gradient)
    if (share > EXPLODED).any():
        return _exploded(share, felt, at, numbers)
    if math.isnan(flowing) or lag > flowing:
        reached = "nowhere" if math.isnan(flowing) else f"{int(flowing)} steps"
        sentence = (
            f"vanished: the loss still depends on inputs {lag} steps back (influence {amount(felt[lag])} {at}), where "
            f"the gradient is {power(share[lag])} {at}; it reaches {reached} (≥ 10⁻³)"
        )
        return Verdict("vanished", sentence, numbers)
    if lag >= len(influence) - 1 - len(influence) // 20:
        sentence = (
            f"nothing has vanished: {lag} steps back the influence is still {amount(felt[lag])} {at}, "
            f"the gradient {amount(share[lag])}"
        )
        return Verdict("kept", sentence, numbers)
    sentence = (
        f"natural: the loss depends on inputs up to {lag} steps back (influence ≥ 5 % {at}), "
        f"the gradient reaches {int(flowing)} (≥ 10⁻³)"
    )
    return Verdict("natural", sentence, numbers)


def _exploded(share: Array, felt: Array, at: str, numbers: dict[str, float]) -> Verdict:
    first = int(np.argmax(share > EXPLODED))
    last = int(np.flatnonzero(np.isfinite(share) & (share > EXPLODED))[-1:].max(initial=first))
    sentence = (
        f"exploded: {first} steps back the gradient passes 10³ {at}, {last} steps back it is {power(share[last])}; "
        f"the influence there is {amount(felt[last])} {at}"
    )
    return Verdict("exploded", sentence, {**numbers, "first_lag": float(first)})


def amount(share: float) -> str:
    """A share as a percentage of two digits, as a multiple where it is above 10."""
    if share >= 10:
        return f"{share:.2g} times that"
    return f"{100 * share:.2g} %" if share < 0.995 else f"{100 * share:.0f} %"


def power(share: float) -> str:
    """A share as the nearest power of ten; 0 and ∞ unchanged."""
    if share == 0 or not math.isfinite(share):
        return "0" if share == 0 else "∞"
    exponent = round(math.log10(share))
    return (
        f"10{str(exponent).translate(str.maketrans('-0123456789', '⁻⁰¹²³⁴⁵⁶⁷⁸⁹'))}" if exponent else "as large as that"
    )
