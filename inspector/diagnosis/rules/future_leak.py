"""An output reads an input that comes after it."""

from inspector.diagnosis.rule import RULES
from inspector.diagnosis.structure_rule import StructureRule

RULES.register("future-leak")(
    StructureRule(
        key="future-leak",
        id="IN103",
        untried="the mask or the direction of reading is in the model's code",
        title="Reads the future",
        summary="An output depends on an input after its own step, in a model that predicts its next input.",
        reference="huggingface/transformers#48745: a loss near zero on random tokens",
        test="causal",
        facts=True,
        remedy=(
            "Mask what comes later in the module that is named (attention: its softmax over the keys, not the queries; "
            "a recurrence: read in one direction; a convolution: pad on the left only), or take an input that does not "
            "hold the answer. A loss far below what generation shows is the sign of it."
        ),
        unless="the model is meant to read both directions and its targets only happen to be its next inputs",
        code="scores = scores.masked_fill(torch.triu(torch.ones(t, t, dtype=torch.bool), 1), -torch.inf)",
    )
)
