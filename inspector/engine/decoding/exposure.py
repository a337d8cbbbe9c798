"""What a model says after its own symbols, and after the right ones, of several sequences: does one wrong symbol make
the next ones wrong too (exposure bias)?

At each step it is asked twice: after the right beginning (teacher forcing), and after what it has said itself, the
likeliest symbol at each step. Where both beginnings are the same, so is the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice

import numpy as np
import numpy.typing as npt
from torch import Tensor

from inspector.engine.decoding.channels import PLACE
from inspector.engine.decoding.drift import SOURCE
from inspector.engine.decoding.next_tokens import NextTokens
from inspector.engine.decoding.right_answer import right_answer
from inspector.engine.errors import InputError, ModelError, model_error
from inspector.engine.model.batch import Batch, selected
from inspector.engine.model.named_batches import of_example
from inspector.engine.model.subject import Subject
from inspector.engine.trace.emitter import Emitter
from inspector.records import ANSWER_DOMAIN, Channel

Floats = npt.NDArray[np.float64]
MOST = 24
"""Sequences that are looked at: an answer of t symbols takes t calls for each."""
STATISTICS = ("forced", "free", "free after a wrong one", "forced at these steps")


def write_exposure(subject: Subject, batch: Batch, seed: int, longest: int, emit: Emitter) -> None:
    """Write the share of wrong symbols by step of both ways, and by sequence (STATISTICS); nothing of one sequence.

    The sequences are those of the batch, or, of one alone, the subject's data.
    """
    try:
        found = list(_found(subject, batch, seed, longest, emit))
    except (InputError, ModelError) as problem:  # of one of the others: this sequence was decoded
        emit.refuse(f"{PLACE}:drift/sequences", str(problem))
        return
    if len(found) < 2:
        return
    steps = max(one.shape[1] for one in found)
    table = np.full((2, len(found), steps), np.nan)
    for n, one in enumerate(found):
        table[:, n, : one.shape[1]] = one
    _write(table, emit)


def _found(subject: Subject, batch: Batch, seed: int, longest: int, emit: Emitter) -> Iterator[Floats]:
    for number, one in enumerate(_sequences(subject, batch)):
        emit.progress(number, MOST, f"sequence {number + 1}, after its own tokens and after the right ones")
        right = right_answer(subject, one, seed)[:longest]
        if right:
            yield wrong_symbols(NextTokens(subject, one, seed), right, subject.end_token, emit.check)


def wrong_symbols(
    ask: Callable[[Sequence[tuple[int, ...]]], Tensor], right: Sequence[int], end: int | None,
    check: Callable[[], None] = lambda: None,
) -> Floats:  # fmt: skip
    """(2, t): 1 where the symbol is wrong that is likeliest after the right beginning, and after what was said so far;
    NaN for what would come after an end that was said."""
    found, said, ended = np.full((2, len(right)), np.nan), tuple[int, ...](), False
    for t, wanted in enumerate(right):
        check()
        forced = tuple(right[:t])
        rows = ask([forced] if ended or said == forced else [forced, said])
        likeliest = rows.argmax(-1).tolist()
        found[0, t] = likeliest[0] != wanted
        if not ended:
            found[1, t] = likeliest[-1] != wanted
            said, ended = (*said, likeliest[-1]), likeliest[-1] == end
    return found


def by_sequence(table: Floats) -> Floats:
    """(4, n) shares of wrong symbols of each sequence (STATISTICS), of (2, n, t); NaN without a wrong symbol before."""
    forced, free = table
    after = np.cumsum(np.nan_to_num(free), axis=1) - np.nan_to_num(free) > 0
    after &= np.isfinite(free)
    parts = (forced, free, np.where(after, free, np.nan), np.where(after, forced, np.nan))
    return np.stack([_mean(part, 1) for part in parts])


def _mean(values: Floats, axis: int) -> Floats:
    known = np.isfinite(values).sum(axis=axis)
    with np.errstate(invalid="ignore", divide="ignore"):
        found: Floats = np.nansum(values, axis=axis) / known
    return found


def _write(table: Floats, emit: Emitter) -> None:
    count = table.shape[1]
    for name, title, values in zip(
        ("drift/forced_wrong", "drift/free_wrong"),
        ("wrong after the right tokens", "wrong after its own tokens"), table, strict=True,
    ):  # fmt: skip
        channel = Channel(
            name=f"{PLACE}:{name}", kind=PLACE, dims=("step",), shape=(table.shape[2],), dtype="float64", unit="1",
            title=title, formula="share of the sequences whose likeliest token is not the right one",
            source=SOURCE, domains={"step": ANSWER_DOMAIN}, compare="separate", method=f"{count} sequences",
        )  # fmt: skip
        emit.array(channel, _mean(values, 0))
    channel = Channel(
        name=f"{PLACE}:drift/sequences", kind=PLACE, dims=("statistic", "sequence"), shape=(len(STATISTICS), count),
        dtype="float64", unit="1", title="share of wrong tokens by sequence", formula="mean over the answer's tokens",
        source=SOURCE, labels={"statistic": STATISTICS}, compare="separate",
    )  # fmt: skip
    emit.array(channel, by_sequence(table))


def _sequences(subject: Subject, batch: Batch) -> Iterator[Batch]:
    """Batches of one sequence: those that are given together, or, of one alone, the subject's data."""
    if batch.size > 1 or subject.data is None:
        yield from (selected(batch, [n]) for n in range(min(batch.size, MOST)))
        return
    try:
        given = subject.data() if callable(subject.data) else subject.data
        for one in islice(given.values() if hasattr(given, "values") else given, MOST):
            yield of_example(subject, one, "")
    except (InputError, ModelError):
        raise
    except (Exception, SystemExit) as fault:  # the user's code may raise anything
        raise model_error(fault, f"The data of {subject.name}") from fault
