"""Something is carried from one call to the next."""

from inspector.diagnosis.rule import RULES
from inspector.diagnosis.structure_rule import StructureRule

RULES.register("carried-state")(
    StructureRule(
        key="carried-state",
        id="IN106",
        untried="keeping or resetting the state is in the model's code",
        title="State not reset",
        summary="Called twice on the same input, the model answers differently: a state is kept from call to call.",
        reference="pytorch/examples word_language_model: repackage_hidden between batches",
        test="repeat",
        remedy=(
            "Begin each sequence with a fresh state, or hand the state on by argument and detach it; if it "
            "is carried on purpose, see that batches follow each other in the data."
        ),
        unless="the model is trained on consecutive pieces of one long sequence, and batches are in that order",
        code="h = None  # at the beginning of every sequence",
        severity="warning",
    )
)
