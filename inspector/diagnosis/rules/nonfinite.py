"""NaN or infinity in what was captured: exact, no threshold."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from inspector.diagnosis.rule import RULES, Run, Scope, Trust
from inspector.records import Channel, Finding

SCORES = "health/scores"
EACH = "parameters:health/gradient/"
REMEDY = (
    "Go to the first step and the earliest place where it happens: what comes after is its consequence. Usual causes: "
    "a step size that is too large, a division by 0 (add an ε below), the logarithm of 0, float16."
)


class NonFinite:
    """Reads the counts of every captured tensor.

    Scores of −∞ are not an error: they exclude a class.
    """

    id = "IN101"
    title = "Values that are not finite"
    summary = "A tensor holds NaN or infinity."
    trust: Trust = "exact"
    scope: Scope = "frame"
    reads = ("health",)
    needs = ()
    limits = ()
    reference = "IEEE 754: NaN passes through every further operation"
    untried = "which operation made the first number that is not finite is shown, and only its code can be changed"

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """One for each tensor, with the first step at which it happens."""
        for channel in run.channels.values():
            if channel.name.startswith(EACH):
                continue  # the gradients of all parameters together were counted already
            if channel.kind == "health" and channel.dims == ("count",) and run.revision(channel.name, frame):
                yield from self._of(channel, run, frame)

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
            sure="exact: every value was looked at", code="torch.autograd.set_detect_anomaly(True)",
            unless="they are meant to be so, and nothing later reads them (scores that are masked are not counted)",
        )  # fmt: skip


RULES.register("nonfinite")(NonFinite())
