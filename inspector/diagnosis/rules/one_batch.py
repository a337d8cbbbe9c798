"""A copy of the model that cannot learn one batch by heart."""

from inspector.analysis.before_training.trial import KNOWN, LEARNED
from inspector.diagnosis.rule import PART, RULES, Limit
from inspector.diagnosis.trial_rule import TrialRule

RULES.register("one-batch")(
    TrialRule(
        key="one-batch",
        id="IN203",
        title="One batch not learned",
        summary="Trained on one batch alone, the model does not learn it by heart.",
        reference="Karpathy 2019, A recipe for training neural networks: overfit one batch",
        test="one batch",
        limits=(
            Limit(
                "learned",
                LEARNED,
                "Of the first loss; Karpathy has 0. Accuses a batch that is learned slowly.",
                within=PART,
            ),
            Limit(
                "known",
                KNOWN,
                "p = 0.9 on average: a first loss up to here is of a batch that is known already.",
                "nat",
            ),
        ),
        remedy=(
            "Look for inputs that do not reach the output, targets that are not what the input says, a "
            "detach, a loss over the wrong axis, and a learning rate that is far off (trial/learning_rate)."
        ),
        unless=("100 steps at rate 0.01 are too few for this model, or one input has two different targets"),
        code="",
    )
)
