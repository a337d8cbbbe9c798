"""Train what is frozen."""

from __future__ import annotations

from inspector.engine.analyses.trial.trial_training import Copy
from inspector.engine.errors import Unsupported
from inspector.engine.registries import CURES
from inspector.records import counted


class Unfreeze:
    """Parameters with requires_grad False take part in training, as all others."""

    title = "Train every parameter"
    summary = "Parameters that require no gradient are trained too."
    rules = ("IN110", "IN111", "IN112", "IN126")

    def apply(self, copy: Copy) -> str:
        """Add them to the copy."""
        added = copy.unfreeze()
        own = copy.loop.own
        left = [] if own is None else sorted(copy.held.keys() - {n for group in own.groups for n in group.names})
        copy.loop.everything = True
        if left:
            return f"{counted(len(left), 'parameter')} that the optimizer did not have are trained"
        if not added:
            raise Unsupported(
                "Every parameter requires a gradient, and copies are trained with all of them in the optimizer: what "
                "keeps some from moving is in your own loop, or a detach() in the model."
            )
        return f"{counted(len(added), 'parameter')} that were frozen are trained"


CURES.register("unfreeze")(Unfreeze())
