"""Heads whose attention collapses over the iterations of a training that suffers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from inspector.analysis.loss_trend import LEAST, Trend, has_risen, trend_of
from inspector.diagnosis.rule import PART, RULES, Limit, Run, Scope, Trust
from inspector.diagnosis.series import Array, Floats, Table, listed, longest, table_of, trend_along
from inspector.records import Finding

ENTROPY, LOGIT = "modules:attention/entropy", "modules:attention/largest_logit"


STAYS = 5
"""Recorded iterations in a row that are below half of where a head began: a fall."""


@dataclass(frozen=True, slots=True)
class Fallen:
    """A head: its name, its entropy at its highest (the beginning, or a block) and at the end, and from which iteration
    on it was below half of that."""

    name: str
    highest: float
    last: float
    at: float
    trend: Trend


class EntropyFalls:
    """Reads the entropy of each head by iteration, beside the loss.

    Heads that find what they look for grow sharp too, and then the loss falls: so a collapse counts only where the loss
    rose for good or hardly fell. Counter-example: a loss that rises for another reason, with heads that are sharp
    because they have learned; the finding tells which came first.
    """

    id = "IN307"
    title = "Attention collapses during training"
    summary = "The entropy of heads falls to next to nothing while the loss rises or hardly falls."
    trust: Trust = "statistical"
    scope: Scope = "training"
    trends = True
    reads = ("series",)
    needs = ()
    limits = (
        Limit(
            "left",
            0.05,
            "Of a head's entropy at its highest block; the source has no number, so a judgement.",
            within=PART,
        ),
        Limit("p", 0.05, "As for diverged: a rank test over twenty blocks.", within=PART),
        Limit(
            "kept", 0.8, "A loss that keeps so much of its first block has learned little; a judgement.", within=PART
        ),
        Limit("rise", 0.5, "As for diverged: half of what had been gained is lost again."),
    )
    reference = "Zhai et al. 2023, arXiv 2303.06296 (entropy collapse)"

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """At most one: all heads that collapsed."""
        heads = table_of(run, ENTROPY)
        if heads is None or run.too_few(heads.points, LEAST):
            return
        loss = longest(run, "loss")
        trend = trend_along(loss)
        if loss is None or trend is None:
            return
        rose = has_risen(trend, run.limit("rise"), run.limit("p"))
        if not rose and not trend.last >= run.limit("kept") * min(trend.first, trend.began) > 0:
            return
        fallen = list(self._fallen(run, heads))
        if fallen:
            yield self._finding(run, fallen, heads.values.shape[1], trend, loss.channel, rose=rose)

    def _fallen(self, run: Run, heads: Table) -> Iterator[Fallen]:
        for n, name in enumerate(heads.names):
            x, y = _known(heads.iterations, heads.values[:, n])
            trend = trend_of(x, y)
            if trend is None:
                continue
            highest = max(float(y[0]), float(trend.blocks.max()))  # it may collapse at the first step
            low = trend.blocks <= run.limit("left") * highest
            if highest > 0 and low[-2:].all() and (low.all() or trend.falls < run.limit("p")):
                yield Fallen(name, highest, trend.last, _halved(x, y, highest), trend)

    def _finding(self, run: Run, fallen: list[Fallen], of: int, loss: Trend, channel: str, *, rose: bool) -> Finding:
        first = min(fallen, key=lambda one: one.at)
        suffers = (
            f"the loss rises from {loss.best:.4g}, its lowest around iteration {loss.lowest_at:,.0f}, to "
            f"{loss.last:.4g}" if rose
            else f"the loss hardly falls ({min(loss.first, loss.began):.4g} at the beginning, {loss.last:.4g} at the "
            "end)"
        )  # fmt: skip
        return Finding(
            rule="entropy-falls", severity="warning", place="",
            message=f"attention collapsed in {len(fallen)} of {of} heads, and {suffers}: the entropy of {first.name} "
            f"fell from {first.highest:.3g} to {first.last:.2g} nat, to less than half from iteration "
            f"{first.at:,.0f} on{_grown(run, first.name)}"
            + (f"; also {listed([one.name for one in fallen if one is not first])}" if len(fallen) > 1 else ""),
            evidence=(ENTROPY, *((LOGIT,) if LOGIT in run.channels else ()), channel), iterations=(int(first.at),),
            sure=f"medians of twenty blocks, of the first sample of each batch; p = {first.trend.falls:.2g} of as much "
            "order by chance",
            unless="the loss suffers for another reason, and these heads are sharp because they have learned",
            remedy="Normalise queries and keys (QK-norm) or use σReparam; or a smaller learning rate with warm-up.",
            code="q, k = F.rms_norm(q, q.shape[-1:]), F.rms_norm(k, k.shape[-1:])",
        )  # fmt: skip


def _known(x: Floats, y: Array) -> tuple[Floats, Floats]:
    """The points that are numbers, as float64."""
    kept = np.isfinite(x) & np.isfinite(y)
    return x[kept], y[kept].astype(np.float64)


def _halved(x: Floats, y: Floats, highest: float) -> float:
    """The first x from which STAYS points in a row are below half of the highest; the last where there is none."""
    low = np.lib.stride_tricks.sliding_window_view(y <= highest / 2, STAYS).all(axis=1)
    return float(x[int(low.argmax())]) if low.any() else float(x[-1])


def _grown(run: Run, head: str) -> str:
    """By how much the largest score of a head grew meanwhile; "" where that was not recorded."""
    table = table_of(run, LOGIT)
    if table is None or head not in table.names:
        return ""
    trend = trend_of(table.iterations, table.values[:, table.names.index(head)].astype(np.float64))
    return "" if trend is None else f", while its largest score went from {trend.first:.3g} to {trend.blocks[-1]:.3g}"


RULES.register("entropy-falls")(EntropyFalls())
