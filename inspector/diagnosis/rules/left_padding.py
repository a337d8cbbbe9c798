"""Padding in front of a sequence that moves its outputs."""

from inspector.diagnosis.rule import RULES
from inspector.diagnosis.structure_rule import StructureRule

RULES.register("left-padding")(
    StructureRule(
        key="left-padding",
        id="IN125",
        untried="on which side sequences are padded is up to the data, and what is made of it to the model's code",
        title="Padding on the left is read",
        summary="The sequence was given with padding on the left, and its outputs at real steps depend on that.",
        reference="huggingface/transformers: padding_side, and position_ids of left-padded batches",
        test="left_padding",
        sure="exact but for rounding: the model was called on the same sequence with and without its padding",
        remedy=(
            "Pad on the right and pack (nn.RNN reads what is in front first); or count positions from the first real "
            "step (position_ids), and give the mask to every attention."
        ),
        unless="all sequences are padded alike in training and in use, and the model has learned to read over it",
        code="position_ids = (mask.cumsum(-1) - 1).clamp(min=0)",
        severity="warning",
    )
)
