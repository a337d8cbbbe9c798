"""The loss before training beside that of even probabilities."""

from inspector.analysis.before_training.trial import HIGH, KNOWN
from inspector.diagnosis.rule import RULES, Limit
from inspector.diagnosis.trial_rule import TrialRule

RULES.register("initial-loss")(
    TrialRule(
        key="initial-loss",
        id="IN202",
        title="Loss before training",
        summary=("Before training, the loss is far from that of even probabilities over the classes."),
        reference="Karpathy 2019, A recipe for training neural networks: verify the loss at init",
        test="initial loss",
        limits=(
            Limit(
                "high",
                HIGH,
                "A judgement: a task may be far from even, and a loss that is far below knows its targets.",
            ),
            Limit(
                "known",
                KNOWN,
                "p = 0.9 on average: weights that are trained have that, so below it nothing is told.",
                "nat",
            ),
        ),
        remedy=(
            "Scale the last layer down and set its bias to the logarithm of the frequencies; look for logits "
            "that are softmaxed twice, for a sum where a mean is meant, and for targets among the inputs."
        ),
        unless=("the weights were trained elsewhere and not loaded as a checkpoint, or the classes are far from even"),
        code="nn.init.zeros_(head.weight)",
    )
)
