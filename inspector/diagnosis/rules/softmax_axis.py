"""A softmax of attention over the queries, where it has to be over the keys: exact."""

from __future__ import annotations

from inspector.analysis.before_training.scored import across
from inspector.diagnosis.rule import RULES
from inspector.diagnosis.score_rule import ScoreRule

RULES.register("softmax-axis")(
    ScoreRule(
        key="softmax-axis",
        id="IN153",
        title="Softmax over the queries",
        summary="Weights of attention are normalised along the queries, and then summed along the keys.",
        reference="Vaswani et al. 2017, arXiv 1706.03762, section 3.2.1: the weights of a query sum to 1",
        says=lambda facts, limits: across(facts),
        remedy="Take the softmax along the axis that is summed with the values: the last one of (…, query, key).",
        code="weights = scores.softmax(-1)",
        unless="queries are meant to compete for keys, as in slot attention, which divides by the sum over keys then",
    )
)
