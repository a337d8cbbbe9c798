"""A causal mask of a finite number, which large scores outweigh."""

from inspector.diagnosis.rule import RULES
from inspector.diagnosis.structure_rule import StructureRule

RULES.register("finite-mask")(
    StructureRule(
        key="finite-mask",
        id="IN107",
        untried="the number that masks is in the model's code",
        title="Finite mask beaten",
        summary=(
            "The model does not read the future at its weights, and does with larger ones: its mask is a finite number."
        ),
        reference="the scores of a masked key are the score plus the number; only minus infinity is out of reach",
        test="large",
        remedy=(
            "Mask with minus infinity, or with a boolean mask of scaled_dot_product_attention; in half "
            "precision with the smallest number of the dtype."
        ),
        unless=(
            "scores stay bounded by normalised queries and keys, which random weights of the projections do not keep"
        ),
        code="scores = scores.masked_fill(mask, -torch.inf)",
        severity="warning",
    )
)
