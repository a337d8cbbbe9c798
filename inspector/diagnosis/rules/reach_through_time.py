"""A training that does not learn, or has no clipping, and a state that forgets or amplifies what it held."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from inspector.analysis.clipping import percent
from inspector.analysis.lag_norms import centre_of
from inspector.analysis.loss_trend import Trend, fell_at_once, hardly_falls, is_flat
from inspector.diagnosis.causes import Cause, cause_of
from inspector.diagnosis.rule import PART, RULES, Limit, Run, Scope, Trust
from inspector.diagnosis.series import GRADIENT_NORM, Floats, clips, longest, norms_beside_clipping, trend_along
from inspector.records import Finding, counted

SIGNAL = "jacobian/lag"
VANISHED = (
    "Gates that stay open for as many steps as the task needs (a forget bias of ln T for T steps, 1 for few), "
    "skip connections through time, or attention carry a gradient that far, and an orthogonal recurrent matrix does "
    "where inputs are small; another learning rate does not."
)
GATES = "nn.LSTM(...); bias_ih[hidden:2 * hidden] = math.log(steps)"
EXPLODED = (
    "Clip the gradient by its norm, begin with recurrent weights whose largest singular value is near 1, or use gates."
)


@dataclass(frozen=True, slots=True)
class Reach:
    """The products of the step Jacobians of a layer in the newest frame: the first lag at which their median is beyond
    a limit (`lag`), that median, and how many lags there are."""

    channel: str
    place: str
    lag: int
    value: float
    lags: int


class ReachThroughTime:
    """Reads products of Jacobians of the probe's newest frame, together with the loss or with clipping.

    A short reach alone is no illness: the task may need no more. So a vanishing product counts only where the loss does
    not fall, and an exploding one is only information where the gradient is clipped. Counter-example: a loss that does
    not fall for another reason, in a net that need not look back so far; the finding says up to where it looks.
    """

    id = "IN305"
    title = "Gradients vanish or explode through time"
    summary = "The loss does not fall and the state keeps nothing for long, or its products of Jacobians explode."
    trust: Trust = "statistical"
    scope: Scope = "training"
    reads = ("lag",)
    needs = ("jacobian/lag",)
    limits = (
        Limit("small", 1e-3, "A thousandth of a change is left: the app's horizon.", within=PART, below="large"),
        Limit("large", 1e3, "A change is a thousand times as large: the app's horizon."),
        Limit(
            "most", 0.5, "A state that reaches over half of the probe or more: information. A judgement.", within=PART
        ),
        Limit("share", 0.02, "As for plateau: less of a fall is none.", within=PART),
        Limit("p", 0.05, "As for plateau.", within=PART),
        Limit("once", 0.2, "As for plateau: a fall by more within the first block is one.", within=PART),
    )
    reference = (
        "Bengio, Simard & Frasconi 1994; Pascanu, Mikolov & Bengio 2013, arXiv 1211.5063; "
        "Tallec & Ollivier 2018, arXiv 1804.11188 (the bias)"
    )

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """One for each layer."""
        loss = longest(run, "loss")
        trend = trend_along(loss)
        flat = trend is not None and is_flat(trend, run.limit("share"), run.limit("p"))
        flat = flat and trend is not None and not fell_at_once(trend, run.limit("once"))
        slow = trend if trend is not None and not flat and hardly_falls(trend) else None
        norms = norms_beside_clipping(run)  # None where the training was not watched: nobody knows whether it clips
        for name, channel in run.channels.items() if loss is not None or norms is not None else ():
            if channel.signal == SIGNAL and run.revision(name):
                found = self._reach(run, name)
                if found is None:
                    continue
                if found.value > 1 and norms is not None:
                    yield self._exploded(found, norms)
                elif found.value < 1 and (flat or slow is not None) and loss is not None:
                    yield self._vanished(found, loss.channel, cause_of(run), run.limit("most"), slow)

    def _reach(self, run: Run, name: str) -> Reach | None:
        at = run.frame_of(name)
        channel = run.channel(name, at)
        names = channel.labels.get("statistic", ())
        row = np.asarray(np.ma.filled(run.array(name, at), np.nan))[names.index(centre_of(SIGNAL, names)[0])]
        with np.errstate(invalid="ignore"):
            beyond = np.flatnonzero((row < run.limit("small")) | (row > run.limit("large")))
        if not len(beyond):
            return None
        lag = int(beyond[0])
        return Reach(name, channel.place, lag, float(row[lag]), len(row))

    def _vanished(self, one: Reach, loss: str, cause: Cause | None, most: float, slow: Trend | None) -> Finding:
        """Information where something else is known that keeps the loss where it is, which is named, where the loss
        falls a little (`slow`), and where the state reaches over most of the sequence: then a task that needs still
        more is the less likely reason."""
        far = one.lag >= most * one.lags or slow is not None
        falls = "does not fall" if slow is None else f"fell by {percent(1 - slow.last / slow.first)} only"
        return Finding(
            rule="reach-through-time", severity="info" if cause is not None or far else "warning", place=one.place,
            message=f"the loss {falls}, and of a change of the state {one.value:.1g} is left after "
            f"{counted(one.lag, 'step')} (the probe has {one.lags}): the gradient cannot teach what lies further back"
            + ("" if cause is None else f"; but {cause.said}"),
            evidence=(one.channel, loss, *(() if cause is None else cause.evidence)),
            sure="products of the exact Jacobians of one sequence, the median over its steps",
            unless=f"the task needs no more than {counted(one.lag, 'step')}: influence tells whether the loss depends "
            "on more",
            remedy=VANISHED if cause is None else f"{cause.remedy} Then look again how far the state reaches.",
            code=GATES if cause is None else cause.code,
        )  # fmt: skip

    def _exploded(self, one: Reach, norms: Floats) -> Finding:
        clipped = clips(norms)
        return Finding(
            rule="reach-through-time", severity="info" if clipped else "warning", place=one.place,
            message=f"a change of the state is {one.value:.2g} times as large after {counted(one.lag, 'step')}"
            + ("; the gradient is clipped" if clipped else ", and nothing clips the gradient"),
            evidence=(one.channel, GRADIENT_NORM),
            sure="products of the exact Jacobians of one sequence, the median over its steps",
            unless="the loss falls as it should all the same", remedy=EXPLODED,
            code="nn.utils.clip_grad_norm_(model.parameters(), 1.0)",
        )  # fmt: skip


RULES.register("reach-through-time")(ReachThroughTime())
