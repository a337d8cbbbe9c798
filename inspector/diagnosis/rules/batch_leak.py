"""A sequence's output depends on the others of its batch."""

from inspector.diagnosis.rule import RULES
from inspector.diagnosis.structure_rule import StructureRule

RULES.register("batch-leak")(
    StructureRule(
        key="batch-leak",
        id="IN104",
        untried="what joins the sequences of a batch is in the model's code",
        title="Reads the rest of the batch",
        summary="A sequence's output depends on the other sequences of its batch.",
        reference="pytorch/pytorch documentation of nn.LSTM: batch_first is False unless given",
        test="batch",
        facts=True,
        remedy=(
            "Give recurrent and attention modules batch_first=True, or transpose their input; look for a "
            "sum, mean, softmax or reshape over the batch axis."
        ),
        unless="the model compares the sequences of a batch on purpose (contrastive losses inside the model)",
        code="nn.LSTM(n, n, batch_first=True)",
    )
)
