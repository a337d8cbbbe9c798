"""Step copies of the parameters in float32."""

from __future__ import annotations

from inspector.engine.analyses.trial.trial_training import Copy
from inspector.engine.errors import Unsupported
from inspector.engine.registries import CURES


class Float32Copies:
    """Micikevicius et al. 2018, arXiv 1710.03740: a master copy keeps updates that half precision rounds away."""

    title = "Step in float32"
    summary = "The optimizer steps copies of the parameters in float32; the model computes with them rounded."
    rules = ("IN113", "IN118")

    def apply(self, copy: Copy) -> str:
        """Keep wide copies."""
        narrow = [name for name, one in copy.held.items() if one.element_size() < 4]
        if not narrow:
            raise Unsupported("No parameter is in half precision.")
        copy.loop.wide = True
        return f"{len(narrow)} parameters are stepped in float32"


CURES.register("float32_copies")(Float32Copies())
