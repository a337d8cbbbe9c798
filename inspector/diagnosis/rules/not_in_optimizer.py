"""A trainable parameter that no optimizer has: exact, no threshold."""

from __future__ import annotations

from collections.abc import Iterable

from inspector.diagnosis.rule import RULES, Run, Scope, Trust
from inspector.diagnosis.series import listed, the_only
from inspector.records import Finding

NORMS = "parameters:gradient/norm"


class NotInOptimizer:
    """Reads the groups of the optimizers. Usual cause: the optimizer was made before the model was moved, wrapped or
    extended."""

    id = "IN110"
    title = "Parameters that no optimizer has"
    summary = "A parameter that requires a gradient is never updated."
    trust: Trust = "exact"
    scope: Scope = "training"
    reads = ("series",)
    needs = ()
    limits = ()
    reference = "huggingface/accelerate#2665: parameters replaced after the optimizer was made"

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """One for all such parameters, and one for those that the model itself does not know."""
        said = run.training()
        hidden = [str(name) for name in said.get("unregistered", ())]
        if hidden:
            yield self._hidden(hidden)
        if not said.get("optimizers", True):
            return  # a loop that makes its steps by itself
        frozen = set(said.get("frozen", ()))
        names = [str(name) for name in said.get("without_optimizer", ()) if name not in frozen]
        if names:
            yield Finding(
                rule="not-in-optimizer", severity="warning", place=the_only(names), places=tuple(names),
                message=f"no optimizer has {listed(names)}, though "
                f"{'they require' if len(names) > 1 else 'it requires'} a gradient",
                evidence=(NORMS,) if NORMS in run.channels else (), sure="exact, when watching began",
                unless="they were added to a group later, or are updated by hand",
                remedy="Make the optimizer after the model is complete, moved and wrapped, from all of its parameters; "
                "what is meant to stay gets requires_grad_(False).",
                code="optimizer = torch.optim.AdamW(model.parameters(), lr)",
            )  # fmt: skip

    @staticmethod
    def _hidden(names: list[str]) -> Finding:
        return Finding(
            rule="not-in-optimizer", severity="warning", place="",
            message=f"the model keeps {listed(names)} in a plain list, tuple or dictionary, where torch does not find "
            f"{'them' if len(names) > 1 else 'it'}: no optimizer, no checkpoint and no .to(device) has "
            f"{'them' if len(names) > 1 else 'it'}",
            sure="exact, when watching began",
            unless="they are kept apart on purpose, as a teacher or a net that measures the loss may be",
            remedy="Keep modules in nn.ModuleList or nn.ModuleDict and parameters in nn.ParameterList, before the "
            "optimizer is made; what is meant to stay gets requires_grad_(False).",
            code="self.layers = nn.ModuleList(layers)",
        )  # fmt: skip


RULES.register("not-in-optimizer")(NotInOptimizer())
