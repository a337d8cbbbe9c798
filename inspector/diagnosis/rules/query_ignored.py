"""Attention that is the same for every query."""

from inspector.diagnosis.rule import RULES
from inspector.diagnosis.structure_rule import StructureRule

RULES.register("query-ignored")(
    StructureRule(
        key="query-ignored",
        id="IN109",
        untried="how queries and keys are scored is in the model's code",
        title="Attention without its query",
        summary="All rows of an attention map are the same: what is attended to does not depend on the query.",
        reference=(
            "Luong et al. 2015, arXiv 1508.04025, section 3.1: the scores; softmax does not change where a "
            "row gets a constant"
        ),
        test="query",
        remedy=(
            "See that the query is the state of each step, and not one made before the loop. Put a nonlinearity "
            "between the sum of query and key terms and the score, or multiply them; if all weights are even, the "
            "projections may be 0."
        ),
        unless="attention has collapsed to one key for all queries, or is even for all of them, at these weights",
        code="scores = v(torch.tanh(w_q(s)[:, None] + w_k(h)))",
        severity="warning",
    )
)
