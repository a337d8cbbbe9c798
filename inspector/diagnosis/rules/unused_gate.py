"""A gate, or another part of a layer's output, that is computed and not used: exact."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from inspector.diagnosis.rule import COUNT, RULES, Limit, Run, Scope, Trust
from inspector.diagnosis.series import listed, table_of, the_only
from inspector.records import Finding

UNUSED = "parameters:gradient/unused_block"
ORDINALS = ("first", "second", "third", "fourth")
PARTS = {2: "half", 3: "third", 4: "quarter"}


class UnusedGate:
    """Reads blocks of rows of a layer's weight whose gradient is exactly 0, where other blocks have one.

    A layer that computes several gates at once has them in equal blocks of rows. One that is overwritten by a constant,
    or left out, gets no gradient. A layer of its own gets none at all, which IN111 tells. Counter-example: a part that
    is meant for another use than the loss.
    """

    id = "IN135"
    untried = "what is made of a gate is in the model's code"
    title = "A gate is computed and not used"
    summary = "One of the equal parts that a layer computes never gets a gradient: it is overwritten or left out."
    trust: Trust = "exact"
    scope: Scope = "training"
    reads = ("series",)
    needs = ()
    limits = (
        Limit("looks", 8, "Recorded iterations, in all of which it is so: a factor may begin at 0.", within=COUNT),
    )
    reference = "TrainCheck, arXiv 2506.14813: parameters that a step leaves as they are"

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """At most one, for all such layers."""
        table = table_of(run, UNUSED)
        if table is None:
            return
        known = np.isfinite(table.values)
        told = {}
        for n, name in enumerate(table.names):
            codes = set(table.values[known[:, n], n].tolist())
            if known[:, n].any() and not run.too_few(int(known[:, n].sum()), run.limit("looks")):
                code = int(codes.pop()) if len(codes) == 1 else 0
                if code >= 100:
                    told[name] = _which(code)
        if not told:
            return
        parts = [f"the {which} of {name}" for name, which in told.items()]
        looks = int(known.sum(0).max())
        yield Finding(
            rule="unused-gate", severity="warning", place=the_only(list(told)), places=tuple(told),
            message=f"{listed(parts)} {'has' if len(parts) == 1 else 'have'} a gradient of exactly 0 in all recorded "
            "iterations, the other rows not: what these rows compute does not reach the loss",
            evidence=(UNUSED,), iterations=(int(table.iterations[0]),),
            sure=f"exact, in {looks} iterations that were looked at",
            unless="the part is meant for another use than this loss, or all of its units are dead (IN401)",
            remedy="Look for a gate that is assigned again after it was computed (ones_like, zeros_like, a clamp that "
            "always holds), or chunks that are taken in another order than they are used.",
            code="i, f, g, o = gates.chunk(4, -1)  # and no line after it that sets f",
        )  # fmt: skip


def _which(code: int) -> str:
    """ "second quarter of the rows": which blocks a code of the series stands for."""
    blocks, first, count = code // 100, code // 10 % 10, code % 10
    part = PARTS.get(blocks, f"1/{blocks}")
    if count > 1:
        return f"{ORDINALS[first]} and {count - 1} more of the {blocks} equal blocks of rows"
    return f"{ORDINALS[first]} {part} of the rows"


RULES.register("unused-gate")(UnusedGate())
