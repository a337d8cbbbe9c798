"""Scores of attention that go through a ReLU before their softmax: exact."""

from __future__ import annotations

from inspector.analysis.before_training.scored import rectified
from inspector.diagnosis.rule import RULES
from inspector.diagnosis.score_rule import ScoreRule

RULES.register("rectified-scores")(
    ScoreRule(
        key="rectified-scores",
        id="IN151",
        title="ReLU before the softmax of attention",
        summary="Scores below 0 are cut off before the softmax, so that their keys cannot be told apart.",
        reference="Vaswani et al. 2017, arXiv 1706.03762, section 3.2.1: the softmax takes scores as they are",
        says=lambda facts, limits: rectified(facts),
        remedy="Give the softmax the scores as they are: it makes its own positive weights of them.",
        code="weights = (q @ k.mT / d**0.5).softmax(-1)  # without relu",
        unless="keys below 0 are all meant to weigh the same",
    )
)
