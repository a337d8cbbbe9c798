"""An embedding and a last layer that are meant to be one parameter, and are two."""

from inspector.diagnosis.rule import RULES
from inspector.diagnosis.structure_rule import StructureRule

RULES.register("tied-weights")(
    StructureRule(
        key="tied-weights",
        id="IN121",
        untried="whether two layers share a weight is in the model's code, or in how it is loaded",
        title="Tied weights that are two parameters",
        summary="An embedding and a last layer are equal or declared to be tied, and lie in two memories.",
        reference="Press & Wolf 2017, arXiv 1608.05859; verl-project/verl#7834",
        test="tied",
        sure="exact: every entry was compared, and where it lies",
        remedy="Tie them again after loading, wrapping or moving the model.",
        unless="the last layer begins as a copy of the embedding on purpose",
        code="model.head.weight = model.embedding.weight",
        severity="warning",
    )
)
