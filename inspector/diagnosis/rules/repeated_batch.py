"""The same batch again and again: exact, by a hash of the data."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from inspector.diagnosis.rule import COUNT, PART, RULES, Limit, Run, Scope, Trust
from inspector.diagnosis.series import table_of
from inspector.records import Finding

HASHES = "training:batch_hash"
MEANT = ", as LBFGS needs it"


class RepeatedBatch:
    """Reads the hash of each recorded batch.

    Of a training by LBFGS it is information: its line search and its curvature ask for one and the same loss.
    Counter-example: full-batch training, and a test whether one batch can be learned; both mean to do this.
    """

    id = "IN115"
    title = "The same batch every time"
    summary = "All recorded iterations saw the same data, or neighbouring ones did."
    trust: Trust = "exact"
    scope: Scope = "training"
    reads = ("series",)
    needs = ()
    limits = (
        Limit("iterations", 10, "Fewer may be a beginning.", within=COUNT),
        Limit(
            "share",
            0.1,
            "Share of neighbours that are equal: a shuffled set of 100 batches has about 0.01.",
            within=PART,
        ),
    )
    reference = "Karpathy 2019, A recipe for training neural networks (look at the data)"
    untried = "which batches come is up to your loader: a trial draws its own"

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """At most one."""
        table = table_of(run, HASHES)
        if table is None:
            return
        hashes = table.values[:, 0]
        known = np.isfinite(hashes)
        hashes, at = hashes[known], table.iterations[known]
        if run.too_few(len(hashes), run.limit("iterations")):
            return
        equal = hashes[1:] == hashes[:-1]
        if not equal.any() or equal.mean() <= run.limit("share"):
            return
        every = bool(equal.all())
        meant = every and _of_one_loss(run)
        yield Finding(
            rule="repeated-batch", severity="warning" if every and not meant else "info", place="",
            message=f"all {len(hashes)} recorded iterations saw the same batch{MEANT if meant else ''}" if every
            else f"{int(equal.sum())} of {len(equal)} recorded iterations saw the batch of the one before",
            evidence=(HASHES,), iterations=tuple(int(one) for one in at[1:][equal][:3]),
            sure="exact but for equal hashes of different data (53 bits)",
            unless="it is meant: the whole data set in one batch, or a test whether one batch can be learned",
            remedy="Look for a loader that is made anew in each iteration (next(iter(loader))), a generator with a "
            "fixed seed, or data loaded once before the loop.",
            code="for batch in DataLoader(data, batch_size, shuffle=True): ...",
        )  # fmt: skip


def _of_one_loss(run: Run) -> bool:
    """Whether every optimizer of the training is one that needs the same loss in each of its steps."""
    classes = {
        str(one.get("class", "")).rpartition(".")[2]
        for one in run.training().get("optimizers", ())
        if isinstance(one, dict)
    }
    return classes == {"LBFGS"}


RULES.register("repeated-batch")(RepeatedBatch())
