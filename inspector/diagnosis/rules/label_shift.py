"""Targets that are the inputs, not shifted at all or shifted twice."""

from inspector.diagnosis.rule import RULES
from inspector.diagnosis.structure_rule import StructureRule

RULES.register("label-shift")(
    StructureRule(
        key="label-shift",
        id="IN122",
        untried="which targets belong to which step is up to the data or the loss",
        title="Targets shifted by the wrong number of steps",
        summary=(
            "Every target is the input of the same step, or that of two or more steps later; or a decoder is given "
            "what it said two steps before."
        ),
        reference="huggingface/transformers: causal models shift their labels inside",
        test="labels",
        sure="exact: all targets of the run were compared, at the step whose scores the loss asks for them, or inputs "
        "were replaced",
        remedy="Shift the targets by one step, once: by the data or by the loss, not by both and not by neither.",
        unless="the model is to give back what it reads, or predicts several steps ahead on purpose",
        code="loss(logits[:, :-1], ids[:, 1:])",
        severity="warning",
    )
)
