"""What trials of cures say: whether the cured copies of a model ended with a lower loss than those as it was."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from inspector.analysis.before_training.verdicts import Numbers, Tested
from inspector.capture.added import TRIALS
from inspector.records import Channel, Refusal, counted

KIND, QUANTITY = "cure", "trial/cure"
BY_ITERATION, AFTER = ("version", "seed", "iteration"), ("version", "seed")
Outcome = Literal["helped", "no difference", "did harm", "one seed"]
WORDS: dict[Outcome, str] = {
    "helped": "it helped", "no difference": "no difference beyond the spread of the seeds", "did harm": "it did harm",
    "one seed": "one seed, which says nothing of the spread",
}  # fmt: skip
ALIKE = "nothing differs from seed to seed: it is one trial, which says nothing of the spread"
"""What is said where seeds draw the same batch and nothing in the model is random: their agreement shows nothing."""
JUDGED_TOO = ", which judge the copies too"
"""The end of what a method says of the batches, where those of training are not drawn anew."""
BY_HEART = "The copies were judged by what they learned from ({}), which they may know by heart: training.draw of the \
subject gives new batches."
ERRORS = 2.0
"""Standard errors that a difference has to exceed, besides having one sign in every seed. Counter-example: three seeds
that agree by chance, one time in four."""


@dataclass(frozen=True, slots=True)
class Tried:
    """One cure that was tried.

    Attributes:
        cure: its key. title: with what it is shown. method: how both copies were trained, and what was changed.
        channel: its losses (version, seed, iteration).
        outcome: what the losses after the last step say.
        difference, spread: by how much the cured copies' loss is lower, the mean over the seeds and its standard error
            (NaN of one seed, and of seeds that do not differ); NaN where the loss of either was not finite.
        lower, seeds: in how many of the seeds it is lower.
    """

    cure: str
    title: str
    method: str
    channel: str
    outcome: Outcome
    difference: float
    spread: float
    lower: int
    seeds: int
    sentence: str


def tried(run: Tested, frame: int = -1) -> list[Tried]:
    """Every cure that was tried in a frame, by name. Raises CaptureError."""
    every = [one for one in run.channels.values() if one.kind == KIND and one.dims == AFTER]
    found = [one for one in every if 0 not in one.shape and run.revision(one.name, frame)]  # 0: it was taken out again
    return [_judged(one, losses_of(run, one.name, frame), run, frame) for one in found]


def losses_of(run: Tested, name: str, frame: int = -1) -> Numbers:
    """The numbers of a trial as floats, what is damaged as NaN. Where a longer trial, or one of more seeds, was
    replaced, its numbers beyond the new ones are left out. Raises CaptureError."""
    shape = run.channel(name, frame).shape
    return _known(run.array(name, frame))[tuple(slice(size) for size in shape)]


def not_tried(refusals: Iterable[Refusal]) -> dict[str, str]:
    """{key of a cure that could not be tried: why}."""
    found = {one.channel: one.reason for one in refusals if TRIALS in one.channel}
    return {channel.partition(TRIALS)[2]: reason for channel, reason in found.items()}


def request_for(cures: Sequence[str], **options: Any) -> str:
    """The request of a run that tries these cures, one at least; options that are None are left out."""
    given = {"cure": cures[0], "more": "+".join(cures[1:]) or None, **options}
    return "@".join([QUANTITY, *(f"{name}={value}" for name, value in given.items() if value is not None)])


def plain(one: Tried) -> dict[str, Any]:
    """The fields of a trial, as JSON has them: null for a number that is not finite."""
    return {
        key: None if isinstance(value, float) and not math.isfinite(value) else value
        for key, value in asdict(one).items()
    }


def _known(values: Any) -> Numbers:
    """As floats, what is damaged as NaN."""
    found: Numbers = np.ma.filled(np.ma.asarray(values).astype(np.float64), np.nan)
    return found


def _judged(channel: Channel, after: Numbers, run: Tested, frame: int) -> Tried:
    losses = channel.name.removesuffix("/after")
    differences = after[0] - after[1]
    mean = float(differences.mean())
    lower, seeds = int((differences > 0).sum()), len(differences)
    alone = seeds == 1 or bool((after == after[:, :1]).all())
    spread = math.nan if alone else float(differences.std(ddof=1) / math.sqrt(seeds))
    outcome = _outcome(mean, spread, lower, seeds, np.isfinite(after).sum(axis=1))
    described = run.channel(losses, frame).shape[-1]
    steps = min(run.extent(losses, frame)[-1], described if described is not None else 1 << 62)
    title = channel.title.partition(":")[0]
    word = ALIKE if outcome == "one seed" and seeds > 1 else WORDS[outcome]
    said = f"{title}: {word}. After {counted(steps, 'step', ',')}, {_body(after, spread, channel.unit)}"
    seen = next((part for part in channel.method.split("; ") if part.endswith(JUDGED_TOO)), "")
    said += f" {BY_HEART.format(seen.removesuffix(JUDGED_TOO))}" if seen else ""
    return Tried(
        losses.rpartition("/")[2], title, channel.method, losses, outcome, mean, spread, lower, seeds, said
    )  # fmt: skip


def _body(after: Numbers, spread: float, unit: str) -> str:
    """By how much, with the spread and in how many seeds; or how many copies diverged."""
    (before, cured), differences = after, after[0] - after[1]
    seeds, ended = len(differences), np.isfinite(after).sum(axis=1)
    if ended.min() < seeds:
        return (
            f"the loss of {ended[0]} of {seeds} copies as they are and of {ended[1]} of {seeds} cured ones is finite."
        )
    mean, of_what = float(differences.mean()), "" if unit in ("", "1") else f" {unit}"
    errors = "" if math.isnan(spread) else f" ± {spread:.2g}"
    range_ = f"{before.mean():.3g} → {cured.mean():.3g}"
    sign, count = ("higher", (differences < 0).sum()) if mean < 0 else ("lower", (differences > 0).sum())
    where = "" if math.isnan(spread) and seeds > 1 else f"; {sign} in {count} of {counted(seeds, 'seed')}"
    return f"the cured loss is {abs(mean):.3g}{errors}{of_what} {sign} ({range_}{where})."


def _outcome(mean: float, spread: float, lower: int, seeds: int, ended: Numbers) -> Outcome:
    if ended[0] != ended[1]:  # a copy that diverges is worse than any that does not
        return "helped" if ended[1] > ended[0] else "did harm"
    if math.isnan(mean):
        return "no difference"
    if math.isnan(spread):  # of trials that are all the same, one that changed nothing changes nothing in others
        return "one seed" if mean or seeds == 1 else "no difference"
    if lower in (0, seeds) and abs(mean) > ERRORS * spread and mean:
        return "helped" if mean > 0 else "did harm"
    return "no difference"
