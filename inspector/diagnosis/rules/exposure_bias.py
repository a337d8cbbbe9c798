"""A model that is worse after tokens of its own than after right ones: a decoder that goes on wrongly after a wrong
token, and one of texts that gets lost, or caught in a loop, in what it goes on with."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from inspector.analysis.clipping import percent
from inspector.analysis.rank_correlation import Spread, spread
from inspector.diagnosis.rule import COUNT, PART, RULES, Limit, Run, Scope, Trust
from inspector.diagnosis.series import Floats
from inspector.records import Finding, counted

SEQUENCES = "decoding:drift/sequences"
BY_STEP = ("decoding:drift/free_wrong", "decoding:drift/forced_wrong")
CONTINUED = "decoding:drift/continued"
ENTROPY = ("decoding:drift/own_entropy", "decoding:drift/data_entropy")
REPEATS = ("decoding:drift/own_repeats", "decoding:drift/data_repeats")

OWN_TOKENS = (
    "Train on tokens that the model has said itself (scheduled sampling, the share rising over training), or with "
    "noise on the tokens that it is given."
)
OWN_CODE = "given = torch.where(torch.rand(b) < own, scores.argmax(-1), right[:, t])"


class ExposureBias:
    """Reads the shares of wrong tokens by sequence, after the right beginning and after what the model says itself.

    The same steps of the same sequences are compared, so hard steps do not count. Counter-example: an answer in which a
    wrong token makes other ones right after it (a text that may go on in many ways): there the right answer after the
    model's own beginning is not the one that is known.

    Where a text may go on in many ways, halves of texts that the model draws are compared with the real ones: of a
    model that knows the texts they are draws from one distribution. What counts is that they part more and more, since
    a model that is merely poor differs from the first token on.
    """

    id = "IN209"
    untried = "what a decoder is given while it is trained is up to the training loop"
    title = "Wrong tokens lead to wrong tokens (exposure bias)"
    summary = "After a wrong token of its own the decoder goes on wrongly where it is right after right ones."
    trust: Trust = "counterfactual"
    scope: Scope = "frame"
    reads = ("decoding",)
    needs = ()
    limits = (
        Limit(
            "after",
            0.5,
            "A wrong token is followed by wrong ones more often than by right ones; a judgement.",
            within=PART,
        ),
        Limit(
            "forced",
            0.5,
            "Wrong as often after the right beginning: it has not learned yet, whatever it is given.",
            within=PART,
        ),
        Limit(
            "sequences",
            8,
            "With a wrong token, or continued: of fewer, the spread over sequences is not known.",
            within=COUNT,
        ),
        Limit("lost", 0.5, "Entropy after its own tokens above that after the data's, as a share of it; a judgement."),
        Limit("nats", 0.1, "By which it is above at least: next to nothing may be doubled by chance."),
        Limit(
            "loops",
            0.25,
            "Share of tokens that repeat what was said, above that of the data; a judgement.",
            within=PART,
        ),
    )
    reference = "Bengio et al. 2015, arXiv 1506.03099; Ranzato et al. 2016, arXiv 1511.06732"

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """At most one."""
        yield from self._continued(run, frame)
        if SEQUENCES not in run.channels or not run.revision(SEQUENCES, frame):
            return
        table = np.ma.filled(np.ma.asarray(run.array(SEQUENCES, frame), dtype=np.float64), np.nan)
        wrong = np.isfinite(table[2:]).all(0)
        if run.too_few(int(wrong.sum()), round(run.limit("sequences"))) or not wrong.any():
            return
        after, more = spread(table[2]), spread(table[2] - table[3])
        if after.low > run.limit("after") and more.low > 0 and np.nanmean(table[0]) <= run.limit("forced"):
            yield self._finding(table, after, more)

    def _continued(self, run: Run, frame: int) -> Iterable[Finding]:
        """Of a model that goes on with texts."""
        if CONTINUED not in run.channels or not run.revision(CONTINUED, frame):
            return
        table = np.ma.filled(np.ma.asarray(run.array(CONTINUED, frame), dtype=np.float64), np.nan)
        table = table[:, np.isfinite(table).all(0)]
        if run.too_few(table.shape[1], round(run.limit("sequences"))):
            return
        least = max(run.limit("lost") * float(table[1].mean()), run.limit("nats"))
        for part, limit, finding in ((table[:4], least, self._lost), (table[4:], run.limit("loops"), self._looping)):
            more, growing = spread(part[3] - part[1]), spread(part[3] - part[1] - (part[2] - part[0]))
            if more.mean > limit and more.low > 0 and growing.low > 0:
                yield finding(part, more)
                return

    def _lost(self, part: Floats, more: Spread) -> Finding:
        data, own = (f"{part[row].mean():.3g}" for row in (1, 3))
        return Finding(
            rule="exposure-bias", severity="warning", place="",
            message=f"the further it goes on from its own tokens, the less it knows what comes next: {own} nats a "
            f"token in the last part of what it says itself and {data} in that of the data, {more.mean:.2g} more "
            f"({more.low:.2g} to {more.high:.2g} with 95 %)",
            evidence=(*ENTROPY, CONTINUED), sure=_sure(more),
            unless="sequences of the data are longer than any that it was trained on",
            remedy=OWN_TOKENS, code=OWN_CODE,
        )  # fmt: skip

    def _looping(self, part: Floats, more: Spread) -> Finding:
        data, own = (percent(float(part[row].mean())) for row in (1, 3))
        return Finding(
            rule="exposure-bias", severity="warning", place="",
            message=f"the further it goes on from its own tokens, the more it repeats itself: {own} of the last tokens "
            f"end four that it has said before, and {data} of those of the data",
            evidence=(*REPEATS, CONTINUED), sure=_sure(more),
            unless="texts of the kind do repeat themselves, and those that were given do not",
            remedy=OWN_TOKENS, code=OWN_CODE,
        )  # fmt: skip

    def _finding(self, table: Floats, after: Spread, more: Spread) -> Finding:
        forced, free = (float(np.nanmean(row)) for row in table[:2])
        return Finding(
            rule="exposure-bias", severity="warning", place="",
            message=f"once it has said a wrong token, {percent(after.mean)} of those that follow are wrong "
            f"({percent(after.low)} to {percent(after.high)} with 95 %), and {percent(after.mean - more.mean)} at the "
            f"same steps after the right beginning; of all tokens {percent(free)} are wrong after its own and "
            f"{percent(forced)} after right ones",
            evidence=(*BY_STEP, SEQUENCES),
            sure=f"over {counted(after.rows, 'sequence')} with a wrong token, of {table.shape[1]}; greedy decoding; "
            "each step was asked again after both beginnings",
            unless="an answer may go on in several ways, so that other tokens are right after a wrong one",
            remedy=f"{OWN_TOKENS[:-1]}, so that it has to look at its source again.",
            code=OWN_CODE,
        )  # fmt: skip


def _sure(more: Spread) -> str:
    return f"over {counted(more.rows, 'sequence')}, each with one continuation that was drawn at temperature 1"


RULES.register("exposure-bias")(ExposureBias())
