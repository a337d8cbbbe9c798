"""Many layers of attention, one above the other, without residual connections."""

from __future__ import annotations

from inspector.analysis.before_training.scored import LAYERS, USUAL, skipless
from inspector.diagnosis.rule import COUNT, RULES, Limit
from inspector.diagnosis.score_rule import ScoreRule

RULES.register("no-way-round")(
    ScoreRule(
        key="no-way-round",
        id="IN451",
        title="Deep attention without residual connections",
        trust="descriptive",
        summary="Layers of attention stand one above the other, and a part of each has no way round it.",
        reference="Dong, Cordonnier & Loukas 2021, arXiv 2103.03404; He et al. 2015, arXiv 1512.03385",
        limits=(
            Limit(
                "layers",
                LAYERS,
                "Without residual connections rank falls doubly exponentially with depth (Dong et "
                "al.); a stack of two or three trains without; a judgement. Layers that share weights are one.",
                within=COUNT,
            ),
            Limit(
                "usual",
                USUAL,
                "Matrix products between the uppermost and the lowest that residual connections do "
                "not go round: weights by values, the values' layer, and the layer behind the lowest.",
                within=COUNT,
            ),
        ),
        says=lambda facts, limits: skipless(facts, limits["layers"], limits["usual"]),
        remedy="Add to what each part of a layer computes what it was given: attention and the layers behind it.",
        code="x = x + attention(norm1(x)); x = x + forward(norm2(x))",
        unless="the stack is meant to be so, with weights that begin for it, or layers between are of another kind",
    )
)
