"""Modules in evaluation mode while the model is trained: exact."""

from __future__ import annotations

from collections.abc import Iterable

from inspector.diagnosis.rule import RULES, Run, Scope, Trust
from inspector.diagnosis.series import listed
from inspector.records import Finding, counted

MATTER = (
    "dropout",
    "alphadropout",
    "featurealphadropout",
    "batchnorm",
    "syncbatchnorm",
    "instancenorm",
    "lstm",
    "gru",
    "rnn",
)
"""Beginnings of the names of classes that do something else in training. Counter-example: a class of the user's own
that looks at its flag is not found."""


class EvaluationMode:
    """Reads the flags as they were when watching began.

    Counter-example: a frozen encoder, or batch normalisation that keeps its statistics on purpose.
    """

    id = "IN116"
    title = "Modules in evaluation mode"
    summary = "Dropout and batch normalisation do not do what they do in training."
    trust: Trust = "exact"
    scope: Scope = "training"
    reads = ("series",)
    needs = ()
    limits = ()
    reference = "torch.nn.Module.eval: dropout is off, batch normalisation uses its running statistics"

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """At most one."""
        said = run.training()
        kinds = said.get("classes", {})
        names = [str(name) for name, kind in kinds.items() if str(kind).lower().startswith(MATTER)]
        if not said or (said.get("training", True) and not names):
            return
        whole = not said.get("training", True)
        yield Finding(
            rule="evaluation-mode", severity="warning" if whole else "info", place="" if whole else names[0],
            message="the model was in evaluation mode when watching of its training began" if whole
            else f"{counted(len(names), 'module')} in evaluation mode when watching began: {listed(names)}",
            sure="exact at that moment; flags that change later are not recorded",
            unless="train() is called between then and the first forward pass, or they are frozen on purpose",
            remedy="Call model.train() before each epoch, after every evaluation.", code="model.train()",
        )  # fmt: skip


RULES.register("evaluation-mode")(EvaluationMode())
