"""Parameters that a step would not move."""

from inspector.analysis.before_training.trial import LOST
from inspector.diagnosis.rule import PART, RULES, Limit
from inspector.diagnosis.trial_rule import TrialRule

RULES.register("would-not-move")(
    TrialRule(
        key="would-not-move",
        id="IN118",
        title="Would not move",
        summary="A first step of training would leave parameters as they are.",
        reference="TrainCheck, arXiv 2506.14813: parameters that a step leaves as they are",
        test="first step",
        trust="exact",
        limits=(Limit("lost", LOST, "As for updates-lost: half of the entries of a parameter.", within=PART),),
        remedy=(
            "Look for a detach(), a branch that this input does not take, a ReLU that is 0 before it, a softmax or "
            "gate so saturated that its gradient is below the ε of Adam, or a dtype in which the update is smaller "
            "than half a unit of rounding (keep a float32 copy)."
        ),
        unless="the parameter is used by other inputs than the one that was run",
        code="print([name for name, one in model.named_parameters() if one.grad is None])",
    )
)
