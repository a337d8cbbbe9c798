"""Scores that are multiplied by √d, where they are usually divided by it."""

from __future__ import annotations

from inspector.analysis.before_training.scored import LEAST_WIDTH, NEAR, scaled
from inspector.diagnosis.rule import PART, RULES, Limit
from inspector.diagnosis.score_rule import ScoreRule

RULES.register("score-scale")(
    ScoreRule(
        key="score-scale",
        id="IN450",
        title="Scores multiplied by √d",
        trust="descriptive",
        summary="Products of queries and keys are multiplied by √d or more, where they are usually divided by it.",
        reference="Vaswani et al. 2017, arXiv 1706.03762, section 3.2.1: q·k has a variance of d, so it is divided",
        limits=(
            Limit("width", LEAST_WIDTH, "Of a query; below it √d and 1/√d are nearly the same; a judgement."),
            Limit(
                "near",
                NEAR,
                "Of √d from which on it counts as that: rounding of half precision. Queries and keys "
                "that are normalised, or have a learned temperature, are left alone, as is a factor of 1.",
                within=PART,
            ),
        ),
        says=lambda facts, limits: scaled(facts, limits["width"], limits["near"]),
        remedy="Divide by √d, d the width of one head, or leave it to scaled_dot_product_attention without `scale`.",
        code="scores = q @ k.mT / q.shape[-1] ** 0.5",
        unless="queries and keys are made so small that their scores are not",
    )
)
