"""A model that does not see the order of its inputs."""

from inspector.diagnosis.rule import RULES
from inspector.diagnosis.structure_rule import StructureRule

RULES.register("order-unseen")(
    StructureRule(
        key="order-unseen",
        id="IN117",
        untried="positions are something that the model has to be built with",
        title="Order not seen",
        summary="Permuted inputs give permuted outputs: the model treats its sequence as a set.",
        reference="Vaswani et al. 2017, section 3.5",
        test="order",
        facts=True,
        remedy="Add positions to the inputs of attention (sinusoidal, learned, rotary or relative).",
        code="x = embedding(ids) + position(torch.arange(ids.shape[1]))",
        unless="the task is one on sets",
    )
)
