"""Truncated backpropagation through time that is shorter than what the data need, or many times longer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from inspector.analysis.before_training.reach import FEWEST_SEQUENCES, depends, furthest_beyond, needed_lags
from inspector.analysis.loss_trend import hardly_falls, is_flat
from inspector.diagnosis.rule import PART, RULES, Limit, Run, Scope, Trust, scalar
from inspector.diagnosis.series import Floats, listed, longest, table_of, the_only, trend_along
from inspector.records import Finding
from inspector.records.run import Severity

CARRIED, NEEDED = "modules:carried/steps", "model:trial/reach"


@dataclass(frozen=True, slots=True)
class Windows:
    """The steps over which a loss is propagated back: the most of all recorded iterations, and in which modules."""

    steps: int
    modules: tuple[str, ...]


class Truncation:
    """Reads over how many steps the loop propagates losses back where it hands states on without their gradient, and
    which lags the data need (`trial/reach` of a probe, or of a run before the training).

    Where nobody has counted what the data need, and the loss does not fall, it is information: what may be behind it.
    A state that keeps things by itself can be read though no gradient reaches back so far: where the loss falls to
    less than a part of its beginning it is information. Counter-example of the other side: several inputs that tell
    only together, at lags that one alone does not show.
    """

    id = "IN208"
    untried = "how far back a loss is propagated is in your training loop"
    title = "Truncation against the lag that the data need"
    summary = "Losses are propagated back over fewer steps than the data need, or over many times as many."
    trust: Trust = "counterfactual"
    scope: Scope = "training"
    reads = ("trial", "series")
    needs = ("trial/reach",)
    limits = (
        Limit(
            "kept",
            0.5,
            "A loss that falls below so much of its first block learns it all the same; a judgement.",
            within=PART,
        ),
        Limit("times", 8.0, "Times the furthest lag that is needed: from here on shorter pieces cost far less."),
    )
    reference = "Williams & Peng 1990; Tallec & Ollivier 2017, arXiv 1705.08209 (the bias of truncation)"

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """At most one."""
        windows = _windows(run) if CARRIED in run.channels else None
        if windows is None:
            return
        if NEEDED not in run.channels or not run.revision(NEEDED):
            yield from self._unknown(run, windows)
            return
        at = run.frame_of(NEEDED)
        needed = np.ma.filled(np.ma.asarray(run.array(NEEDED, at), np.float64), np.nan)
        lags, counted = needed_lags(needed), scalar(run, "trial/reach/sequences", at)
        beyond = furthest_beyond(needed, windows.steps - 1)
        if not len(lags) or not counted >= FEWEST_SEQUENCES:
            return
        if beyond is not None and beyond[2]:
            yield self._short(run, windows, needed, beyond[0])
        elif beyond is None and needed.shape[1] >= windows.steps >= run.limit("times") * max(1, int(lags[-1])):
            yield self._long(windows, needed, int(lags[-1]))

    def _unknown(self, run: Run, windows: Windows) -> Iterable[Finding]:
        loss = longest(run, "loss")
        trend = trend_along(loss)
        if loss is None or trend is None or not (hardly_falls(trend) or is_flat(trend, SHARE, P)):
            return
        yield Finding(
            rule="truncation", severity="info", place=the_only(windows.modules),
            message=f"{_propagated(windows)}; the loss went from {trend.first:.4g} to {trend.last:.4g}, and how "
            "far back the data need was not counted",
            evidence=(CARRIED, loss.channel), sure="the steps are those of the training's own calls",
            unless="the task needs no more, and the loss stays for another reason",
            remedy="Count which lags the data need (`inspector preflight`, or a probe of a subject with data and a "
            "loss), or propagate back over twice as many steps and see whether the loss falls further.",
            code=f"for piece in stream.split({2 * windows.steps}, dim=1): ...",
        )  # fmt: skip

    def _short(self, run: Run, windows: Windows, needed: Floats, lag: int) -> Finding:
        loss = longest(run, "loss")
        trend = trend_along(loss)
        learned = trend is not None and trend.first > 0 and trend.last < run.limit("kept") * trend.first
        severity: Severity = "info" if learned else "warning"
        told = "" if trend is None else f"; the loss went from {trend.first:.4g} to {trend.last:.4g}"
        return Finding(
            rule="truncation", severity=severity, place=the_only(windows.modules), places=tuple(windows.modules),
            message=f"{_propagated(windows)}, and {_lower(depends(needed, lag))}{told}",
            evidence=(CARRIED, NEEDED, *(() if loss is None else (loss.channel,))), sure=SURE,
            unless="the state keeps it by itself, without a gradient that teaches it to, or another path (a feature of "
            "the input, attention) brings it nearer",
            remedy=f"Propagate back over more than {lag} steps; the memory for it grows in proportion. Where that is "
            "too much: pieces that overlap, or inputs that bring what is needed nearer.",
            code=f"for piece in stream.split({2 * lag}, dim=1): ...",
        )  # fmt: skip

    def _long(self, windows: Windows, needed: Floats, lag: int) -> Finding:
        return Finding(
            rule="truncation", severity="info", place=the_only(windows.modules), places=tuple(windows.modules),
            message=f"{_propagated(windows)}, {windows.steps / max(1, lag):.0f} times as far as any input tells "
            f"something: {_lower(depends(needed, lag))}",
            evidence=(CARRIED, NEEDED), sure=SURE,
            unless="several inputs together tell more from further back than any one alone",
            remedy=f"Pieces of {4 * max(1, lag)} steps take less memory, and give more steps of the optimizer.",
            code=f"for piece in stream.split({4 * max(1, lag)}, dim=1): ...",
        )  # fmt: skip


SHARE, P = 0.02, 0.05
"""As for plateau: less of a fall is none, or one in an order that chance makes so often."""
SURE = "the steps are those of the training's own calls; the lags are counted in the data, against exchanged sequences"


def _windows(run: Run) -> Windows | None:
    """Where states are handed on without their gradient; None where none is."""
    table = table_of(run, CARRIED)
    if table is None or not np.isfinite(table.values).any():
        return None
    known = [n for n in range(table.values.shape[1]) if np.isfinite(table.values[:, n]).any()]
    return Windows(int(np.nanmax(table.values)), tuple(table.names[n] for n in known))


def _propagated(windows: Windows) -> str:
    steps = "1 step" if windows.steps == 1 else f"{windows.steps:,} steps"
    return f"the state of {listed(windows.modules)} comes without its gradient every {steps}: a loss reaches no further"


def _lower(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]


RULES.register("truncation")(Truncation())
