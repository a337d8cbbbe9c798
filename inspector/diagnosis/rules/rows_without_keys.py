"""Queries that may attend to no key."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from inspector.diagnosis.rule import RULES, Run, Scope, Trust
from inspector.records import Finding

NONE, ALL_MASKED = ":attention/rows_without_keys", ":attention/rows_all_masked"
"""Rows that the mask leaves no key; those of which it hides every key behind a finite number."""


class RowsWithoutKeys:
    """Reads how many rows of each attention have every key masked, by −∞ or by a finite number."""

    id = "IN119"
    title = "Attention rows without a key"
    summary = (
        "Every key of a query is masked, so the softmax has nothing to choose from: NaN, or the mean of what is masked."
    )
    trust: Trust = "exact"
    scope: Scope = "frame"
    reads = ("attention",)
    needs = ("attention/maps", "attention/mask_margin")
    limits = ()
    reference = "a softmax over −∞ alone is 0 / 0: NaN, which passes through every further operation"
    untried = "which keys are masked is up to the model's code or the data"

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """One for each attention."""
        for one in run.scalars:
            ending = next((each for each in (NONE, ALL_MASKED) if one.name.endswith(each)), None)
            if one.frame != frame or ending is None or not one.value > 0:
                continue
            name = f"{one.name.removesuffix(ending)}:attention"
            shape = run.channels[name].shape if name in run.channels else ()
            every = f" of {int(shape[0] or 0) * int(shape[1] or 0):,}" if len(shape) == 3 else ""
            what = (
                "may attend to no key" if ending == NONE else
                "have every key masked by a finite number, so that the keys which are to be hidden share all the weight"
            )  # fmt: skip
            yield Finding(
                rule="rows-without-keys", place=name.rpartition(":")[0],
                severity="info" if _leading(run, frame, name) else "warning",
                message=f"{int(one.value):,}{every} rows (heads × queries) {what}",
                evidence=(name,) if name in run.channels else (), sure="counted on the sequence that is shown",
                unless="these queries are padding whose outputs nothing reads",
                remedy="See that the mask is not inverted: masked_fill hides where its mask is True, a boolean mask of "
                "scaled_dot_product_attention where it is False. Else leave each query one key at least (its own), or "
                "set its output to 0 after the softmax.",
                code="scores = scores.masked_fill(~real[:, None, :], -torch.inf)  # real: True at what may be read",
            )  # fmt: skip


def _leading(run: Run, frame: int, name: str) -> bool:
    """Whether the rows of masked keys alone are the first ones, as those of padding in front of a sequence are."""
    margin = f"{name}/mask_margin"
    if margin not in run.channels or not run.revision(margin, frame):
        return False
    masked = (run.array(margin, frame) == -np.inf).all(axis=0)
    first = int(masked.argmin())
    return first > 0 and not masked[first:].any()


RULES.register("rows-without-keys")(RowsWithoutKeys())
