"""Has a gradient vanished, or does the loss not depend on so early an input? Influence beside gradient, by lag."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.analysis.verdict import Verdict
from inspector.records import counted

Array = npt.NDArray[Any]
SIGNIFICANT = 0.05
"""The loss is lower with the past than without where chance alone does that in fewer than 1 case of 20."""
GAIN = 0.1
"""A loss that is lower by more than this share, and not significantly, may have come from too few sequences."""
SAID: dict[bool | None, str] = {
    True: "is lower with the past", False: "is no better than without the past", None: "may or may not need the past",
}  # fmt: skip
DECIDES = "a checkpoint with a lower loss, or a task that is known to need the past, decides"
INFLUENTIAL, VANISHED, EXPLODED = 0.05, 1e-3, 1e3
"""Shares of the value at the reference lag: from 5 % on an influence counts; a gradient below 10⁻³ has vanished and one
above 10³ has exploded. Three powers of ten are far outside the spread of gradients that train well (about one); a model
whose gradient falls by 10⁻³ over the whole task and still learns it would wrongly be called vanished."""


@dataclass(frozen=True, slots=True)
class Past:
    """Mean loss with the past as it was and with it replaced at random, the p of the first being no better, and how
    many losses were left out because they are NaN or infinite.

    NaN where it was not measured.
    """

    with_past: float = math.nan
    without: float = math.nan
    p: float = math.nan
    left_out: float = math.nan

    @classmethod
    def read(cls, scalar: Callable[[str], float]) -> Past:
        """From a function that gives a scalar by its name."""
        names = ("loss_with_past", "loss_without_past", "past_p", "past_left_out")
        return cls(*(scalar(f"input:influence/{name}") for name in names))

    @property
    def not_finite(self) -> str:
        """What is said of losses that are NaN or infinite; "" where none is."""
        if self.left_out > 0:
            many = int(self.left_out)
            return f"{many:,} {'loss' if many == 1 else 'losses'} with a past, NaN or infinite, left out"
        broken = math.isfinite(self.with_past) and not math.isfinite(self.without)
        return "with another past the loss is NaN or infinite" if broken else ""

    @property
    def useful(self) -> bool | None:
        """Whether the loss is lower with the past; None where that was not measured, or too few losses decide it."""
        if self.p <= SIGNIFICANT:
            return True
        gained = (self.without - self.with_past) / abs(self.without) if self.without else 0.0
        return False if gained <= GAIN else None

    @property
    def losses(self) -> str:
        """Both losses and p, in brackets."""
        return f"({self.with_past:.3g} with it, {self.without:.3g} with another, p = {self.p:.2g})"


def influence_verdict(
    influence: Array, gradient: Array | None, reference: int, reaches: tuple[float, float], past: Past = Past()
) -> Verdict:
    """The verdict on the curves (lag,): "independent", "unknown", "exploded", "vanished", "kept", "natural" or
    "not learned", which takes the place of "natural" and "independent" where the loss is no better than without the
    past: a model that failed to learn depends on little, too. "unknown" too where too few losses decide that.

    `reference` is the lag that shares refer to; a gradient has exploded only at a lag beyond it: that of the last
    inputs is often far larger than that of an early one on which the loss depends. `reaches` are the longest lags that
    both reach, NaN for none: of the influence, the longest at which it is at least 5 % by two standard errors and from
    enough losses. Lags after it at which it is 5 % without that are named as uncertain. Where a loss is NaN or
    infinite, "natural" and "independent" are "unknown" as well.
    """
    verdict = _of_curves(influence, gradient, reference, reaches)
    verdict = Verdict(verdict.word, verdict.sentence + _uncertain(influence, reference, reaches[0]), verdict.numbers)
    if not past.not_finite:
        return _with_the_past(verdict, reaches, past)
    if verdict.word in ("natural", "independent"):
        verdict = Verdict("unknown", f"not known whether {verdict.sentence}", verdict.numbers)
    verdict = _with_the_past(verdict, reaches, past)
    return Verdict(verdict.word, f"{verdict.sentence}; {past.not_finite}", verdict.numbers)


def _uncertain(influence: Array, reference: int, far: float) -> str:
    """What is said of the lags after the longest certain one whose influence is large all the same; "" of none."""
    if math.isnan(far) or not influence[reference] > 0:
        return ""
    felt = influence / influence[reference]
    lags = [int(lag) for lag in np.flatnonzero(felt >= INFLUENTIAL) if lag > far]
    if not lags:
        return ""
    which = f"lag {lags[0]}" if len(lags) == 1 else f"{len(lags)} lags from {lags[0]} to {lags[-1]}"
    most = max(lags, key=lambda lag: felt[lag])
    return (
        f"; uncertain at {which} (up to {amount(felt[most])} of lag {reference}, but less than two standard errors "
        "above 5 %, or from too few losses)"
    )


def _with_the_past(verdict: Verdict, reaches: tuple[float, float], past: Past) -> Verdict:
    """The verdict on the curves, and what another past does to the loss."""
    if math.isnan(past.p):
        return verdict
    numbers = {**verdict.numbers, "past_p": past.p}
    told = f"the loss {SAID[past.useful]} {past.losses}"
    if past.useful or verdict.word not in ("natural", "independent"):
        return Verdict(verdict.word, f"{verdict.sentence}; {told}", numbers)
    far, flowing = ("none" if math.isnan(reach) else str(int(reach)) for reach in reaches)
    reached = f"influence ≥ 5 % up to lag {far}, gradient ≥ 10⁻³ up to lag {flowing}"
    if past.useful is None:
        return Verdict("unknown", f"natural or not learned: {told}; {reached}; more sequences decide", numbers)
    sentence = f"not learned: {told}, so whether it is needed is open; {reached}; {DECIDES}"
    return Verdict("not learned", sentence, numbers)


def _of_curves(influence: Array, gradient: Array | None, reference: int, reaches: tuple[float, float]) -> Verdict:
    """The verdict on the curves alone."""
    far, flowing = reaches
    without = _without_a_reach(influence, reference, far)
    if without is not None:
        return without
    at, lag = f"of lag {reference}", int(far)
    felt = influence / influence[reference]
    numbers = {"influence_reach": far, "gradient_reach": flowing}
    if gradient is None or not np.isfinite(gradient[reference]):
        why = f" (influence ≥ 5 % {at}); there is no gradient to compare"
        if gradient is not None:
            why = f"; the gradient is NaN or infinite at lag {reference}"
        return Verdict("unknown", f"the loss depends on inputs {counted(lag, 'step')} back{why}", numbers)
    share = gradient / gradient[reference] if gradient[reference] > 0 else np.zeros_like(gradient)
    grown = np.where(np.arange(len(share)) > reference, share, 0.0)
    if (grown > EXPLODED).any():
        return _exploded(grown, felt, at, numbers)
    if math.isnan(flowing) or lag > flowing:
        reached = "nowhere" if math.isnan(flowing) else counted(int(flowing), "step")
        sentence = (
            f"vanished: the loss still depends on inputs {counted(lag, 'step')} back "
            f"(influence {amount(felt[lag])} {at}), where the gradient is {power(share[lag])} {at}; "
            f"it reaches {reached} (≥ 10⁻³)"
        )
        return Verdict("vanished", sentence, numbers)
    if lag >= len(influence) - 1 - len(influence) // 20:
        sentence = (
            f"nothing has vanished: {counted(lag, 'step')} back the influence is still {amount(felt[lag])} {at}, "
            f"the gradient {amount(share[lag])}"
        )
        return Verdict("kept", sentence, numbers)
    sentence = (
        f"natural: the loss depends on inputs up to {counted(lag, 'step')} back (influence ≥ 5 % {at}), "
        f"the gradient reaches {int(flowing)} (≥ 10⁻³)"
    )
    return Verdict("natural", sentence, numbers)


def _without_a_reach(influence: Array, reference: int, far: float) -> Verdict | None:
    """The verdict where no reach of the influence is known, or the loss depends on nothing; else None."""
    if not influence[reference] > 0:
        # lag 0 is measured wherever a loss is, other lags may have no pair of steps: NaN says nothing there
        if math.isnan(influence[reference]) or math.isnan(influence[0]):
            return Verdict("unknown", "not known whether the loss depends on the inputs: the influence is NaN")
        return Verdict("independent", "the loss does not depend on the inputs at all")
    if math.isnan(far):
        unsure = "its standard error is half of it or more wherever it is a number"
        why = "the influence is NaN" if math.isnan(influence[0]) else unsure
        return Verdict("unknown", f"not known how far back the loss depends on the inputs: {why}")
    return None


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
