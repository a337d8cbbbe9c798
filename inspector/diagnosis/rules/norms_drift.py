"""Norms of single layers that go on drifting while the loss gets worse: slope tests over medians of blocks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from inspector.analysis.loss_trend import BLOCKS, LEAST, Trend, has_risen, trend_of
from inspector.analysis.rank_correlation import ordered_by_chance
from inspector.diagnosis.rule import PART, RULES, Limit, Run, Scope, Trust
from inspector.diagnosis.series import Floats, Line, longest, table_of, trend_along
from inspector.records import Finding, counted

WEIGHTS, OUTPUTS, STATES = "parameters:weight/norm", "modules:activation/mean_abs", "modules:state/norm"
WHAT = {WEIGHTS: "the norm of {}", OUTPUTS: "the size of what {} gives", STATES: "the norm of the state of {}"}
HALF = BLOCKS // 2
"""The second half of a training is looked at: in the first one all norms go from where they were drawn to where they
are needed."""


@dataclass(frozen=True, slots=True)
class Drift:
    """A layer: its channel and name, by which factor it changed over the second half and its spread (the median
    absolute deviation within blocks, in natural logarithms), the probability of as much order by chance, and from which
    iteration on."""

    channel: str
    name: str
    factor: float
    spread: float
    p: float
    since: float

    @property
    def size(self) -> float:
        """How far it went, up or down, in natural logarithms."""
        return abs(float(np.log(self.factor)))


class NormsDrift:
    """Reads the norms of weights (scales of normalisation too), outputs and states by layer, beside the loss.

    Norms grow in every training that learns, and nothing is wrong with that: it is told only where the loss no longer
    falls, and a warning only where it rises for good, but not beyond that of the untrained net (there steps are too
    large, and norms follow). How far is far depends on the layer: its own spread, and chance among so many layers.
    Counter-example: data that become harder by themselves, for which larger weights are needed.
    """

    id = "IN308"
    title = "Norms of layers drift"
    summary = "The norm of a layer keeps growing or shrinking in order while the loss rises or stands still."
    trust: Trust = "statistical"
    scope: Scope = "training"
    trends = True
    reads = ("series",)
    needs = ()
    limits = (
        Limit(
            "p",
            0.05,
            "As for diverged: a rank test over blocks; divided by the number of layers (Bonferroni).",
            within=PART,
        ),
        Limit("factor", 1.5, "The step of weights before a normalisation then counts 2.25 times less (van Laarhoven)."),
        Limit("distance", 4.0, "Times the layer's own spread within a block, as for the room of a loss that stays."),
        Limit("share", 0.02, "As for plateau: a loss that falls by less in the second half stands still.", within=PART),
        Limit("rise", 0.5, "As for diverged: half of what had been gained is lost again."),
        Limit("began", 1.1, "Times the first loss, as for plasticity: beyond it a training diverges."),
    )
    reference = "van Laarhoven 2017, arXiv 1706.05350; Lyle et al. 2024, arXiv 2407.01800 (norms and plasticity)"

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """At most one, of all layers that drift."""
        points = [int((y > -np.inf).sum()) for *_names, y in _columns(run)]  # one column at a time: there are many
        if not points or run.too_few(max(points), LEAST):
            return
        loss = longest(run, "loss")
        trend = trend_along(loss)
        if loss is None or trend is None or _falls(trend, run):
            return
        moved = [one for one in (_drift(*column) for column in _columns(run)) if one is not None]
        drifts = [one for one in moved if self._drifts(run, one, len(moved))]
        if drifts:
            yield self._finding(run, sorted(drifts, key=lambda one: -one.size), moved, loss, trend)

    def _drifts(self, run: Run, one: Drift, of: int) -> bool:
        far = max(float(np.log(run.limit("factor"))), run.limit("distance") * one.spread)
        return one.p * of <= run.limit("p") and one.size >= far

    def _finding(self, run: Run, drifts: list[Drift], moved: list[Drift], loss: Line, trend: Trend) -> Finding:
        worst, alike = drifts[0], [one.factor for one in moved if one.channel == drifts[0].channel]
        rose = has_risen(trend, run.limit("rise"), run.limit("p"))
        began = float(loss.y[np.isfinite(loss.y)][0])
        warns = rose and trend.last <= run.limit("began") * began
        suffers = f"rises from {trend.best:.4g} to {trend.last:.4g}" if rose else "no longer falls"
        usual = f" (median of {len(alike)} layers: {np.median(alike):.2g})" if len(alike) > 1 else ""
        more = f"; {counted(len(drifts) - 1, 'curve')} more so" if len(drifts) > 1 else ""
        return Finding(
            rule="norms-drift", severity="warning" if warns else "info", place="",
            message=f"{WHAT[worst.channel].format(worst.name)} {'grows' if worst.factor > 1 else 'shrinks'} on: over "
            f"the second half of the training to {worst.factor:.3g} of what it was{usual}{more}; the loss {suffers}",
            evidence=(*dict.fromkeys(one.channel for one in drifts), loss.channel), iterations=(int(worst.since),),
            sure=f"p = {worst.p:.2g} of as much order by chance, for each of {counted(len(moved), 'curve')}; spread "
            f"within a block {100 * worst.spread:.2g} %",
            unless="the data become harder by themselves, or the loss cannot be lower and norms no longer matter to it",
            remedy="Weight decay on matrices keeps norms that grow where they are (of weights before a normalisation, "
            "growth is a learning rate that falls); where they shrink, a smaller weight decay.",
            code="torch.optim.AdamW(parameters, weight_decay=0.1)" if worst.factor > 1 else "",
        )  # fmt: skip


def _falls(trend: Trend, run: Run) -> bool:
    """Whether the loss falls in the second half: in order, and by more than a share of where it was."""
    began, ended = float(trend.blocks[HALF]), trend.last
    return trend.late < run.limit("p") and began - ended > run.limit("share") * abs(began)


def _columns(run: Run) -> Iterator[tuple[str, str, Floats, Floats]]:
    """(channel, layer, iterations, natural logarithm of its norm) of every layer; biases are left out by name."""
    for name in WHAT:
        table = table_of(run, name)
        for n, layer in enumerate(table.names if table is not None else ()):
            assert table is not None
            values = table.values[:, n].astype(np.float64)
            if "bias" not in layer.rpartition(".")[2]:
                yield name, layer, table.iterations, np.log(np.where(values > 0, values, np.nan))


def _drift(channel: str, layer: str, iterations: Floats, logs: Floats) -> Drift | None:
    """How a layer moved over the second half; None where there are too few points."""
    trend = trend_of(iterations, logs)
    if trend is None:
        return None
    late = trend.blocks[HALF:]
    up = float(late[-1] - late[0])
    p = min(1.0, 2 * ordered_by_chance(late, falling=up < 0))  # either way, so twice that of one
    return Drift(channel, layer, float(np.exp(up)), trend.spread, p, float(trend.centres[HALF]))


RULES.register("norms-drift")(NormsDrift())
