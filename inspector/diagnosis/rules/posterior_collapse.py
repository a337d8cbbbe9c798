"""A hidden variable that tells nothing of the sequence: posterior collapse."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from inspector.analysis.latent.use import LEARNED, use_verdict
from inspector.diagnosis.rule import RULES, Limit, Run, Scope, Trust, scalar
from inspector.records import Channel, Finding, Severity

CURES = (
    "See that divergence and reconstruction are both of a sequence, or both of a step. Let so many nats of each unit "
    "cost nothing (free bits), and leave out a part of what the decoder is told (word dropout); count the divergence "
    "slowly more from 0 on (KL annealing)."
)
NOTHING = "the model has learned next to nothing yet: its loss, {:.3g}, is that of guessing, {:.3g}"
CODE = "loss = reconstruction + divergence.clamp(min=0.5).sum(-1)"


class PosteriorCollapse:
    """Reads the divergence of posteriors from their prior, and where it was computed what a wrong z costs.

    Only a posterior that is the prior is a warning: the divergence then has nothing to gain from being used. One that
    is paid for and not used may be on its way, as in the first hundred iterations of *numerals-vae-annealed*.
    Counter-example: a training that has just begun, before which q(z | x) hardly depends on x; and data that need none.
    """

    id = "IN419"
    title = "Posterior collapse"
    summary = "A hidden variable is drawn from its prior whatever the sequence is, or nothing is made of it."
    trust: Trust = "descriptive"
    scope: Scope = "frame"
    reads = ("latent", "latent_use")
    needs = ("latent/distributions",)
    untried = "how the divergence is counted is in the loss of your own training"
    limits = (
        Limit("kl", 0.1, "z then picks one of e^0.1 = 1.1 sequences. Accuses a model whose data need no more.", "nat"),
        Limit("rise", 0.01, "What a wrong z costs of the loss of a step. Misses a z that only few steps need.", "nat"),
    )
    reference = "Bowman et al. 2016, arXiv 1511.06349; Lucas et al. 2019, arXiv 1911.02469 (posterior collapse)"

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """One for each variable of which samples were drawn; over several sequences where that was computed."""
        told = set()
        for channel in self._written(run, frame, "latent_use", "/use/units"):
            base = channel.name.removesuffix("/units")
            told.add(base.removesuffix("/use"))
            yield from self._over_sequences(run, frame, channel, base)
        for channel in self._written(run, frame, "latent", "/kl"):
            base = channel.name.removesuffix("/kl")
            if base not in told and f"{base}/sample" in run.channels:
                yield from self._of_one(run, frame, channel)

    @staticmethod
    def _written(run: Run, frame: int, kind: str, ending: str) -> Iterator[Channel]:
        for channel in run.channels.values():
            if channel.kind == kind and channel.name.endswith(ending) and run.revision(channel.name, frame):
                yield channel

    def _over_sequences(self, run: Run, frame: int, channel: Channel, base: str) -> Iterator[Finding]:
        names = ("kl", "mutual_information", "most_information", "active_units", "sequences")
        kl, information, most, active, count = (scalar(run, f"{base}/{name}", frame) for name in names)
        limits = run.limit("kl"), run.limit("rise")
        own, others, even = (scalar(run, f"{base}/loss/{name}", frame) for name in ("own", "others", "even"))
        units = run.array(channel.name, frame).shape[0]
        verdict = use_verdict(kl, information, most, active, units, others - own, limits)
        if verdict.word in ("collapsed", "idle", "unused"):
            said, sure = verdict.sentence, f"computed from {count:.0f} sequences"
            if own > LEARNED * even:  # false where one of them is not known
                yield self._finding(channel, f"{said}; {NOTHING.format(own, even)}", sure, "info")
            else:
                yield self._finding(channel, said, sure, "warning" if verdict.word == "collapsed" else "info")

    def _of_one(self, run: Run, frame: int, channel: Channel) -> Iterator[Finding]:
        values = np.ma.filled(run.array(channel.name, frame).astype(np.float64), np.nan)
        total = float(values.sum())
        if total < run.limit("kl"):
            said = f"{channel.title} is {total:.2g} nats in all for this sequence: what is drawn says nothing of it"
            yield self._finding(channel, said, "exact for this sequence, one alone; `--with latent/use` looks at many")

    @staticmethod
    def _finding(channel: Channel, message: str, sure: str, severity: Severity = "warning") -> Finding:
        return Finding(
            rule="posterior-collapse", severity=severity, place=channel.place, message=message,
            evidence=(channel.name,), sure=sure, remedy=CURES, code=CODE,
            unless="the training has just begun, or the sequences can be written without z",
        )  # fmt: skip


RULES.register("posterior-collapse")(PosteriorCollapse())
