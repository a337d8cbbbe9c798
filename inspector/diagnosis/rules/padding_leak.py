"""Outputs of a model that is told of lengths depend on how much padding follows."""

from inspector.diagnosis.rule import RULES
from inspector.diagnosis.structure_rule import StructureRule

RULES.register("padding-leak")(
    StructureRule(
        key="padding-leak",
        id="IN105",
        untried="what the model does with padding is in its code",
        title="Reads padding",
        summary=(
            "The outputs at real steps change with the amount of padding, though the model is told what is padding."
        ),
        reference="pytorch/pytorch#3662; below 1e-5 of the scale it is rounding",
        test="padding",
        remedy=(
            "Pack the sequences (pack_padded_sequence with enforce_sorted=False), or give the mask to every "
            "attention and pooling."
        ),
        unless="the padding value is an input with a meaning of its own",
        code="packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)",
    )
)
