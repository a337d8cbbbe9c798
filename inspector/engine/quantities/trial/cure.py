"""Does a cure help? Two copies of the model are trained from where it is now, one as it is and one cured."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from itertools import islice

import numpy as np
import numpy.typing as npt

from inspector.engine.analyses.trial.lessons import Lessons, lessons
from inspector.engine.analyses.trial.loop_of_training import USUAL, loop_of
from inspector.engine.analyses.trial.trial_steps import Trial
from inspector.engine.analyses.trial.trial_training import Copy, Loop, trained
from inspector.engine.errors import InputError, Unsupported
from inspector.engine.model.subject import Batch
from inspector.engine.registries import CURES, QUANTITIES
from inspector.engine.sources import EXAMPLES, OWN, items
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import Describe, per_run
from inspector.engine.trace.trace import Trace
from inspector.records import LOSS_UNIT, Option, data_spec
from inspector.records.catalogue import LOSS
from inspector.records.plain_text import shortened

PLACE = "model"
VERSIONS = ("as it is", "cured")
ABOUT = Describe(
    kind="cure", compare="separate", unit=LOSS_UNIT, title="loss of training with a cure and without it",
    formula="mean loss of each batch before its step, of copies of the parameters",
    source="the same batches in the same order, and the same random numbers, for both of a seed",
    labels={"version": VERSIONS},
)  # fmt: skip
Tried = tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], str]
"""(seed, iteration) losses, (seed,) losses after the last step, and how the copies were trained."""
SEQUENCES = 256
"""How many of a subject's own are read."""
OPTIONS = (
    Option(name="cure", type="choice", default="critical_rate", choices=tuple(CURES), help="What is tried."),
    Option(name="iterations", type="int", default=100, low=1, high=100_000, help="Steps of training of each copy."),
    Option(name="seeds", type="int", default=3, low=1, high=100, help="Orders of the batches, and random numbers."),
    Option(
        name="optimizer", type="choice", default="own", choices=("own", "adam", "adamw", "sgd"),
        help="Of both copies; own: that of the training where it is known, else adam.",
    ),
    Option(
        name="rate",
        type="float",
        low=0.0,
        high=1e6,
        help=f"Learning rate as it is; without it that of the subject's own training, else {USUAL:g}.",
    ),
    Option(name="decay", type="float", low=0.0, high=1e6, help="Weight decay; without it that of the optimizer."),
    Option(name="more", type="text", default="", help="Other cures beside it, joined by +."),
    Option(name="recorded", type="text", default="", help="The optimizer that a watched training had, as its JSON."),
)  # fmt: skip


@QUANTITIES.register("trial/cure")
@per_run(
    summary="whether a cure helps: copies trained with it and without it", order=93, default=False, needs=(LOSS,),
    cost="600 steps of training on its sequences", work=lambda run: run.call * 1800, options=OPTIONS,
)  # fmt: skip
def cure(
    trace: Trace, emit: Emitter, cure: str = "critical_rate", iterations: int = 100, seeds: int = 3,
    optimizer: str = "own", rate: float | None = None, decay: float | None = None, more: str = "", recorded: str = "",
) -> None:  # fmt: skip
    """Write of each cure (version, seed, iteration) losses, (version, seed) mean losses after the last step, and the
    scalar `trial/cure/NAME/batches`. With one batch and nothing random in the model all seeds are one."""
    keys = list(dict.fromkeys([cure, *more.split("+")]))
    known = [key for key in keys if key in CURES]
    for key in keys:
        if key and key not in CURES:
            emit.refuse(
                f"{PLACE}:trial/cure/{shortened(key, 80)}",
                f"There is no cure {shortened(key, 80)!r}; there are {', '.join(CURES)}.",
            )
    try:
        trial = Trial(trace)
        loop = loop_of(trial, optimizer, rate, decay, recorded)
        trying = _Trying(
            trial, lessons(trial, partial(_sequences, trace)), loop, iterations, seeds, emit, (1 + len(known)) * seeds
        )
        plain = trying.of_all_seeds(None)
    except (Unsupported, InputError) as reason:  # data that can be read once only, say
        for key in known:
            emit.refuse(f"{PLACE}:trial/cure/{key}", str(reason))
        return
    for key in known:
        try:
            _write(trying, key, plain, trying.of_all_seeds(key))
        except (Unsupported, InputError) as reason:  # data that can be read once only, say
            emit.refuse(f"{PLACE}:trial/cure/{key}", str(reason))


@dataclass
class _Trying:
    """Copies of one model, trained on the same lessons with each seed."""

    trial: Trial
    given: Lessons
    loop: Loop
    iterations: int
    seeds: int
    emit: Emitter
    trainings: int
    begun: int = 0

    def of_all_seeds(self, key: str | None) -> Tried:
        """As it is for no key. Raises Unsupported."""
        losses, after, told = np.full((self.seeds, self.iterations), np.nan), np.full(self.seeds, np.nan), ""
        for seed in range(self.seeds):
            self.trial.batch = self.given.judging[0]
            copy = Copy(self.trial, replace(self.loop), seed=seed)
            told = CURES[key].apply(copy) if key is not None else self.loop.words
            what = f"the model {VERSIONS[0]} is trained" if key is None else CURES[key].title
            tell = partial(self._tell, what, self.begun * self.iterations)
            losses[seed], after[seed] = trained(copy, self.given, self.iterations, seed, tell)
            self.begun += 1
        return losses, after, told

    def _tell(self, what: str, before: int, done: int) -> None:
        self.emit.check()
        self.emit.progress(before + done, self.trainings * self.iterations, what)


def _write(trying: _Trying, key: str, plain: Tried, cured: Tried) -> None:
    """The channels of one cure."""
    emit, given = trying.emit, trying.given
    name, losses, after = f"{PLACE}:trial/cure/{key}", np.stack([plain[0], cured[0]]), np.stack([plain[1], cured[1]])
    own = ["steps by the subject's own train_step"] if trying.trial.subject.train_step is not None else []
    title = {
        "title": f"{CURES[key].title}: {ABOUT.title}", "method": "; ".join([plain[2], cured[2], given.words, *own])
    }  # fmt: skip
    emit.array(ABOUT.channel(name, ("version", "seed", "iteration"), losses.shape, "float64", **title), losses)
    emit.array(ABOUT.channel(f"{name}/after", ("version", "seed"), after.shape, "float64", **title), after)
    emit.scalar(f"trial/cure/{key}/batches", float(len(given.judging)))


def _sequences(trace: Trace) -> list[Batch]:
    """One by one those of the subject's own data, or of its examples where it has several."""
    subject = trace.subject
    source = OWN if subject.data is not None else EXAMPLES if len(subject.examples) > 1 else ""
    read = islice(items(subject, data_spec(source), trace.seed), SEQUENCES) if source else ()
    return [subject.placed(item.batch) for item in read if item.batch is not None]
