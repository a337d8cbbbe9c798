"""Scores of attention that keep growing over the iterations of a training: slopes with their spread, head by head."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from inspector.analysis.loss_trend import ABOVE, LEAST, NOISE, Trend, has_risen, trend_of
from inspector.analysis.rank_correlation import ordered_by_chance
from inspector.analysis.slope import Slope, slope_of
from inspector.diagnosis.rule import PART, RULES, Limit, Run, Scope, Trust
from inspector.diagnosis.series import Floats, Table, listed, longest, table_of, trend_along
from inspector.records import Finding

LOGIT, ENTROPY = "modules:attention/largest_logit", "modules:attention/entropy"


@dataclass(frozen=True, slots=True)
class Grown:
    """A head: its name, its largest score in the first block, in the highest and in the last ones; the slope from the
    first to the highest, and the x there; the probability of as much order by chance; whether the highest is one of the
    last two; and its entropy at its highest and at the end (NaN: not recorded)."""

    name: str
    first: float
    highest: float
    last: float
    slope: Slope
    until: float
    p: float
    goes_on: bool
    entropy: tuple[float, float]


class LogitsGrow:
    """Reads the largest score of each head by iteration, beside its entropy and the loss.

    Scores grow in every training that learns what to attend to. Told is what grows in order over the blocks up to the
    highest, to beyond what large trainings clip at, and stays there; it is a warning where the loss suffers and the
    heads have grown sharp with it, else information. Counter-example: scores of a row that share a large offset, which
    a softmax does not see: the entropy stays then, and it is no warning.
    """

    id = "IN309"
    title = "Scores of attention keep growing"
    summary = "The largest score of heads grows in order over a training, beyond what large trainings clip it at."
    trust: Trust = "statistical"
    scope: Scope = "training"
    trends = True
    reads = ("series",)
    needs = ()
    limits = (
        Limit("score", 100.0, "Kimi K2's QK-clip; in float32 a lead of 16 leaves other keys nothing."),
        Limit("times", 4.0, "Growth from the first block to the last ones, as for large scores between frames."),
        Limit("p", 0.05, "A rank test over twenty blocks; divided by the number of heads (Bonferroni).", within=PART),
        Limit("distance", 4.0, "Times the head's own spread within a block, as for the room of a loss that stays."),
        Limit("sharp", 0.5, "Of a head's entropy at its highest: what it lost by then; a judgement.", within=PART),
        Limit(
            "kept",
            0.8,
            "As for collapse: a loss that keeps so much of its first block has learned little.",
            within=PART,
        ),
        Limit("rise", 0.5, "As for diverged: half of what had been gained is lost again."),
    )
    reference = "Dehghani et al. 2023, arXiv 2302.05442; Wortsman et al. 2023, arXiv 2309.14322; slope: Sen 1968"

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """At most one: all heads whose scores grew."""
        scores = table_of(run, LOGIT)
        if scores is None or run.too_few(scores.points, LEAST):
            return
        grown = sorted(self._grown(run, scores), key=lambda one: -one.last)
        if grown:
            loss = longest(run, "loss")
            trend = trend_along(loss)
            suffers = "" if trend is None else self._suffers(run, trend)
            yield self._finding(run, grown, scores.values.shape[1], suffers, "" if loss is None else loss.channel)

    def _grown(self, run: Run, scores: Table) -> Iterator[Grown]:
        entropies = table_of(run, ENTROPY)
        for n, name in enumerate(scores.names):
            x, y = scores.iterations, scores.values[:, n].astype(np.float64)
            trend = trend_of(x, y)
            if trend is None:
                continue
            top = int(trend.blocks.argmax())
            rise, last = trend.blocks[: top + 1], float(np.median(trend.blocks[-2:]))
            first, p = float(rise[0]), ordered_by_chance(rise, falling=False)
            far = last >= run.limit("times") * first and last - first > run.limit("distance") * trend.spread
            slope = slope_of(trend.centres[: top + 1], rise)
            if far and last >= run.limit("score") and p < run.limit("p") / len(scores.names) and slope.low > 0:
                until, entropy = float(trend.centres[top]), _entropy(entropies, name)
                yield Grown(name, first, float(rise[-1]), last, slope, until, p, top >= len(trend.blocks) - 2, entropy)

    def _suffers(self, run: Run, loss: Trend) -> str:
        """What the loss does, where it suffers; "" where it does not."""
        if has_risen(loss, run.limit("rise"), run.limit("p")):
            return f"the loss rises from {loss.best:.4g}, its lowest, to {loss.last:.4g}"
        top, at = float(loss.blocks.max()), float(loss.centres[int(loss.blocks.argmax())])
        if top - loss.began > max(NOISE * loss.spread, ABOVE * abs(loss.began)):
            return f"the loss rises to {top:.4g} around iteration {at:,.0f}, above where it began ({loss.began:.4g})"
        began = min(loss.first, loss.began)
        if loss.last >= run.limit("kept") * began > 0:
            return f"the loss hardly falls ({began:.4g} at the beginning, {loss.last:.4g} at the end)"
        return ""

    def _finding(self, run: Run, grown: list[Grown], of: int, suffers: str, loss: str) -> Finding:
        sharp = [one for one in grown if one.entropy[1] <= run.limit("sharp") * one.entropy[0]]
        worst = (sharp or grown)[0]
        ill = bool(suffers and sharp)
        others = [one.name for one in grown if one is not worst]
        return Finding(
            rule="logits-grow", severity="warning" if ill else "info", place="",
            message=f"the largest score grows in {len(grown)} of {of} heads: that of {worst.name} from "
            f"{worst.first:.3g} to {worst.highest:.4g}, {_slope(worst.slope)}, {_goes_on(worst)}{_sharpened(worst)}"
            + (f"; {suffers}" if suffers else "; the loss does not suffer")
            + (f"; also {listed(others)}" if others else ""),
            evidence=(LOGIT, *((ENTROPY,) if ENTROPY in run.channels else ()), *((loss,) if loss else ())),
            sure="Theil–Sen slopes of medians of twenty blocks, of the first sample of each batch, with 95 %; p = "
            f"{worst.p:.2g} of as much order by chance",
            unless="all scores of a row share a large offset, which a softmax does not see"
            + ("; or the loss suffers for another reason" if ill else ""),
            remedy="Normalise queries and keys (QK-norm), clip by QK-clip or a soft cap; or a smaller learning rate "
            "with warm-up, or weight decay on what projects them.",
            code="q, k = F.rms_norm(q, q.shape[-1:]), F.rms_norm(k, k.shape[-1:])",
        )  # fmt: skip


def _entropy(table: Table | None, head: str) -> tuple[float, float]:
    """The entropy of a head at its highest (the beginning, or a block) and at the end; NaN where it is not known."""
    if table is None or head not in table.names:
        return float("nan"), float("nan")
    values: Floats = table.values[:, table.names.index(head)].astype(np.float64)
    trend = trend_of(table.iterations, values)
    if trend is None:
        return float("nan"), float("nan")
    return max(trend.began, float(trend.blocks.max())), trend.last


def _slope(one: Slope) -> str:
    return f"by {one.middle:.2g} an iteration ({one.low:.2g} to {one.high:.2g} with 95 %)"


def _goes_on(one: Grown) -> str:
    return "to the end" if one.goes_on else f"until iteration {one.until:,.0f}, and is {one.last:.4g} at the end"


def _sharpened(one: Grown) -> str:
    high, last = one.entropy
    return "" if np.isnan(high) else f"; its entropy went from {high:.3g} to {last:.2g} nat"


RULES.register("logits-grow")(LogitsGrow())
