"""Representations of all steps that become one and the same vector through a stack of layers with attention."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from inspector.diagnosis.rule import COUNT, PART, RULES, Limit, Run, Scope, Trust
from inspector.diagnosis.series import Floats
from inspector.records import Finding

SIGNAL = ":residual/rank"
LOSS, SHARES = "output:loss", "output:probability"


class RankCollapse:
    """Reads ‖X − 1 x̄ᵀ‖ / ‖X‖ before and behind each layer: how far the steps are from having one vector in common.

    Attention averages, so that layers without a skip connection bring all steps together, the faster the closer they
    are (Dong et al.). It is a warning where it harms: the model says the same at every step, and its loss there is not
    small; else information. Inputs that were alike before the first layer are left alone. Counter-example: a model with
    one output for a sequence needs no steps that differ.
    """

    id = "IN421"
    untried = "skip connections are in the model's code"
    title = "All steps become one vector"
    summary = "The representations of a sequence's steps can hardly be told apart behind some layer, though inputs can."
    trust: Trust = "descriptive"
    scope: Scope = "frame"
    reads = ("residual",)
    needs = ("residual",)
    limits = (
        Limit(
            "left",
            0.01,
            "Distance from one vector, of the norm; trained stacks with skips kept 0.2 and more.",
            within=PART,
            below="began",
        ),
        Limit(
            "began",
            0.1,
            "Distance before the first layer from which inputs can be told apart; ten times as much.",
            within=PART,
        ),
        Limit("steps", 4, "Steps of a sequence; fewer may be alike by chance.", within=COUNT),
        Limit(
            "same",
            0.01,
            "By how much probabilities differ from step to step at most where all say the same.",
            within=PART,
        ),
        Limit("known", 0.1, "Nats up to which a loss is small: then all steps may rightly say the same."),
    )
    reference = "Dong, Cordonnier & Loukas 2021, arXiv 2103.03404 (attention without skips loses rank)"

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """One for each stack of layers."""
        for name in run.channels:
            if name.endswith(SIGNAL) and run.revision(name, frame):
                yield from self._of(run, name, frame)

    def _of(self, run: Run, name: str, frame: int) -> Iterable[Finding]:
        channel, table = run.channel(name, frame), np.ma.filled(run.array(name, frame), np.nan)
        if (
            table.ndim != 2
            or len(table) != len(channel.labels.get("statistic", ()))
            or _steps(run, name, frame) < run.limit("steps")
        ):
            return
        distances = table[channel.labels["statistic"].index("distance from rank one")]
        layers = channel.labels.get("layer", ()) or tuple(map(str, range(len(distances))))
        known = np.isfinite(distances)
        if len(distances) < 2 or not known.all() or distances[0] < run.limit("began"):
            return
        if distances[-1] > run.limit("left"):
            return
        at = len(distances) - int(np.argmax(distances[::-1] > run.limit("left")))
        same, loss = _says_the_same(run, frame, run.limit("same")), _mean(run, LOSS, frame)
        harms = same and loss > run.limit("known")
        told = f"; every step says the same, with a loss of {loss:.3g} nats" if harms else ""
        yield Finding(
            rule="rank-collapse", severity="warning" if harms else "info", place=layers[at],
            message=f"the vectors of all steps are one and the same from {layers[at]} on: they lie "
            f"{distances[at]:.2g} of their norm from their mean there ({distances[0]:.2g} before the first of "
            f"{len(distances) - 1} layers, {distances[-1]:.2g} behind the last){told}",
            evidence=(name, *(one for one in (LOSS, SHARES) if harms)),
            sure="exact for the sequence that is shown, one alone",
            unless="the steps are to say the same, or one output of the sequence is all that is read",
            remedy="A skip connection around each attention (and around what stands between them): without it each "
            "layer averages what the one before has averaged.",
            code="x = x + self.attention(self.norm(x))",
        )  # fmt: skip


def _steps(run: Run, name: str, frame: int) -> int:
    """Steps of the sequence, by the norms beside the distances."""
    norms = name.removesuffix(SIGNAL) + ":residual/norm"
    return int(run.array(norms, frame).shape[-1]) if norms in run.channels and run.revision(norms, frame) else 0


def _array(run: Run, name: str, frame: int) -> Floats | None:
    if name not in run.channels or not run.revision(name, frame) or run.channel(name, frame).dims[:1] != ("step",):
        return None
    return np.asarray(np.ma.filled(np.ma.asarray(run.array(name, frame), np.float64), np.nan))


def _mean(run: Run, name: str, frame: int) -> float:
    """Over steps with a number; NaN where there are none."""
    values = _array(run, name, frame)
    known = np.empty(0) if values is None else values[np.isfinite(values)]
    return float(known.mean()) if known.size else float("nan")


def _says_the_same(run: Run, frame: int, most: float) -> bool:
    """Whether the largest probabilities (step, rank) are the same at all steps."""
    shares = _array(run, SHARES, frame)
    if shares is None or shares.ndim != 2 or len(shares) < 2 or not np.isfinite(shares).all():
        return False
    return bool(np.ptp(shares, axis=0).max(initial=0.0) <= most)


RULES.register("rank-collapse")(RankCollapse())
