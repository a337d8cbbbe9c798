"""How far a model that continues a sequence gets away from its data once it goes on from its own tokens (exposure
bias), over many sequences, where no answer is the right one.

The second halves of sequences are compared with second halves that the model draws itself after the same first halves
(from its own probabilities, at temperature 1). Of a model that knows the distribution of the data both are draws from
one distribution, so nothing that is measured of them differs but by chance; one that is lost after its own tokens is
less and less sure of what comes next, and one that is caught in a loop repeats itself more and more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from inspector.engine.analyses.trial.lessons import own_training, training_batches
from inspector.engine.decoding.channels import PLACE
from inspector.engine.errors import InputError, ModelError, Unsupported, model_error
from inspector.engine.hooks.isolation import unchanged
from inspector.engine.model.batch import Batch, NamedInput, selected
from inspector.engine.model.batching import as_input
from inspector.engine.model.named_batches import of_example
from inspector.engine.model.subject import Subject
from inspector.engine.trace.emitter import Emitter
from inspector.records import Channel

Floats = npt.NDArray[np.float64]
MOST = 64
"""Sequences that are continued: one call for each token of them all."""
LEAST, SHORTEST = 2, 16
"""Sequences, and tokens of each, without which nothing is compared."""
LONGEST = 512
GRAM = 4
"""Tokens that have stood in the sequence in this order before are a repetition."""
STATISTICS = (
    "entropy at first", "entropy later", "own entropy at first", "own entropy later",
    "repetitions at first", "repetitions later", "own repetitions at first", "own repetitions later",
)  # fmt: skip
SOURCE = "Braverman et al. 2020, arXiv 1906.05664 (entropy of own continuations); Bengio et al. 2015"
SEQUENCES = f"{PLACE}:drift/continued"


def write_own_continuation(subject: Subject, batch: Batch, seed: int, longest: int, emit: Emitter) -> None:
    """Write entropy and repetitions by step and by sequence, of the data and of the model's own continuations."""
    try:
        rows = halves(_sequences(subject, batch, seed), longest)
        if rows is None:
            return
        text = "sequences, continued by themselves and by the model"
        forced, own = compared(subject, batch, rows, seed, lambda done, total: _tell(emit, done, total, text))
    except (InputError, ModelError, Unsupported) as problem:  # of one of the others: this sequence was decoded
        emit.refuse(SEQUENCES, str(problem))
        return
    _write(forced, own, len(rows), emit)


def halves(sequences: Iterator[Tensor], longest: int) -> Tensor | None:
    """(n, t) the beginnings of equal length of sequences, those that are shorter left out; None of too few or too short
    ones. t is even, and as long as three quarters of the sequences are."""
    found = [one for one in islice(sequences, MOST) if len(one) >= SHORTEST]
    if len(found) < LEAST:
        return None
    length = int(np.quantile([len(one) for one in found], 0.25, method="lower"))
    length = min(length, 2 * longest, LONGEST) // 2 * 2
    return None if length < SHORTEST else torch.stack([one[:length] for one in found if len(one) >= length])


def compared(
    subject: Subject,
    batch: Batch,
    rows: Tensor,
    seed: int,
    tell: Callable[[int, int], None] = lambda *_: None,
) -> tuple[Floats, Floats]:
    """Two times (2, n, t / 2), entropy in nats and 1 where the last GRAM tokens stood there before: of the second
    halves of `rows` (n, t), and of those that the model draws. Raises InputError or ModelError."""
    half = rows.shape[1] // 2
    said, generator = rows[:, :half].clone(), torch.Generator().manual_seed(seed)
    entropies = []
    for step in range(half):
        scores = _scores(subject, batch, said, seed)[:, -1]
        entropies.append(entropy(scores))
        drawn = torch.multinomial(torch.softmax(scores, -1), 1, generator=generator)
        said = torch.cat((said, drawn.to(said.dtype)), 1)
        tell(step + 1, half)
    known = entropy(_scores(subject, batch, rows, seed)[:, half - 1 : -1])
    own = np.stack([torch.stack(entropies, 1).numpy(), repeated(said)[:, half:]])
    return np.stack([known.numpy(), repeated(rows)[:, half:]]), own


def entropy(scores: Tensor) -> Tensor:
    """(…,) −Σ p ln p in nats of scores (…, v), float64; 0 · ln 0 is 0."""
    logs = torch.log_softmax(scores.double(), -1)
    return -torch.where(logs > -torch.inf, logs.exp() * logs, 0.0).sum(-1)


def repeated(rows: Tensor) -> Floats:
    """(n, t) 1 where the GRAM tokens that end there have stood in the row before."""
    found = np.zeros(tuple(rows.shape))
    for number, row in enumerate(rows.tolist()):
        seen = set[tuple[int, ...]]()
        for end in range(GRAM, len(row) + 1):
            gram = tuple(row[end - GRAM : end])
            found[number, end - 1] = gram in seen
            seen.add(gram)
    return found


def by_sequence(forced: Floats, own: Floats) -> Floats:
    """(8, n) means of each sequence (STATISTICS): of the first quarter of its second half, and of the last half."""
    steps = forced.shape[2]
    first, later = slice(0, max(1, steps // 4)), slice(steps // 2, None)
    means = [[one[n][:, part].mean(1) for part in (first, later)] for n in (0, 1) for one in (forced, own)]
    return np.stack([row for pair in means for row in pair])


def _scores(subject: Subject, batch: Batch, rows: Tensor, seed: int) -> Tensor:
    """(n, t, v) float64 on the CPU. Raises InputError or ModelError."""
    name = batch.primary
    view = subject.view(name, subject.declared[name]) if subject.declared else subject
    one: NamedInput = replace(as_input(view, list(rows)), axis=batch.first.axis)
    try:
        with unchanged(subject.model, seed), torch.no_grad():
            found = subject.scores(subject.run(subject.placed(Batch.of({name: one}, name, title=batch.title))))
    except (InputError, ModelError):
        raise
    except (Exception, SystemExit) as fault:  # the user's code may raise anything
        raise model_error(fault) from fault
    if found is None or found.shape[:2] != rows.shape:
        raise InputError(f"{subject.name} gives no scores for each step of several sequences, so none are continued.")
    if not bool(torch.isfinite(found.detach().amax(-1)).all()):
        raise ModelError("After some beginnings the scores have NaN or infinity, so sequences are not continued.")
    return found.detach().double().cpu()


def _sequences(subject: Subject, batch: Batch, seed: int) -> Iterator[Tensor]:
    """Ids (t,) of the sequences of the batch, or, of one alone, of the subject's data, else of how it is trained."""
    if batch.size > 1:
        yield from (_ids(selected(batch, [n])) for n in range(batch.size))
        return
    try:
        if subject.data is not None:
            given = subject.data() if callable(subject.data) else subject.data
            yield from (_ids(of_example(subject, one, "")) for one in _values(given))
        elif own_training(subject) is not None:
            for several in training_batches(subject, seed):
                yield from (_ids(selected(several, [n])) for n in range(several.size))
    except (InputError, ModelError):
        raise
    except (Exception, SystemExit) as fault:  # the user's code may raise anything
        raise model_error(fault, f"The data of {subject.name}") from fault


def _values(given: Any) -> Iterator[Any]:
    return iter(given.values() if hasattr(given, "values") else given)


def _ids(one: Batch) -> Tensor:
    return one.inputs[0, : one.length].cpu()


def _tell(emit: Emitter, done: int, total: int, text: str) -> None:
    emit.check()
    emit.progress(done, total, text)


def _write(forced: Floats, own: Floats, count: int, emit: Emitter) -> None:
    formulas = (
        ("entropy", "nat", "−Σ p ln p of the next token, mean over sequences"),
        ("repeats", "1", f"share of sequences whose last {GRAM} tokens have stood there before"),
    )
    for n, (word, unit, formula) in enumerate(formulas):
        for who, values in (("the data", forced), ("its own", own)):
            name = f"drift/{'own' if values is own else 'data'}_{word}"
            title = f"{word}, {who}"
            channel = Channel(
                name=f"{PLACE}:{name}", kind=PLACE, dims=("step",), shape=(values.shape[2],), dtype="float64",
                unit=unit, title=title, formula=formula, source=SOURCE, compare="separate",
                domains={"step": "continuation"}, method=f"second halves of {count} sequences",
            )  # fmt: skip
            emit.array(channel, values[n].mean(0))
    channel = Channel(
        name=SEQUENCES, kind=PLACE, dims=("statistic", "sequence"), shape=(len(STATISTICS), count), dtype="float64",
        unit="1", title="second halves of the data and its own", source=SOURCE,
        formula="mean over the first quarter, and the last half", labels={"statistic": STATISTICS}, compare="separate",
    )  # fmt: skip
    emit.array(channel, by_sequence(forced, own))
