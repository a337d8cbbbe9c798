"""Attention whose scores have grown so large that each softmax chooses a single key."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from inspector.diagnosis.heads import Array, Heads, head_tables, listed
from inspector.diagnosis.rule import PART, RULES, Limit, Run, Scope, Trust
from inspector.records import Finding

LOGIT, ENTROPY = "attention/largest_logit", "attention/entropy_normalised"


class LargeScores:
    """Reads the largest score of every row, its entropy, and both in the frames before.

    Only differences within a row matter, so a large score alone is information (counter-example: scores that all share
    a large offset). With rows that have collapsed it is a warning where earlier frames show that it grew to that.
    """

    id = "IN417"
    title = "Attention scores that have grown"
    summary = "Scores before the softmax are beyond what large trainings clip them at."
    trust: Trust = "descriptive"
    scope: Scope = "frame"
    reads = ("attention_statistic",)
    needs = (LOGIT, ENTROPY)
    limits = (
        Limit(
            "score", 100.0, "Kimi K2's QK-clip, in Megatron-LM too; in float32 a lead of 16 leaves other keys nothing."
        ),
        Limit(
            "entropy", 0.05, "Mean normalised entropy of a head up to which its rows count as collapsed.", within=PART
        ),
        Limit("times", 4.0, "Growth over the least of the earlier frames."),
    )
    reference = (
        "Dehghani et al. 2023, arXiv 2302.05442; Wortsman et al. 2023, arXiv 2309.14322; Kimi K2, arXiv 2507.20534"
    )

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """One for each attention that has such a head."""
        for table in head_tables(run, frame, LOGIT):
            tops = _largest(table)
            beyond = np.flatnonzero(tops >= run.limit("score"))
            if not len(beyond):
                continue
            name, spread = table.channel.name, f"{table.channel.place}:{ENTROPY}"
            collapsed = _entropy(run, spread, frame, len(tops)) <= run.limit("entropy")
            before = _before(run, name, frame, len(tops))
            grew = tops >= run.limit("times") * np.maximum(before, 1.0)  # NaN, no frame before, compares as false
            ill = beyond[(collapsed & grew)[beyond]]
            worst = int(beyond[tops[beyond].argmax()])
            since = f", from {before[worst]:.3g} at the least in an earlier frame" if np.isfinite(before[worst]) else ""
            yield Finding(
                rule="large-scores", severity="warning" if len(ill) else "info", place=table.channel.place,
                message=f"scores of {listed(beyond)} reach {tops[worst]:.4g}{since}"
                + (f"; {listed(ill)} give{'s' * (len(ill) == 1)} one key nearly all the weight" if len(ill) else ""),
                evidence=(name, spread), sure="exact for the sequence that is shown, one alone",
                unless="all scores of a row share a large offset, which a softmax does not see",
                remedy="Normalise queries and keys, clip by QK-clip, or take a smaller learning rate with warm-up; see "
                "what clipping would change with --with attention/clipped@at=50.",
                code="q, k = nn.functional.rms_norm(q, q.shape[-1:]), nn.functional.rms_norm(k, k.shape[-1:])",
            )  # fmt: skip


def _largest(table: Heads) -> Array:
    """(head,) the largest finite score of each head, −∞ where there is none."""
    tops: Array = np.where(np.isfinite(table.values), table.values, -np.inf).max(axis=1, initial=-np.inf)
    return tops


def _entropy(run: Run, name: str, frame: int, heads: int) -> Array:
    """(head,) the mean entropy of the rows that have one, NaN where none has."""
    found = [one for one in head_tables(run, frame, ENTROPY) if one.channel.name == name]
    if not found or len(found[0].values) != heads:
        return np.full(heads, np.nan)
    there = np.isfinite(found[0].values)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean: Array = np.where(there, found[0].values, 0.0).sum(axis=1) / there.sum(axis=1)
    return mean


def _before(run: Run, name: str, frame: int, heads: int) -> Array:
    """(head,) the least of the largest scores of earlier frames, NaN without one."""
    least = np.full(heads, np.nan)
    for earlier in range(max(frame, 0)):
        for table in head_tables(run, earlier, LOGIT):
            if table.channel.name == name and len(table.values) == heads:
                least = np.fmin(least, _largest(table))
    return least


RULES.register("large-scores")(LargeScores())
