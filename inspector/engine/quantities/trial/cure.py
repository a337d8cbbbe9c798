"""Does a cure help? Two copies of the model are trained from where it is now, one as it is and one cured."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np

from inspector.engine.analyses.trial.lessons import lessons, own_training
from inspector.engine.analyses.trial.trial_steps import Trial
from inspector.engine.analyses.trial.trial_training import Copy, Loop, trained
from inspector.engine.errors import Unsupported
from inspector.engine.model.subject import Subject
from inspector.engine.registries import CURES, QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import Describe, per_run
from inspector.engine.trace.trace import Trace
from inspector.records import LOSS_UNIT, Option
from inspector.records.catalogue import LOSS

PLACE = "model"
VERSIONS = ("as it is", "cured")
ABOUT = Describe(
    kind="cure", compare="separate", unit=LOSS_UNIT, title="loss of training with a cure and without it",
    formula="mean loss of each batch before its step, of copies of the parameters",
    source="the same batches in the same order, and the same random numbers, for both of a seed",
    labels={"version": VERSIONS},
)  # fmt: skip
USUAL = 0.001
"""The learning rate where neither the request nor the subject says one: Adam's own default."""
OPTIONS = (
    Option(name="cure", type="choice", default="critical_rate", choices=tuple(CURES), help="What is tried."),
    Option(name="iterations", type="int", default=100, low=1, high=100_000, help="Steps of training of each copy."),
    Option(name="seeds", type="int", default=3, low=1, high=100, help="Orders of the batches, and random numbers."),
    Option(name="optimizer", type="choice", default="adam", choices=("adam", "adamw", "sgd"), help="Of both copies."),
    Option(
        name="rate",
        type="float",
        low=0.0,
        high=1e6,
        help=f"Learning rate as it is; without it that of the subject's own training, else {USUAL:g}.",
    ),
    Option(name="decay", type="float", default=0.0, low=0.0, high=1e6, help="Weight decay."),
)


@QUANTITIES.register("trial/cure")
@per_run(
    summary="whether a cure helps: copies trained with it and without it", order=93, default=False, needs=(LOSS,),
    cost="600 steps of training on its sequences", work=lambda run: run.call * 1800, options=OPTIONS,
)  # fmt: skip
def cure(
    trace: Trace, emit: Emitter, cure: str = "critical_rate", iterations: int = 100, seeds: int = 3,
    optimizer: str = "adam", rate: float | None = None, decay: float = 0.0,
) -> None:  # fmt: skip
    """Write (version, seed, iteration) losses, (version, seed) mean losses after the last step, and
    the scalar `trial/cure/NAME/batches`. With one batch and nothing random in the model all seeds are one."""
    name, loop = f"{PLACE}:trial/cure/{cure}", _loop(trace.subject, optimizer, rate, decay)
    losses, after = np.full((2, seeds, iterations), np.nan), np.full((2, seeds), np.nan)
    told = [loop.words, ""]
    try:
        trial = Trial(trace)
        given = lessons(trace, trial)
        for turn in range(2 * seeds):
            seed, cured = divmod(turn, 2)
            trial.batch = given.judging[0]
            copy = Copy(trial, replace(loop))
            told[1] = CURES[cure].apply(copy) if cured else told[1]
            tell = partial(_tell, emit, cure, turn * iterations, 2 * seeds * iterations)
            losses[cured, seed], after[cured, seed] = trained(copy, given, iterations, seed, tell)
    except Unsupported as reason:
        emit.refuse(name, str(reason))
        return
    own = ["steps by the subject's own train_step"] if trace.subject.train_step is not None else []
    method = "; ".join([*told, given.words, *own])
    title = {"title": f"{CURES[cure].title}: {ABOUT.title}", "method": method}
    emit.array(ABOUT.channel(name, ("version", "seed", "iteration"), losses.shape, "float64", **title), losses)
    emit.array(ABOUT.channel(f"{name}/after", ("version", "seed"), after.shape, "float64", **title), after)
    emit.scalar(f"trial/cure/{cure}/batches", float(len(given.judging)))


def _tell(emit: Emitter, cure: str, before: int, whole: int, done: int) -> None:
    emit.check()
    emit.progress(before + done, whole, cure)


def _loop(subject: Subject, optimizer: str, rate: float | None, decay: float) -> Loop:
    """As it was asked for; rate and clipping as in the subject's own training, where it says them."""
    own = own_training(subject)
    said, clip = getattr(own, "rate", None), getattr(own, "clip", None)
    rate = rate if rate is not None else USUAL if said is None else float(said)
    return Loop(optimizer=optimizer, rate=rate, decay=decay, clip=math.inf if clip is None else float(clip))
