"""A learning rate beside the critical one, along the step that the training's own optimizer makes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from inspector.analysis.before_training.trial import EDGE, SHORT, rate_length, said_of_rate
from inspector.analysis.loss_trend import has_risen, trend_of
from inspector.diagnosis.rule import PART, RULES, Limit, Run, Scope, Trust
from inspector.diagnosis.series import Array, Floats, Line, clips, longest, norms_beside_clipping
from inspector.records import Finding
from inspector.records.run import Severity

OWN, RATE, GROWS = (f"trial/learning_rate/{one}" for one in ("own", "rate", "grows"))
CHANNEL = f"model:{OWN}"
SAID = {None: "", True: "; the loss is no lower than it began", False: "; the loss falls all the same"}


@dataclass(frozen=True, slots=True)
class Steps:
    """The frames (n,) in which it was tried, the learning rates (n,), the critical ones and the lengths of the steps in
    critical ones: 0 where none raises the loss, infinite where the smallest one does. grows: how many times as long
    later steps become by momentum alone, which one step does not show."""

    frames: list[int]
    rates: list[float]
    critical: list[float]
    lengths: Floats
    grows: list[float]

    def sentence(self, at: int) -> str:
        """What was found in one of them."""
        return said_of_rate(self.rates[at], self.critical[at])


class CriticalRate:
    """Reads, in every frame that has them, the learning rate and the one at which the step would raise the loss.

    The first step that was tried decides, before a training the only one, or more than half of them. Where the loss of
    the training falls all the same it is information: at the edge of stability, and where the noise of batches is all
    that is left, steps are too long now and then. Counter-example: a warm-up begins far below the critical rate.
    """

    id = "IN207"
    title = "The learning rate beside the critical one"
    summary = "Steps of the training's own optimizer are longer than what lowers the loss, or far shorter."
    trust: Trust = "counterfactual"
    scope: Scope = "training"
    reads = ("trial",)
    needs = ("trial/learning_rate",)
    limits = (
        Limit("long", EDGE, "The edge: a longer step raises the loss of the batch from which it was made."),
        Limit(
            "short",
            SHORT,
            "Measured on Adam: a thousandth learns next to nothing, 0.3 to 0.5 learns fast.",
            below="long",
        ),
        Limit("often", 0.5, "Of the steps that were tried later in a training: more than so many.", within=PART),
        Limit("share", 0.02, "As for plateau: less of a fall of the loss is none.", within=PART),
        Limit("p", 0.05, "As for diverged: a rank test of the loss over twenty blocks.", within=PART),
    )
    reference = "Lewkowycz et al. 2020, arXiv 2003.02218; critical sharpness: arXiv 2601.16979"

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """At most one: steps that are too long, or all far too short."""
        if CHANNEL not in run.channels:
            return  # no optimizer was known
        steps = _steps(run)
        if not len(steps.lengths):
            return
        loss = longest(run, "loss")
        suffers = None if loss is None else _suffers(loss, run.limit("share"), run.limit("p"))
        evidence = (CHANNEL,) if loss is None else (CHANNEL, loss.channel)
        long = steps.lengths > run.limit("long")
        if long[0] or long.mean() > run.limit("often"):
            yield self._long(run, steps, long, suffers, evidence)
        elif bool((steps.lengths < run.limit("short")).all() and np.isfinite(steps.critical).any()):
            yield self._short(steps, evidence)

    def _long(
        self, run: Run, steps: Steps, long: Array, suffers: bool | None,
        evidence: tuple[str, ...],
    ) -> Finding:  # fmt: skip
        norms = norms_beside_clipping(run)
        clipped = norms is not None and clips(norms)  # then its steps may be shorter than the copy's
        severity: Severity = "info" if suffers is False or clipped else "warning"
        at = int(long.argmax())
        return Finding(
            rule="critical-rate", severity=severity, place="model",
            message=_lower(steps.sentence(at)) + _counted(int(long.sum()), len(long), "too long", steps.lengths[-1])
            + SAID[suffers],
            evidence=evidence,
            sure="tried on the batch that was given, with a copy of the optimizer and its moments; nothing was changed",
            unless="the loop clips the gradient, which the copy does not know, or this batch is far from the others",
            remedy=f"Lower the learning rate to {_part(steps.grows[at])}, or warm it up to where it is.",
            code=_third(steps.critical[at], steps.grows[at]),
        )  # fmt: skip

    def _short(self, steps: Steps, evidence: tuple[str, ...]) -> Finding:
        at, count = int(np.argmax(steps.lengths)), len(steps.lengths)
        return Finding(
            rule="critical-rate", severity="info", place="model",
            message=_lower(steps.sentence(at)) + _counted(count, count, "so short", steps.lengths[-1]),
            evidence=evidence,
            sure="tried on the batch that was given, with a copy of the optimizer and its moments; nothing was changed",
            unless="a warm-up begins here or the schedule ends, or batches are so noisy that steps must be short",
            remedy=f"Raise the learning rate towards {_part(steps.grows[at])} where the loss falls too slowly.",
            code=_third(steps.critical[at], steps.grows[at]),
        )  # fmt: skip


def _steps(run: Run) -> Steps:
    """Of each frame with both numbers, in order; a frame whose own numbers are damaged is left out."""
    read = ({one.frame: one.value for one in run.scalars if one.name == name} for name in (OWN, RATE, GROWS))
    own, rate, grows = read
    frames = sorted(n for n in own.keys() & rate.keys() if run.revision(CHANNEL, n))
    frames = [n for n in frames if np.isfinite(rate[n]) and rate[n] > 0]
    lengths = np.array([rate_length(rate[n], own[n]) for n in frames], np.float64)
    times = [max(1.0, grows.get(n, 1.0)) for n in frames]  # captures of earlier versions do not say
    return Steps(frames, [rate[n] for n in frames], [own[n] for n in frames], lengths, times)


def _suffers(loss: Line, share: float, p: float) -> bool | None:
    """Whether a loss is no lower than its first point, or rose for good; None where there are too few to tell."""
    trend = trend_of(loss.x, loss.y)
    if trend is None:
        return None
    # the first point: a block would hide a jump in the first steps
    return trend.began - trend.last <= share * abs(trend.began) or has_risen(trend, 0.5, p)


def _counted(found: int, of: int, what: str, newest: float) -> str:
    """How many of the steps that were tried; and the length of the newest, which is what a reader sees first."""
    return "" if of == 1 else f" ({found} of {of} steps that were tried are {what}; the newest has {newest:.2g} times)"


def _part(grows: float) -> str:
    """To which part of the critical rate, in words. Momentum repeats each step, so that one step counts many times."""
    if grows <= 1:
        return "a third of the critical one"
    return (
        f"1/{3 * grows:.3g} of the critical one: momentum makes later steps {grows:.3g} times as long as this first "
        "one while the gradient stays as it is, and a third of the critical rate has to be left of that"
    )


def _third(critical: float, grows: float) -> str:
    """The line that sets a third of the critical rate, less what momentum adds; "" where there is none."""
    known = np.isfinite(critical) and critical > 0
    return f"optimizer.param_groups[0]['lr'] = {critical / (3 * grows):.2g}" if known else ""


def _lower(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]


RULES.register("critical-rate")(CriticalRate())
