"""What trial steps say, in sentences: the loss before training, one step, the critical learning rate, one batch."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from inspector.analysis.before_training.given import input_verdict
from inspector.analysis.before_training.other_lengths import lengths_verdict
from inspector.analysis.before_training.reach import reach_verdict
from inspector.analysis.before_training.verdicts import Numbers, Readings, Tested, Verdict, Word, share
from inspector.records import counted

TRIALS = tuple(
    f"trial/{one}"
    for one in ("initial_loss", "first_step", "learning_rate", "one_batch", "input", "other_lengths", "reach")
)
"""Requests for the quantities that make them."""
LARGE_RATIO, LOST = 0.1, 0.5
NOT_FINITE = (
    "No training can begin: look for the first tensor that is not finite (IN101 names it): a logarithm or root of 0, a "
    "division by 0, a row of attention without a key, NaN in the input."
)
BROKE = (
    "Clip the gradient, take a smaller rate (trial/learning_rate), and look for a logarithm or root that comes near 0 "
    "while the loss falls."
)
WHEN = ("later", "on other inputs")
"""When parameters move that have no gradient in the first step on this batch."""
UNFOUND = "trial parameter that torch does not find"
IN_LISTS = "Keep modules in nn.ModuleList or nn.ModuleDict, and parameters in nn.ParameterList or nn.ParameterDict."
NAMES = 4
"""So many parameters are named."""
IN_NATS = {"nat": 1.0, "bit": math.log(2.0)}
KNOWN = 0.1
"""Nats: a first loss up to here (p = 0.9 on average) is of a model that knows the batch already, as a trained one may,
and halving it says nothing. Of other units of loss it is not known where that begins."""
OWN_STEP = "own step"
EDGE, SHORT = 1.0, 0.01
"""Lengths of a training's own step, in those at which the loss of this batch rises: beyond the edge; far too short.
Measured on Adam: at 0.001 next to nothing is learned, 0.3 to 0.5 learns fast. Counter-examples: a warm-up begins short,
and a training at the edge of stability is beyond it now and then (Cohen et al. 2022, arXiv 2207.14484)."""
HIGH, LEARNED = 1.5, 0.5
"""Times the loss of even probabilities above which a first loss is told; the share of it below which one batch counts
as being learned. Counter-examples: a task of which even probabilities are far from the best constant guess; a batch
that is learned slowly, at a rate that is too small for the model."""


def trials(run: Tested, frame: int = -1, only: str = "", limits: Mapping[str, float] | None = None) -> list[Verdict]:
    """What every trial that was made says; "not tested" with the reason where one was refused. `limits`: by the names
    that the rules on these trials give them, those that are not the usual ones.

    only: "initial loss", "first step", "learning rate", "one batch", "input", "other lengths" or "reach": that one
    alone. Raises CaptureError.
    """
    read = _Trials(run, frame, limits)
    makers: dict[str, Callable[[], Iterator[Verdict]]] = {
        "initial loss": read.initial_loss, "first step": partial(read.of, "first step", read.first_step),
        "learning rate": read.learning_rate, "one batch": partial(read.of, "one batch", read.one_batch),
        "input": partial(read.of, "input", partial(input_verdict, read)),
        "other lengths": partial(lengths_verdict, read), "reach": partial(reach_verdict, read),
    }  # fmt: skip
    return [verdict for name, make in makers.items() if only in ("", name) for verdict in make()]


class _Trials(Readings):
    """The trials of one frame."""

    group = "trial"

    def initial_loss(self) -> Iterator[Verdict]:
        values = self.array("initial_loss")
        if values is None or not np.isfinite(values).all():
            yield from self.refused("initial loss")
            return
        mean, even, name = float(values[0]), float(values[1]), self.channel("initial_loss")
        high, known = self.limit("high", HIGH), self.limit("known", KNOWN)
        trained = self.scalar("initial_loss/trained") > 0
        said = f"The loss is {mean:.3g} nat; even probabilities over {round(math.exp(even))} classes have {even:.3g}"
        if trained:
            yield Verdict(
                "initial loss", "holds", f"{said}; weights were loaded, so this is no first loss.", mean / even
            )
        elif mean > high * even:
            more = "the first outputs are confident and wrong: scale the last layer down, or look at the targets."
            yield Verdict("initial loss", "fault", f"{said}: {more}", mean / even, name)
        elif mean < min(known, even / high):
            more = "weights that are trained have that (load them as a checkpoint, and this is said); before training"
            yield Verdict("initial loss", "fact", f"{said}: {more} the targets reach the output.", mean / even, name)
        elif mean < even / high:
            more = "before training that is too little: the targets may be among the inputs."
            yield Verdict("initial loss", "fault", f"{said}: {more}", mean / even, name)
        else:
            yield Verdict("initial loss", "holds", f"{said}.", mean / even, name)

    def first_step(self, table: Numbers) -> Iterator[Verdict]:
        name = self.channel("first_step")
        channel = self.run.channel(name, self.frame)
        names = self.run.labels(channel.domain("parameter"), self.frame)
        gradient, ratio, lost = table
        still = [one for one, size in zip(names, gradient, strict=False) if size == 0]
        hidden = self.run.labels(UNFOUND, self.frame)
        if hidden:
            said = (
                f"The loss reaches {counted(len(hidden), 'parameter')} in a plain list, tuple or dictionary of the "
                f"model, where torch does not find {'it' if len(hidden) == 1 else 'them'}: {_named(hidden)}. No "
                "optimizer made of model.parameters(), no checkpoint and no .to(device) will have "
                f"{'it' if len(hidden) == 1 else 'them'}."
            )
            yield Verdict("first step", "fault", said, 0.0, name, remedy=IN_LISTS)
        yield from self._idle(still, len(gradient))
        most_lost = self.limit("lost", LOST)
        rounded = [one for one, part in zip(names, lost, strict=False) if part > most_lost]
        if rounded:
            part = "half" if most_lost == LOST else share(most_lost)
            said = f"Rounding takes more than {part} of the updates of {_named(rounded)}: one step of {channel.method}."
            yield Verdict("first step", "fault", said, float(np.nanmax(lost)), name)
        broken = [one for one, moved in zip(names, ratio, strict=False) if math.isinf(moved)]
        if broken:
            said = f"One step ({channel.method}) makes entries of {_named(broken)} NaN or infinite."
            yield Verdict("first step", "fault", said, math.inf, name)
        known = ratio[np.isfinite(ratio) & ~(gradient == 0)]
        if len(known):
            most = float(known.max())
            span = f"{known.min():.1e} to {most:.1e}" if len(known) > 1 else f"{most:.1e}"
            which = "the other parameters" if still else "parameters"
            said = f"One step ({channel.method}) moves {which} by {span} of their norms."
            yield Verdict("first step", "fact" if most > LARGE_RATIO else "holds", said, most, name)

    def _idle(self, still: Sequence[str], of: int) -> Iterator[Verdict]:
        """Parameters without a gradient: a fault, unless they have one in the next step or on other inputs."""
        name = self.channel("first_step")
        later, elsewhere = (self.run.labels(f"trial parameter that moves {one}", self.frame) for one in WHEN)
        kinds: tuple[tuple[Word, list[str], str], ...] = (
            ("fault", [one for one in still if one not in later and one not in elsewhere], "having no gradient: {}."),
            ("fact", [one for one in still if one in later], "but in the second one: {}. A factor that begins at 0 "
             "keeps the gradient from them."),
            ("fact", [one for one in still if one in elsewhere], "but on other inputs, drawn at random: {}. This "
             "input takes another way through the model."),
        )  # fmt: skip
        for word, names, more in kinds:
            if names:
                said = f"{counted(len(names), 'parameter')} of {of} would not move, {more.format(_named(names))}"
                yield Verdict("first step", word, said, 0.0, name)

    def learning_rate(self) -> Iterator[Verdict]:
        yield from self.refused("learning rate")
        for key, optimizer in (("sgd", "SGD"), ("adam", "Adam")):
            name = self.channel(f"learning_rate/{key}")
            critical, table = self.scalar(f"learning_rate/{key}"), self.array(f"learning_rate/{key}")
            if table is None:
                continue
            if math.isnan(critical):
                said = f"The loss rises with the smallest step of {optimizer} that was tried (rate {table[0, 0]:.1e})."
                yield Verdict("learning rate", "fault", said, math.nan, name)
                continue
            if math.isinf(critical):
                said = f"No step of {optimizer} up to rate {table[0, -1]:.1e} raises the loss of this batch."
            else:
                best = table[0, int(np.nanargmin(table[1]))]
                said = (
                    f"One step of {optimizer} lowers the loss of this batch up to rate {critical:.2g}, and most at "
                    f"{best:.1g}. A larger one raises it."
                )
            yield Verdict("learning rate", "fact", said, critical, name)
        yield from self._own_rate()

    def _own_rate(self) -> Iterator[Verdict]:
        """The next step of the training's own optimizer, where the subject or a watched training has one."""
        yield from (replace(one, test=OWN_STEP) for one in self.refused("learning rate/own"))
        critical, rate = self.scalar("learning_rate/own"), self.scalar("learning_rate/rate")
        if not math.isfinite(rate) or self.array("learning_rate/own") is None:
            return
        length = rate_length(rate, critical)
        word: Word = "fault" if length > EDGE else "fact" if length < SHORT else "holds"
        yield Verdict(OWN_STEP, word, f"{said_of_rate(rate, critical)}.", length, self.channel("learning_rate/own"))

    def one_batch(self, losses: Numbers) -> Iterator[Verdict]:
        name = self.channel("one_batch")
        if not np.isfinite(losses).all():
            yield _broken(losses, name)
            return
        first, least = float(losses[0]), float(losses.min())
        count = counted(len(losses) - 1, "step")  # the first loss is that before any
        part = least / first if first > 0 else math.nan
        said = f"In {count} of Adam the loss of this one batch went from {first:.3g} to {least:.3g}"
        if part <= self.limit("learned", LEARNED) or first <= 0:
            yield Verdict("one batch", "holds", f"{said}.", part, name)
            return
        unit = self.run.channel(name, self.frame).unit or ""
        if first * IN_NATS.get(unit, math.inf) <= self.limit("known", KNOWN):
            yield Verdict(
                "one batch", "holds", f"The loss of this one batch is {first:.3g} {unit} already.", part, name
            )
            return
        more = f" ({share(part)} of it): the model cannot learn even this by heart, or learns slowly at this rate."
        yield Verdict("one batch", "fault", f"{said}{more}", part, name)


def _broken(losses: Numbers, name: str) -> Verdict:
    """The verdict on losses of one batch of which the last is NaN or infinite: training ended there."""
    done = len(losses) - 1
    if not done:
        said = "The loss of this one batch is infinite or NaN before any step of training."
        return Verdict("one batch", "fault", said, math.nan, name, remedy=NOT_FINITE)
    said = f"Learning one batch by heart made the loss infinite or NaN after {counted(done, 'step')}."
    return Verdict("one batch", "fault", said, math.nan, name, remedy=BROKE)


def rate_length(rate: float, critical: float) -> float:
    """The length of a step in critical ones: 0 where none raises the loss, infinite where the smallest one does."""
    return math.inf if math.isnan(critical) else rate / critical


def said_of_rate(rate: float, critical: float) -> str:
    """A learning rate beside the critical one, as a sentence without its end."""
    if math.isnan(critical):
        return f"At learning rate {rate:.3g} the training's next step leads uphill: any part of it raises the loss"
    if math.isinf(critical):
        return f"The learning rate is {rate:.3g}; no step along the training's own that was tried raises the loss"
    length = rate / critical
    more = (
        ": it is longer than the longest that does not raise the loss of this batch" if length > EDGE
        else ": a step could be many times as long" if length < SHORT
        else ""
    )  # fmt: skip
    return (
        f"The learning rate is {rate:.3g}; along the training's own next step the critical one is {critical:.3g}, so "
        f"the step has {length:.2g} times the critical length{more}"
    )


def _named(names: Sequence[str]) -> str:
    """The first few names."""
    return ", ".join(names[:NAMES]) + (" …" if len(names) > NAMES else "")
