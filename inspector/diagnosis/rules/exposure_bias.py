"""A decoder that goes on wrongly after a wrong token of its own, though it is right after right ones."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from inspector.analysis.clipping import percent
from inspector.analysis.rank_correlation import Spread, spread
from inspector.diagnosis.rule import RULES, Limit, Run, Scope, Trust
from inspector.diagnosis.series import Floats
from inspector.records import Finding, counted

SEQUENCES = "decoding:drift/sequences"
BY_STEP = ("decoding:drift/free_wrong", "decoding:drift/forced_wrong")


class ExposureBias:
    """Reads the shares of wrong tokens by sequence, after the right beginning and after what the model says itself.

    The same steps of the same sequences are compared, so hard steps do not count. Counter-example: an answer in which a
    wrong token makes other ones right after it (a text that may go on in many ways): there the right answer after the
    model's own beginning is not the one that is known.
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
        Limit("after", 0.5, "A wrong token is followed by wrong ones more often than by right ones; a judgement."),
        Limit("forced", 0.5, "Wrong as often after the right beginning: it has not learned yet, whatever it is given."),
        Limit("sequences", 8, "With a wrong token: of fewer, the spread over sequences is not known."),
    )
    reference = "Bengio et al. 2015, arXiv 1506.03099; Ranzato et al. 2016, arXiv 1511.06732"

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """At most one."""
        if SEQUENCES not in run.channels or not run.revision(SEQUENCES, frame):
            return
        table = np.ma.filled(np.ma.asarray(run.array(SEQUENCES, frame), dtype=np.float64), np.nan)
        wrong = np.isfinite(table[2:]).all(0)
        if run.too_few(int(wrong.sum()), round(run.limit("sequences"))) or not wrong.any():
            return
        after, more = spread(table[2]), spread(table[2] - table[3])
        if after.low > run.limit("after") and more.low > 0 and np.nanmean(table[0]) <= run.limit("forced"):
            yield self._finding(table, after, more)

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
            remedy="Train on tokens that the model has said itself (scheduled sampling, the share rising over "
            "training), or noise on the tokens that the decoder is given, so that it has to look at its source again.",
            code="given = torch.where(torch.rand(b) < own, scores.argmax(-1), right[:, t])",
        )  # fmt: skip


RULES.register("exposure-bias")(ExposureBias())
