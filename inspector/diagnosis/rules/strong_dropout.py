"""Dropout that leaves next to nothing of what it is given."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from inspector.analysis.clipping import percent
from inspector.analysis.loss_trend import hardly_falls, is_flat
from inspector.diagnosis.rule import PART, RULES, Limit, Run, Scope, Trust
from inspector.diagnosis.series import listed, longest, the_only, trend_along
from inspector.records import Finding
from inspector.records.run import Severity

SHARE, P = 0.02, 0.05
"""As for plateau: less of a fall is none, or one in an order that chance makes so often."""


class StrongDropout:
    """Reads the share that dropout modules drop, and whether the loss falls.

    A warning where the loss hardly falls, else information. Counter-example: dropout of whole inputs on purpose, as
    masked modelling does; very wide layers, of which a twentieth is still much.
    """

    id = "IN420"
    untried = "the share of dropout is in the model's code"
    title = "Strong dropout"
    summary = "A dropout module drops nearly all of what it is given."
    trust: Trust = "descriptive"
    scope: Scope = "training"
    reads = ("series",)
    needs = ()
    limits = (
        Limit(
            "share",
            0.8,
            "UMLAUT (CHI 2021) tells from 0.5 on, which is usual in wide layers; a judgement.",
            within=PART,
            below="strong",
        ),
        Limit("strong", 0.9, "From here on it is a warning where the loss hardly falls; a judgement.", within=PART),
        Limit(
            "kept",
            0.5,
            "A loss that falls below so much of its first block is learned all the same; a judgement.",
            within=PART,
        ),
    )
    reference = "Srivastava et al. 2014, section 7.3: hidden units are best kept with p of 0.4 to 0.8"

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """At most one."""
        known: Any = run.training().get("dropout") or {}
        shares = {str(name): float(one) for name, one in known.items() if one >= run.limit("share")}
        if not shares:
            return
        loss = longest(run, "loss")
        trend = trend_along(loss)
        stays = trend is not None and (hardly_falls(trend) or is_flat(trend, SHARE, P))
        if trend is not None and not stays:
            stays = trend.first > 0 and trend.last > run.limit("kept") * trend.first
        worst = max(shares.values())
        severity: Severity = "warning" if stays and worst >= run.limit("strong") else "info"
        told = "" if trend is None else f"; the loss went from {trend.first:.4g} to {trend.last:.4g}"
        yield Finding(
            rule="strong-dropout", severity=severity, place=the_only(list(shares)), places=tuple(shares),
            message=f"{listed(list(shares))} drop{'s' * (len(shares) == 1)} {percent(worst)} of what "
            f"{'it is' if len(shares) == 1 else 'they are'} given in training, and multipl"
            f"{'ies' if len(shares) == 1 else 'y'} the rest by {1 / max(1 - worst, 1e-9):.3g}{told}",
            evidence=() if loss is None else (loss.channel,),
            sure="the share is exact; that it is what keeps the loss up is likely, not shown",
            unless="whole inputs are dropped on purpose, or the loss of training is meant to be far above that of use",
            remedy="Begin with 0.1 to 0.5; where p was meant as the share that is kept, it is 1 − p here.",
            code="nn.Dropout(0.1)",
        )  # fmt: skip


RULES.register("strong-dropout")(StrongDropout())
