"""Generation with a cache is not what the model computes without."""

from inspector.diagnosis.rule import RULES
from inspector.diagnosis.structure_rule import StructureRule

RULES.register("cache-differs")(
    StructureRule(
        key="cache-differs",
        id="IN108",
        untried="how steps and their cache are handed on is in the model's code",
        title="Cache differs",
        summary=(
            "Steps given one at a time, with what the model hands on, give other outputs than one call on the whole."
        ),
        reference="Vaswani et al. 2017; positions of a cached step count from the beginning of the sequence",
        test="cache",
        remedy=(
            "Look at the positions of cached steps (they go on where the cache ends), the mask over the "
            "cache, and states that are not handed on to every layer."
        ),
        code="positions = torch.arange(cached, cached + x.shape[1])",
        unless=(
            "the model uses what comes later in one call on purpose (both directions), and has no use for "
            "steps one at a time"
        ),
    )
)
