"""What copies of a model learn from while a cure is tried, and the batches by which they are judged afterwards.

A subject may say how it is trained: `training.draw(generator)` gives the next batch, as samples have it. Without that
the copies learn from equally long sequences of its data, or of its examples, or from the batch of the run.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import torch

from inspector.analysis.cures import JUDGED_TOO
from inspector.engine.analyses.trial.trial_steps import Trial
from inspector.engine.errors import InputError, Unsupported, model_error
from inspector.engine.model.batch import Batch
from inspector.engine.model.joining import joined, shape_key
from inspector.engine.model.named_batches import assemble
from inspector.engine.model.subject import Subject
from inspector.records import counted

TOGETHER = 16
"""Sequences of a batch, where its subject has so many of one length."""
JUDGING, JUDGED_BY = 8, 715_225_739
"""How many drawn batches judge the copies, and the seed that they are drawn with: no usual one, since they are to be
none that the copies learn from. Counter-example: a task with so few sequences that every draw has the same ones."""


@dataclass(frozen=True)
class Lessons:
    """Attributes:
    judging: the batches whose mean loss is told after the last step.
    order: the batches of training, without an end, from a seed.
    words: what they are, in a few words.
    """

    judging: Sequence[Batch]
    order: Callable[[int], Iterator[Batch]]
    words: str


def own_training(subject: Subject) -> Any:
    """How a subject says that it is trained; None where it does not (an attribute of that name may be anything)."""
    said = subject.training
    return said if callable(getattr(said, "draw", None)) else None


def lessons(trial: Trial, alone: Callable[[], Sequence[Batch]]) -> Lessons:
    """The lessons of a run's subject, where it does not say how it is trained from sequences one by one (`alone`), none
    of them: the batch of the run. Raises Unsupported where its own draw fails."""
    training = own_training(trial.subject)
    if training is None:
        batches = _together(trial, alone())
        size = counted(sum(batch.size for batch in batches), "sequence")
        words = f"{size} in {counted(len(batches), 'call')}{JUDGED_TOO}"
        return Lessons(batches, partial(_shuffled, batches), words)
    draws = partial(_drawn, trial.subject, training)
    return Lessons(list(islice(draws(JUDGED_BY), JUDGING)), draws, "batches of its own training, drawn anew each step")


def _shuffled(batches: Sequence[Batch], seed: int) -> Iterator[Batch]:
    """Each batch once before any comes again, in orders that the seed decides."""
    drawn = np.random.default_rng(seed)
    while True:
        yield from (batches[number] for number in drawn.permutation(len(batches)).tolist())


def training_batches(subject: Subject, seed: int) -> Iterator[Batch]:
    """The batches that a subject draws where it says how it is trained; without an end. Raises Unsupported."""
    training = own_training(subject)
    yield from () if training is None else _drawn(subject, training, seed)


def _drawn(subject: Subject, training: Any, seed: int) -> Iterator[Batch]:
    generator = torch.Generator().manual_seed(seed)
    while True:
        try:
            batch = _as_batch(subject, training.draw(generator))
        except (Exception, SystemExit) as fault:  # noqa: BLE001 - the user's code may raise anything
            raise Unsupported(str(model_error(fault, "training.draw of the subject"))) from None
        yield subject.placed(batch)


def _as_batch(subject: Subject, drawn: Any) -> Batch:
    """A batch of the engine from one with inputs, lengths, targets, and `named` where the model reads several.

    Raises InputError where an input is missing.
    """
    if isinstance(drawn, Batch):
        return drawn
    if not subject.declared:
        return Batch(drawn.inputs, drawn.lengths, targets=getattr(drawn, "targets", None))
    named = getattr(drawn, "named", None) or {subject.primary: drawn}
    if unknown := [name for name in named if name not in subject.declared]:
        raise InputError(f"it draws {', '.join(unknown)}; the model reads {', '.join(subject.declared)}.")
    parts = {name: Batch(one.inputs, one.lengths) for name, one in named.items()}
    return assemble(subject, subject.declared, parts, targets=getattr(drawn, "targets", None))


def _together(trial: Trial, alone: Sequence[Batch]) -> Sequence[Batch]:
    """Equally long sequences in one batch; one by one where the model cannot take several at once."""
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
        return alone
    return together or [trial.batch]
