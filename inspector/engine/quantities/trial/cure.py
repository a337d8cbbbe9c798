"""Does a cure help? Two copies of the model are trained from where it is now, one as it is and one cured."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from functools import partial
from itertools import islice

import numpy as np
import torch

from inspector.engine.analyses.trial.trial_steps import Trial
from inspector.engine.analyses.trial.trial_training import Copy, Loop, trained
from inspector.engine.errors import InputError, Unsupported
from inspector.engine.model.batch import Batch
from inspector.engine.model.joining import joined, shape_key
from inspector.engine.registries import CURES, QUANTITIES
from inspector.engine.sources import EXAMPLES, OWN, items
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import Describe, per_run
from inspector.engine.trace.trace import Trace
from inspector.records import LOSS_UNIT, Option, counted, data_spec
from inspector.records.catalogue import LOSS

PLACE = "model"
VERSIONS = ("as it is", "cured")
ABOUT = Describe(
    kind="cure", compare="separate", unit=LOSS_UNIT, title="loss of training with a cure and without it",
    formula="mean loss of each batch before its step, of copies of the parameters",
    source="the same batches in the same order, and the same random numbers, for both of a seed",
    labels={"version": VERSIONS},
)  # fmt: skip
TOGETHER, SEQUENCES = 16, 256
"""Sequences of a batch, where its subject has so many of one length; and how many are read."""
OPTIONS = (
    Option(name="cure", type="choice", default="critical_rate", choices=tuple(CURES), help="What is tried."),
    Option(name="iterations", type="int", default=100, low=1, high=100_000, help="Steps of training of each copy."),
    Option(name="seeds", type="int", default=3, low=1, high=100, help="Orders of the batches, and random numbers."),
    Option(name="optimizer", type="choice", default="adam", choices=("adam", "adamw", "sgd"), help="Of both copies."),
    Option(name="rate", type="float", default=0.001, low=0.0, high=1e6, help="Learning rate as it is."),
    Option(name="decay", type="float", default=0.0, low=0.0, high=1e6, help="Weight decay."),
)


@QUANTITIES.register("trial/cure")
@per_run(
    summary="whether a cure helps: copies trained with it and without it", order=93, default=False, needs=(LOSS,),
    cost="600 steps of training on its sequences", work=lambda run: run.call * 1800, options=OPTIONS,
)  # fmt: skip
def cure(
    trace: Trace, emit: Emitter, cure: str = "critical_rate", iterations: int = 100, seeds: int = 3,
    optimizer: str = "adam", rate: float = 0.001, decay: float = 0.0,
) -> None:  # fmt: skip
    """Write (version, seed, iteration) losses, (version, seed) mean losses over all batches after the last step, and
    the scalar `trial/cure/NAME/batches`. With one batch and nothing random in the model all seeds are one."""
    name, loop = f"{PLACE}:trial/cure/{cure}", Loop(optimizer=optimizer, rate=rate, decay=decay)
    losses, after = np.full((2, seeds, iterations), np.nan), np.full((2, seeds), np.nan)
    told = [loop.words, ""]
    try:
        trial = Trial(trace)
        batches = _batches(trace, trial)
        for turn in range(2 * seeds):
            seed, cured = divmod(turn, 2)
            trial.batch = batches[0]
            copy = Copy(trial, replace(loop))
            told[1] = CURES[cure].apply(copy) if cured else told[1]
            tell = partial(_tell, emit, cure, turn * iterations, 2 * seeds * iterations)
            losses[cured, seed], after[cured, seed] = trained(copy, batches, iterations, seed, tell)
    except (Unsupported, InputError) as reason:  # data that can be read once only, say
        emit.refuse(name, str(reason))
        return
    sequences = sum(batch.size for batch in batches)
    method = f"{told[0]}; {told[1]}; {counted(sequences, 'sequence')} in {counted(len(batches), 'call')}"
    title = {"title": f"{CURES[cure].title}: {ABOUT.title}", "method": method}
    emit.array(ABOUT.channel(name, ("version", "seed", "iteration"), losses.shape, "float64", **title), losses)
    emit.array(ABOUT.channel(f"{name}/after", ("version", "seed"), after.shape, "float64", **title), after)
    emit.scalar(f"trial/cure/{cure}/batches", float(len(batches)))


def _tell(emit: Emitter, cure: str, before: int, whole: int, done: int) -> None:
    emit.check()
    emit.progress(before + done, whole, cure)


def _batches(trace: Trace, trial: Trial) -> list[Batch]:
    """Equally long sequences of the subject's own data, or of its examples, together; else the batch of the run.

    One by one where the model cannot take several at once.
    """
    subject = trace.subject
    source = OWN if subject.data is not None else EXAMPLES if len(subject.examples) > 1 else ""
    if not source:
        return [trial.batch]
    read = islice(items(subject, data_spec(source), trace.seed), SEQUENCES)
    alone = [subject.placed(item.batch) for item in read if item.batch is not None]
    groups = dict[Hashable, list[Batch]]()
    for one in alone:
        groups.setdefault(shape_key(one), []).append(one)
    together = [joined(group[n : n + TOGETHER]) for group in groups.values() for n in range(0, len(group), TOGETHER)]
    try:
        for batch in {one.size: one for one in together}.values():
            trial.batch = batch
            with trial.ready(), torch.no_grad():
                trial.loss()
    except Unsupported:
        together = alone
    return together or [trial.batch]
