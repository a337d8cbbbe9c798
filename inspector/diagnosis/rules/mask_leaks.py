"""A finite mask that is not far enough below the scores that are allowed."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from inspector.diagnosis.heads import head_tables, listed
from inspector.diagnosis.rule import RULES, Limit, Run, Scope, Trust
from inspector.records import Finding


class MaskLeaks:
    """Reads the least allowed score less the largest masked one, of masks that are finite numbers.

    A masked key has e^−margin times the weight of the least key that is allowed: nothing is estimated.
    """

    id = "IN120"
    title = "A mask that leaks"
    summary = "Masked keys keep weight, since the mask is a finite number that scores come near to."
    trust: Trust = "exact"
    scope: Scope = "frame"
    reads = ("attention_statistic",)
    needs = ("attention/mask_margin",)
    limits = (
        Limit("margin", 4.85, "−ln ε of bfloat16: a masked key has 1/128 of the weight of one that is allowed, and "
        "counts "
              "even in half precision.", "nat", below="rounding"),
        Limit("rounding", 15.9, "−ln ε of float32: up to here a masked key still counts in float32 "
        "(information).", "nat"),
    )  # fmt: skip
    reference = "softmax: A_masked / A_allowed = exp(s_masked − s_allowed)"
    untried = "the number that masks is in the model's code"

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """One for each attention."""
        for table in head_tables(run, frame, "attention/mask_margin"):
            margins = np.where(np.isfinite(table.values), table.values, np.inf)  # −∞: no key is allowed, see IN119
            least = margins.min(axis=1, initial=np.inf)
            leaking = np.flatnonzero(least < run.limit("rounding"))
            if not len(leaking):
                continue
            head = int(least.argmin())
            query, margin = int(margins[head].argmin()), float(least[head])
            times = math.exp(min(-margin, 700.0))
            yield Finding(
                rule="mask-leaks", severity="warning" if margin < run.limit("margin") else "info",
                place=table.channel.place, steps=(query,), evidence=(table.channel.name,),
                message=f"{listed(leaking)}: the mask is {margin:.3g} below the least allowed score at query "
                f"{query}, so a "
                f"masked key gets up to {times:.2g} times the weight of the least key that is allowed",
                sure="exact for the sequence that is shown",
                unless="the number is a bias that is meant to weaken keys, and no mask",
                remedy="Mask with minus infinity, or with a boolean mask of scaled_dot_product_attention.",
                code="scores = scores.masked_fill(mask, -torch.inf)",
            )  # fmt: skip


RULES.register("mask-leaks")(MaskLeaks())
