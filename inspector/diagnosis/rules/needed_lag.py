"""Data that depend on inputs further back than the gradient of the untrained model reaches."""

from inspector.analysis.before_training.reach import FEWEST_SEQUENCES, SHARE, STANDS_OUT
from inspector.diagnosis.rule import COUNT, PART, RULES, Limit
from inspector.diagnosis.trial_rule import TrialRule

RULES.register("needed-lag")(
    TrialRule(
        key="needed-lag",
        id="IN206",
        title="The data need longer lags than the gradient reaches",
        summary="Targets depend on inputs further back than the gradient reaches before training.",
        reference="Bengio, Simard & Frasconi 1994; Li 1990, J. Stat. Phys. 60:823 (mutual information by lag)",
        test="reach",
        sure="counted in the data against a null in which sequences are exchanged; the gradient is that of one run",
        limits=(
            Limit(
                "share",
                SHARE,
                "Of what the newest input leaves unknown: from here on influence counts, too.",
                within=PART,
            ),
            Limit(
                "times", STANDS_OUT, "Times what any input within reach tells; of less, nearer ones may tell the same."
            ),
            Limit(
                "sequences",
                FEWEST_SEQUENCES,
                "Of fewer, what repeats in one by chance is taken for a need.",
                within=COUNT,
            ),
        ),
        remedy=(
            "Gates that stay open (a forget bias of 1 or more), an orthogonal recurrent matrix, skip connections "
            "through time, or attention carry a gradient that far."
        ),
        unless="several nearer inputs together tell the same, or training lets the gradient reach further",
        code="nn.init.orthogonal_(rnn.weight_hh_l0)",
    )
)
