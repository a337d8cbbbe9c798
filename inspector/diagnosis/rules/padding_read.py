"""Attention that may read padding alone: a mask of the opposite meaning, exact."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from inspector.diagnosis.rule import RULES, Run, Scope, Trust
from inspector.diagnosis.series import table_of
from inspector.records import Finding

SHOWN, COUNT = "training:padding/keys_shown", "training:padding/sequences_masked"


class PaddingRead:
    """Reads of how many sequences with padding the mask of an attention shows the padding, all of it, and nothing else.

    Counter-example: a model whose padding id marks steps that it is to read, registers for example, and only these.
    """

    id = "IN139"
    untried = "which keys a mask hides is up to the model's code"
    title = "Attention reads padding alone"
    summary = "The mask of an attention hides the steps that are real and shows those of padding: it is inverted."
    trust: Trust = "exact"
    scope: Scope = "training"
    reads = ("series",)
    needs = ()
    limits = ()
    reference = "torch.nn.MultiheadAttention: True in key_padding_mask hides; scaled_dot_product_attention: True shows"

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """At most one."""
        shown, count = table_of(run, SHOWN), table_of(run, COUNT)
        if shown is None or count is None:
            return
        shares, rows = (one.values[:, 0].astype(np.float64) for one in (shown, count))
        known = np.isfinite(shares)
        sequences = int(np.nansum(rows))
        if not known.any() or not (shares[known] == 1).all() or sequences < 2:
            return
        yield Finding(
            rule="padding-read", severity="error", place="",
            message=f"attention may read padding alone: in all {sequences} sequences with padding that were looked at "
            "its mask shows every step of padding and hides all others",
            evidence=(SHOWN, COUNT), iterations=(int(shown.iterations[known][0]),),
            sure=f"exact, in all {int(known.sum())} batches that were looked at, for the id that the model declares as "
            "padding",
            unless="this id marks steps that are to be read, and nothing else is",
            remedy="Turn the mask round. key_padding_mask and src_key_padding_mask hide where they are True, a boolean "
            "mask of scaled_dot_product_attention shows where it is True.",
            code="encoder(x, src_key_padding_mask=ids == PADDING)  # True: hidden",
        )  # fmt: skip


RULES.register("padding-read")(PaddingRead())
