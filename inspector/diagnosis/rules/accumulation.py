"""Gradients that a training accumulates, which are not those of the whole batch."""

from inspector.diagnosis.rule import RULES
from inspector.diagnosis.structure_rule import StructureRule

RULES.register("accumulation")(
    StructureRule(
        key="accumulation",
        id="IN123",
        title="Accumulated gradients that are not those of the batch",
        summary="The training's own backward gives another gradient in several passes than in one.",
        reference="huggingface/transformers#34191 (a mean over each pass weighs its tokens by how few it has)",
        test="accumulation",
        sure="exact but for rounding: the subject's own `backward` was called on this batch, in one pass and more",
        remedy=(
            "Sum the losses of each pass and divide by the number of targets of the whole batch, not of the pass, "
            "and not by the number of passes after that; and use a normalisation that does not read the batch."
        ),
        unless="the training is meant to weigh passes, and not targets, alike",
        code="(losses.sum() / targets_of_all_passes).backward()",
        severity="warning",
    )
)
