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
        remedy=(
            "In attention add positions (sinusoidal, learned, rotary or relative) or the mask that is missing. In a "
            "recurrence nothing is carried on: look for a state that is made anew at each step, or a decay or gate "
            "that forgets at once."
        ),
        code="x = embedding(ids) + position(torch.arange(ids.shape[1]))",
        unless="the task is one on sets",
    )
)
