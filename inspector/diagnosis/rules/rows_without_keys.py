"""Queries that may attend to no key."""

from __future__ import annotations

from collections.abc import Iterable

from inspector.diagnosis.rule import RULES, Run, Scope, Trust
from inspector.records import Finding

ENDING = ":attention/rows_without_keys"


class RowsWithoutKeys:
    """Reads how many rows of each attention have every key masked."""

    id = "IN119"
    title = "Attention rows without a key"
    summary = (
        "Every key of a query is masked, so the softmax has nothing to choose from: NaN, or the mean of what is masked."
    )
    trust: Trust = "exact"
    scope: Scope = "frame"
    reads = ("attention",)
    needs = ("attention/maps",)
    limits = ()
    reference = "a softmax over −∞ alone is 0 / 0: NaN, which passes through every further operation"
    untried = "which keys are masked is up to the model's code or the data"

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """One for each attention."""
        for one in run.scalars:
            if one.frame != frame or not one.name.endswith(ENDING) or not one.value > 0:
                continue
            name = one.name.removesuffix("/rows_without_keys")
            shape = run.channels[name].shape if name in run.channels else ()
            every = f" of {int(shape[0] or 0) * int(shape[1] or 0):,}" if len(shape) == 3 else ""
            yield Finding(
                rule="rows-without-keys", severity="warning", place=name.rpartition(":")[0],
                message=f"{int(one.value):,}{every} rows (heads × queries) may attend to no key",
                evidence=(name,) if name in run.channels else (), sure="counted on the sequence that is shown",
                unless="these queries are padding whose outputs nothing reads",
                remedy="Leave each query one key at least (its own), or set its output to 0 after the softmax.",
                code="allowed = allowed | torch.eye(t, dtype=torch.bool)",
            )  # fmt: skip


RULES.register("rows-without-keys")(RowsWithoutKeys())
