"""A training on data that change, whose net learns new data worse and worse while its units fall silent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from inspector.analysis.loss_trend import LEAST, Trend, has_risen, trend_of
from inspector.diagnosis.rule import PART, RULES, Limit, Run, Scope, Trust
from inspector.diagnosis.series import GRADIENT_NORM, listed, longest, table_of, trend_along
from inspector.records import Finding

ZERO = "modules:activation/zero"
RANK, SPREAD = "modules:activation/effective_rank", "modules:activation/effective_rank_spread"


@dataclass(frozen=True, slots=True)
class Silenced:
    """A module: its name, the share of zeros in its output (or its effective rank, with the spread) at the beginning
    and the end, and the probability of as much order by chance."""

    name: str
    first: float
    last: float
    p: float
    spread: float = 0.0


class Plasticity:
    """Reads the loss, the share of zeros of each module's output and its effective rank, and the norm of the gradient.

    All have to agree: the loss rises for good, but not beyond where the untrained net began (where it does, the
    training diverges); zeros become more, or directions fewer, in order; and the gradient does not grow, as it does
    where steps are too large. Counter-example: data that become harder by themselves, with a sparse code that suits
    them.
    """

    id = "IN306"
    title = "The net loses its plasticity"
    summary = "The loss on new data rises towards that of an untrained net while units fall silent."
    trust: Trust = "statistical"
    scope: Scope = "training"
    trends = True
    reads = ("series",)
    needs = ()
    limits = (
        Limit("p", 0.05, "As for diverged: a rank test over medians of twenty blocks.", within=PART),
        Limit("rise", 0.5, "As for diverged: half of what had been gained is lost again."),
        Limit(
            "zeros",
            0.1,
            "By so much the share of zeros rises: Sokar et al. see 0.1 to 0.5 where learning suffers.",
            within=PART,
        ),
        Limit(
            "rank",
            0.5,
            "Of the effective rank at the beginning; the source has falls and no number, so a judgement.",
            within=PART,
        ),
        Limit("began", 1.1, "Times the first loss: a net that only lost its plasticity is no worse than untrained."),
    )
    reference = "Dohare et al. 2024, Nature 632:768; Sokar et al. 2023, arXiv 2302.12902 (dormant units)"

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """At most one, for the net as a whole."""
        zeros = table_of(run, ZERO)
        if zeros is None or run.too_few(len(zeros.values), LEAST):
            return
        loss = longest(run, "loss")
        trend = trend_along(loss)
        if loss is None or trend is None or not self._worsens(run, trend) or not _shrinks(run):
            return
        silenced = sorted(self._silenced(run), key=lambda one: one.first - one.last)
        narrowed = sorted(self._narrowed(run), key=lambda one: one.last / one.first)
        if silenced or narrowed:
            yield self._finding(silenced, narrowed, trend, loss.channel)

    def _worsens(self, run: Run, trend: Trend) -> bool:
        """Whether the loss rises for good, and not beyond where it began."""
        return has_risen(trend, run.limit("rise"), run.limit("p")) and trend.last <= run.limit("began") * trend.began

    def _silenced(self, run: Run) -> Iterator[Silenced]:
        """Modules whose share of zeros rises in order."""
        table = table_of(run, ZERO)
        for n, name in enumerate(table.names if table is not None else ()):
            assert table is not None
            trend = trend_of(table.iterations, -table.values[:, n].astype(np.float64))
            if trend is not None and trend.falls <= run.limit("p") and trend.first - trend.last >= run.limit("zeros"):
                yield Silenced(name, -trend.first, -trend.last, trend.falls)

    def _narrowed(self, run: Run) -> Iterator[Silenced]:
        """Modules whose effective rank falls in order, to less than a share of it and by more than its spread."""
        ranks, spreads = table_of(run, RANK), table_of(run, SPREAD)
        for n, name in enumerate(ranks.names if ranks is not None and spreads is not None else ()):
            assert ranks is not None and spreads is not None
            trend = trend_of(ranks.iterations, ranks.values[:, n].astype(np.float64))
            if trend is None or not np.isfinite(spreads.values[:, n]).any():
                continue
            beyond = trend.first - trend.last > 2 * float(np.nanmedian(spreads.values[:, n]))
            if trend.falls <= run.limit("p") and trend.last <= run.limit("rank") * trend.first and beyond:
                yield Silenced(name, trend.first, trend.last, trend.falls, float(np.nanmedian(spreads.values[:, n])))

    def _finding(self, silenced: list[Silenced], narrowed: list[Silenced], loss: Trend, channel: str) -> Finding:
        worst, places = (silenced or narrowed)[0], {one.name for one in (*silenced, *narrowed)}
        said = [*([_silent(silenced)] if silenced else []), *([_narrow(narrowed)] if narrowed else [])]
        return Finding(
            rule="plasticity", severity="warning", place=worst.name if len(places) == 1 else "",
            message=f"the loss rises from {loss.best:.3g} around iteration {loss.lowest_at:,.0f} to {loss.last:.3g}, "
            f"and {'; '.join(said)}; the gradient does not grow",
            evidence=(channel, *((ZERO,) if silenced else ()), *((RANK,) if narrowed else ()), GRADIENT_NORM),
            iterations=(int(loss.lowest_at),),
            sure=f"p = {loss.rises:.2g} and {worst.p:.2g} of as much order by chance, over medians of twenty blocks",
            unless="the data become harder by themselves: a new net, trained on the newest data, then does no better",
            remedy="Normalise before the activation (layer norm), a leaky rectifier, a smaller learning rate, or new "
            "random weights for units that are silent (ReDo). A new net on the newest data tells whether it is that.",
            code="nn.Sequential(nn.Linear(n, n), nn.LayerNorm(n), nn.LeakyReLU())",
        )  # fmt: skip


def _silent(some: list[Silenced]) -> str:
    more = f"; also {listed([one.name for one in some[1:]])}" if len(some) > 1 else ""
    first, last = (100 * one for one in (some[0].first, some[0].last))
    return (
        f"outputs of {some[0].name} fall silent: {first:.3g} % of them are 0 at the beginning, {last:.3g} % at the "
        f"end{more}"
    )


def _narrow(some: list[Silenced]) -> str:
    more = f"; also {listed([one.name for one in some[1:]])}" if len(some) > 1 else ""
    first, last, spread = some[0].first, some[0].last, some[0].spread
    return (
        f"outputs of {some[0].name} take fewer directions: their effective rank falls from {first:.3g} to {last:.3g} "
        f"(± {spread:.2g}){more}"
    )


def _shrinks(run: Run) -> bool:
    """Whether the norm of the gradient is no larger at the end than at the beginning, by medians of blocks."""
    table = table_of(run, GRADIENT_NORM)
    trend = None if table is None else trend_of(table.iterations, table.values[:, 0].astype(np.float64))
    return trend is not None and float(trend.blocks[-2:].max()) <= float(trend.blocks[:2].max())


RULES.register("plasticity")(Plasticity())
