"""What the tests of a loss's input and of a model's input say."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from inspector.analysis.before_training.verdicts import Numbers, Readings, Verdict
from inspector.analysis.rank_correlation import spread

CROSSED = 5
"""Of hooks.loss_nodes.WRONG: each prediction beside all targets."""
SAID = {
    1: "cross-entropy is given probabilities: what goes into its log-softmax has been through a softmax already. "
    "Scores between 0 and 1 keep the loss from falling to 0, and pass little gradient",
    2: "cross-entropy is given outputs of a sigmoid: scores between 0 and 1 keep the loss from falling to 0, and pass "
    "little gradient",
    3: "the binary cross-entropy of logits is given probabilities: a sigmoid or softmax stands before its own sigmoid, "
    "which makes all of them lie between 0.5 and 0.73",
    4: "the negative log-likelihood is given numbers that are no logarithms of probabilities (the exponentials of a "
    "row do not sum to 1): it falls without bound, or below 0, whatever the model says",
    CROSSED: "the loss sets each prediction of a batch beside all its targets: n predictions of shape (n, 1) or (n,) "
    "and n targets of the other were broadcast to (n, n), so that the best answer to every input is the mean of all "
    "targets",
}
"""By the numbers of hooks.loss_nodes.WRONG."""


def loss_input_verdict(read: Readings, values: Numbers) -> Iterator[Verdict]:
    """One sentence of (value,) one number."""
    name, code = read.channel("loss_input"), float(values[0]) if len(values) else np.nan
    if code == 0:
        yield Verdict("loss_input", "holds", "The loss is given scores, and makes its own softmax of them.", 0.0, name)
    elif code in SAID:
        said = SAID[int(code)]
        yield Verdict("loss_input", "fault", f"{said[:1].upper()}{said[1:]}.", code, name)


FEWEST = 8
"""Sequences from which a comparison has a spread."""


def input_verdict(read: Readings, table: Numbers) -> Iterator[Verdict]:
    """One sentence of (statistic, sequence): losses with the own input and with that of others, and how far outputs
    are apart."""
    name = read.channel("input")
    known = np.isfinite(table).all(0)
    own, others, apart = table[:, known]
    count = int(known.sum())
    if count < 2:
        return
    rounding = read.scalar("input/rounding", 1e-6)
    if float(apart.max()) <= rounding:
        if read.scalar("input/zero_weights", 0.0) > 0:
            said = "Outputs are the same for all sequences, and weights are all 0, as of a read-out that begins so."
            yield Verdict("input", "not tested", said, 0.0, name)
            return
        said = (
            f"The outputs are the same for {count} sequences whose inputs differ: nothing of the input arrives there."
        )
        yield Verdict("input", "fault", said, 0.0, name)
        return
    if count < FEWEST:
        said = f"Outputs depend on the input; whether that helps takes {FEWEST} sequences with targets, not {count}."
        yield Verdict("input", "not tested", said, float(apart.max()), name)
        return
    more = spread(others - own)
    told = f"The loss is {own.mean():.4g} with the input of each sequence, and {more.mean:+.3g} with that of another"
    told += f" ({more.low:+.3g} to {more.high:+.3g} with 95 %, {count} sequences)"
    if more.low > 0:
        yield Verdict("input", "holds", f"{told}: the input counts.", more.mean, name)
    else:
        why = ": the input does not count, as before any training, or where the data tell nothing of the targets."
        if read.scalar("input/trained", 0.0) > 0:
            why = ": for these weights, which were loaded, the input does not count, or the data tell nothing."
        yield Verdict("input", "fact", told + why, more.mean, name)
