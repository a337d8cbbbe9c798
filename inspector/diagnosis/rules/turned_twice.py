"""A rotary embedding that is applied twice: exact, by the angles."""

from __future__ import annotations

from inspector.analysis.before_training.scored import turned
from inspector.diagnosis.rule import RULES
from inspector.diagnosis.score_rule import ScoreRule

RULES.register("turned-twice")(
    ScoreRule(
        key="turned-twice",
        id="IN152",
        title="Rotary embedding applied twice",
        summary="Queries or keys are turned by the same angles twice, one after the other.",
        reference="Su et al. 2021, arXiv 2104.09864: one turn, by an angle in proportion to the position",
        says=lambda facts, limits: turned(facts),
        remedy="Turn queries and keys once each: look for a layer that turns what the model has turned already.",
        code="q, k = rotate(q, angles), rotate(k, angles)  # once",
        unless="angles twice as large are meant; a model that learns with them does not suffer, loaded weights do",
    )
)
