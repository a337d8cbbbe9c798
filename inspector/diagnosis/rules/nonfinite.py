"""NaN or infinity in what was captured: exact, no threshold."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from inspector.capture.curves import Curve, curves_of, points_of
from inspector.diagnosis.rule import RULES, Run
from inspector.records import Channel, Finding

SCORES = "health/scores"
EACH = "parameters:health/gradient/"
REMEDY = (
    "Go to the first step and the earliest place where it happens: what comes after is its consequence. Usual causes: "
    "a step size that is too large, a division by 0, the logarithm of 0, float16."
)
REMEDY_OF_SERIES = (
    "What happened in that iteration, and in the one before it, came first: its batch, its learning rate, its largest "
    "gradient. Usual causes: a step size that is too large, a division by 0, the logarithm of 0, float16."
)
COUNTS = "gradient/non_finite"
"""A series that is finite itself, and counts what is not."""
GRAVE = ("loss", "validation loss", "gradient norm")


class NonFinite:
    """Reads the counts of every captured tensor.

    Scores of −∞ are not an error: they exclude a class.
    """

    title = "Values that are not finite"
    summary = "A tensor holds NaN or infinity."
    reads = ("health", "series")

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """One for each tensor, with the first step at which it happens."""
        for channel in run.channels.values():
            if channel.name.startswith(EACH):
                continue  # the gradients of all parameters together were counted already
            if channel.kind == "health" and channel.dims == ("count",) and run.revision(channel.name, frame):
                yield from self._of(channel, run, frame)

    def over_training(self, run: Run) -> Iterable[Finding]:
        """One for each series, or table of them, with the first iteration at which it happens."""
        series: dict[str, list[Curve]] = {}
        for curve in curves_of(run):
            if curve.channel.kind == "series":
                series.setdefault(curve.channel.name, []).append(curve)
        for curves in series.values():
            yield from _over_training(run, curves)

    def _of(self, channel: Channel, run: Run, frame: int) -> Iterable[Finding]:
        table = run.array(channel.name, frame)
        if np.ma.getmaskarray(table).any():
            return  # the counts are not known; `diagnose` tells that they are damaged
        counts = dict(zip(channel.labels["count"], map(int, table), strict=True))
        infinite = counts["+inf"] + (0 if channel.signal == SCORES else counts["-inf"])
        if not counts["nan"] and not infinite:
            return
        every, first = sum(counts[name] for name in counts if name != "first_bad_step"), counts["first_bad_step"]
        parts = [f"{count:,} {what}" for count, what in ((counts["nan"], "NaN"), (infinite, "infinite")) if count]
        what, at = channel.signal.removeprefix("health/"), f", first at step {first}" if first >= 0 else ""
        yield Finding(
            rule="nonfinite", severity="error", place=channel.place,
            message=f"{what}: {' and '.join(parts)} of {every:,} values{at}",
            evidence=(channel.name,), steps=(first,) if first >= 0 else (), remedy=REMEDY,
        )  # fmt: skip


def _over_training(run: Run, curves: Sequence[Curve]) -> Iterable[Finding]:
    """The columns of one channel together. A curve that was not logged as a number everywhere (NaN in a metric that is
    computed now and then) is a warning; losses and what is measured by parameter are errors."""
    channel, bad, total, first = curves[0].channel, 0, 0, (math.inf, "")
    for curve in curves:
        points = points_of(run, curve)
        wrong = points.known & ((points.y > 0) if channel.signal == COUNTS else ~np.isfinite(points.y))
        total += int(points.known.sum())
        bad += int(wrong.sum())
        if wrong.any():
            first = min(first, (float(np.nanmin(points.x[wrong], initial=math.inf)), curve.name))
    if not bad:
        return
    at = f", first at iteration {first[0]:.15g}" if math.isfinite(first[0]) else ""
    whose = f" ({first[1]})" if len(curves) > 1 else ""
    what = "points that count entries that are not finite" if channel.signal == COUNTS else "points that are not finite"
    grave = channel.place == EACH.partition(":")[0] or any(curve.role in GRAVE for curve in curves)
    yield Finding(
        rule="nonfinite", severity="error" if grave else "warning", place=channel.place,
        message=f"{channel.title or channel.signal}: {bad:,} of {total:,} {what}{at}{whose}", evidence=(channel.name,),
        remedy=REMEDY_OF_SERIES,
    )  # fmt: skip


RULES.register("nonfinite")(NonFinite())
