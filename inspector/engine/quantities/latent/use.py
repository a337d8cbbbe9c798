"""How much of a hidden variable is used: what it says of a sequence, and what a decoder makes of it.

For one vector z of each sequence (a sequence VAE), drawn as μ + σ ε by any code, with N(0, 1) as its prior.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from inspector.engine.analyses.latent import information
from inspector.engine.analyses.latent.again import LatentCalls, Told, latent_calls, many_sequences
from inspector.engine.analyses.latent.paths import paths_of
from inspector.engine.analyses.latent.reconstruction import Reconstruction, loss_by_step, reconstruction_of
from inspector.engine.analyses.latent.texts import LONGEST, written
from inspector.engine.errors import Unsupported
from inspector.engine.latent.variables import Variable
from inspector.engine.model.batch import Batch, selected
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import Describe, per_run
from inspector.engine.trace.trace import Trace
from inspector.records import VOCABULARY_DOMAIN

KIND = "latent_use"
SOURCES = ("its own z", "z of other sequences", "z from the prior")
MEANS = ("own", "others", "prior")
PATHS = ("through z", "own path")
UNITS = ("KL", "variance of the mean")
OTHERS, PRIORS = 16, 4
"""z of other sequences, and of the prior, over which losses are averaged; texts that are written from the prior."""
BETWEEN = (0.0, 0.25, 0.5, 0.75, 1.0)
SOURCE = "Bowman et al. 2016, arXiv 1511.06349; Burda et al. 2016, arXiv 1509.00519; Hoffman & Johnson 2016"
NOT_FINITE = "μ or σ of {} has NaN or infinities, or σ is 0, so nothing can be said of what it tells."


NOTHING_DRAWN = (
    "The model draws no hidden variable from a normal distribution (z = μ + σ ε, or a sample of torch.distributions), "
    "of which another could be put in place."
)


@QUANTITIES.register("latent/use")
@per_run(
    summary="how much of z is used: KL by unit, active units, mutual information, losses and texts from other z",
    order=92, default=False, cost="some hundred runs of the model on short sequences",
    work=lambda run: run.call * (2.0 * information_runs(run.steps)),
)  # fmt: skip
def use(trace: Trace, emit: Emitter) -> None:
    """Write `place:latent/VARIABLE/use/…`: `units` (unit, statistic), KL and variance of the mean over sequences;
    scalars `kl`, `mutual_information`, `most_information`, `active_units`, `sequences`, `loss/own`, `others`, `prior`,
    `even`; `terms` (statistic,) of a sequence; `loss` (step, statistic) with other z; `gradient` (step, statistic) and
    `share` (step,); `texts`, ids by row.
    """
    refused: list[str] = []

    def refuse(name: str, why: str) -> None:
        refused.append(name)
        emit.refuse(name, why)

    try:
        found = list(latent_calls(trace, refuse))
        many = many_sequences(trace) if found else None
    except Unsupported as reason:
        emit.refuse("model:latent/use", str(reason))
        return
    if not found and not refused:
        emit.refuse("model:latent/use", NOTHING_DRAWN)
    for variable, calls in found:
        assert many is not None
        _Use(variable, calls, many, emit).write()


def information_runs(steps: int) -> float:
    """Runs of the whole batch that are about as much work."""
    return 8.0 + 3.0 * min(steps, LONGEST)


class _Use:
    """The channels of one variable; each part may be refused by itself."""

    def __init__(self, variable: Variable, calls: LatentCalls, many: Batch, emit: Emitter) -> None:
        self.variable, self.calls, self.many, self.emit = variable, calls, many, emit
        self.base = f"{variable.place}:latent/{variable.name}/use"
        self.shown = selected(many, [many.look_at], _targets(many, [many.look_at]))
        self.terms: dict[str, float] = {}
        self.random = torch.Generator().manual_seed(calls.trace.seed)

    def write(self) -> None:
        """All of them."""
        try:
            told = self.calls.plain(self.many)
            if not bool(told.mean.isfinite().all() and told.deviation.isfinite().all() and (told.deviation > 0).all()):
                raise Unsupported(NOT_FINITE.format(self.variable.name))
        except Unsupported as reason:
            self.emit.refuse(self.base, str(reason))
            return
        self._information(told)
        self.emit.check()
        try:
            way: Reconstruction | None = reconstruction_of(self.calls, self.many)
        except Unsupported as reason:
            way, why = None, str(reason)
        self._part("loss", lambda: self._losses(told, way))
        self._terms(way)
        if way is None:
            for part in ("gradient", "texts"):
                self.emit.refuse(f"{self.base}/{part}", why)
            return
        self.emit.check()
        self._part("gradient", lambda: self._gradient(way))
        self.emit.check()
        self._part("texts", lambda: self._texts(told, way))

    def _part(self, name: str, write: Callable[[], None]) -> None:
        try:
            write()
        except Unsupported as reason:
            self.emit.refuse(f"{self.base}/{name}", str(reason))

    def _channel(self, name: str, dims: tuple[str, ...], values: Tensor, **about: Any) -> None:
        more = {"domains": {"step": self.calls.trace.batch.first.axis}} if "step" in dims else {}
        if "value_domain" in about:
            more["value_domain"] = about.pop("value_domain")
        described = Describe(kind=KIND, source=SOURCE, compare="separate", **about)
        dtype = str(values.dtype).removeprefix("torch.")
        channel = described.channel(
            f"{self.base}/{name}", dims, tuple(values.shape), dtype, module=self.variable.module, **more
        )
        self.emit.array(channel, values)

    def _information(self, told: Told) -> None:
        divergence = information.divergence(told.mean, told.deviation).mean(0)
        variance = information.variance_of_means(told.mean)
        self._channel(
            "units", ("unit", "statistic"), torch.stack((divergence, variance), 1), title="KL and active units",
            formula="mean over sequences of KL(q(z | x) ‖ N(0, 1)) in nats; Var_x E[z | x], above 0.01 if active",
            labels={"statistic": UNITS},
        )  # fmt: skip
        n = len(told.mean)
        shared = information.mutual_information(told.mean, told.deviation)
        self.terms = {"KL": float(divergence.sum()), "mutual information": shared}
        for name, value in {
            "kl": float(divergence.sum()),
            "mutual_information": shared,
            "most_information": float(torch.tensor(float(n), dtype=torch.float64).log()),
            "active_units": float((variance > information.ACTIVE).sum()),
            "sequences": float(n),
        }.items():
            self.emit.scalar(f"{self.base}/{name}", value)

    def _terms(self, way: Reconstruction | None) -> None:
        """The sums and means above, all in nats a sequence: what is drawn over training."""
        what = "the reconstruction, " if way is not None else "with the divergence, "
        self._channel(
            "terms", ("statistic",), torch.tensor(list(self.terms.values()), dtype=torch.float64), unit="nat",
            title="terms of a sequence", labels={"statistic": tuple(self.terms)},
            formula=f"means over sequences; losses: {what}summed over the steps of each",
        )  # fmt: skip

    def _prior(self, told: Told, count: int) -> Tensor:
        return torch.randn((count, told.sample.shape[1]), generator=self.random, dtype=torch.float64)

    def _losses(self, told: Told, way: Reconstruction | None) -> None:
        """Of the sequence that is shown by step, and the means over all sequences, each with one other z."""
        n, at = len(told.sample), self.many.look_at
        others = [i for i in torch.randperm(n, generator=self.random).tolist() if i != at][:OTHERS]
        prior = self._prior(told, OTHERS)
        z = torch.cat((told.sample[at : at + 1], told.sample[others], prior))
        copies = selected(self.many, [at] * len(z), _targets(self.many, [at] * len(z)))
        values = self._of(self.calls.with_z(copies, z), way, copies)[:, : self.shown.length]
        parts = values.split([1, len(others), len(prior)])
        by_step = torch.stack([part.nanmean(0) for part in parts], 1)
        what = "−ln p(xₜ | z, earlier x)" if way is not None else "loss of the step, its divergence included"
        self._channel(
            "loss", ("step", "statistic"), by_step, unit="nat", title=what, labels={"statistic": SOURCES},
            formula=f"{what}, with its own z, and the means with {len(others)} z of other sequences and of the prior",
        )  # fmt: skip
        if way is not None and told.scores is not None:
            self.emit.scalar(f"{self.base}/loss/even", math.log(told.scores.shape[-1]))
        rolled = told.sample.roll(1, 0)
        for name, told_as, other in zip(MEANS, SOURCES, (told.sample, rolled, self._prior(told, n)), strict=True):
            values = self._of(self.calls.with_z(self.many, other), way, self.many)
            self.emit.scalar(f"{self.base}/loss/{name}", float(values.nanmean()))
            self.terms["loss, " + told_as] = float(values.nansum(1).mean())

    @staticmethod
    def _of(told: Told, way: Reconstruction | None, batch: Batch) -> Tensor:
        if way is None or told.scores is None:
            return loss_by_step(told)
        return way.losses(told.scores, batch).detach()

    def _gradient(self, way: Reconstruction) -> None:
        paths = paths_of(self.calls, self.shown, way)
        formula = "‖(∂z/∂x)ᵀ ∂L_t/∂z‖ and ‖∂L_t/∂x, z fixed‖ at the embedded tokens x, L_t = −ln p(x_t | z, earlier x)"
        norms = torch.stack((paths.by_z, paths.own), 1)[: self.shown.length]
        self._channel(
            "gradient", ("step", "statistic"), norms, scale="log",
            title="gradient of each step's loss", formula=formula, labels={"statistic": PATHS},
        )  # fmt: skip
        self._channel(
            "share", ("step",), paths.share[: self.shown.length], title="share through z", limits=(0.0, 1.0),
            formula="‖through z‖ / (‖through z‖ + ‖own path‖)",
        )  # fmt: skip

    def _texts(self, told: Told, way: Reconstruction) -> None:
        """What is read, what is written between its μ and another's, that other, and what is written from the prior."""
        many, at = self.many, self.many.look_at
        other = int((told.mean - told.mean[at]).square().sum(-1).argmax())
        steps = min(LONGEST, many.steps)
        z = torch.stack([(1 - part) * told.mean[at] + part * told.mean[other] for part in BETWEEN])
        z = torch.cat((z, self._prior(told, PRIORS)))
        ids = written(self.calls, z, way, steps, many.inputs[at, : way.ahead].cpu())
        rows = torch.cat((self._read(at, steps), ids[: len(BETWEEN)], self._read(other, steps), ids[len(BETWEEN) :]))
        between = ("μ(x)", *(f"{100 * part:.0f} % of the way" for part in BETWEEN[1:-1]), "μ(x′)")
        names = ("read: x", *between, "read: x′", *(f"prior, {n + 1}" for n in range(PRIORS)))
        self._channel(
            "texts", ("number", "position"), rows, title="written from z", value_domain=VOCABULARY_DOMAIN,
            formula="the likeliest token at each step, from z = (1 − w) μ(x) + w μ(x′) and from z ~ N(0, 1)",
            labels={"number": names},
        )  # fmt: skip

    def _read(self, row: int, steps: int) -> Tensor:
        ids = torch.full((1, steps), -1)
        length = min(steps, int(self.many.lengths[row]))
        ids[0, :length] = self.many.inputs[row, :length].cpu()
        return ids


def _targets(batch: Batch, rows: list[int]) -> Tensor | None:
    """The targets of some sequences."""
    targets = batch.targets
    return targets[rows] if isinstance(targets, Tensor) and len(targets) == batch.size else None
