"""Modules in evaluation mode while the model is trained: exact."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from inspector.analysis.clipping import percent
from inspector.diagnosis.rule import PART, RULES, Limit, Run, Scope, Trust
from inspector.diagnosis.series import listed, table_of
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


EVALUATING = "training:evaluation_mode"


class EvaluationMode:
    """Reads the flags as they were when watching began, and whether any module is in training mode in each iteration.

    Counter-example: a frozen encoder, or batch normalisation that keeps its statistics on purpose.
    """

    id = "IN116"
    title = "Modules in evaluation mode"
    summary = "Dropout and batch normalisation do not do what they do in training."
    trust: Trust = "exact"
    scope: Scope = "training"
    reads = ("series",)
    needs = ()
    limits = (
        Limit("share", 0.05, "Of the recorded iterations: a step of an evaluation by itself is rare.", within=PART),
    )
    reference = "torch.nn.Module.eval: dropout is off, batch normalisation uses its running statistics"

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """At most one."""
        said, table = run.training(), table_of(run, EVALUATING)
        flags = None if table is None else table.values[:, 0]
        if table is not None and flags is not None and np.isfinite(flags).any():
            evaluating = np.flatnonzero(flags > 0)
            share = len(evaluating) / int(np.isfinite(flags).sum())
            if share > run.limit("share"):
                yield self._finding(
                    f"no module is in training mode in {percent(share)} of {int(np.isfinite(flags).sum())} recorded "
                    f"iterations, first at iteration {table.iterations[evaluating[0]]:g}",
                    iterations=(int(table.iterations[evaluating[0]]),), evidence=(EVALUATING,),
                )  # fmt: skip
                return
        elif said and not said.get("training", True):
            yield self._finding("the model was in evaluation mode when watching of its training began")
            return
        kinds = said.get("classes", {}) if said.get("training", True) else {}  # else they have changed since
        names = [str(name) for name, kind in kinds.items() if str(kind).lower().startswith(MATTER)]
        if names:
            message = f"{counted(len(names), 'module')} in evaluation mode when watching began: {listed(names)}"
            yield self._finding(message, place=names[0], places=tuple(names))

    def _finding(self, message: str, place: str = "", places: tuple[str, ...] = (), **more: Any) -> Finding:
        exact = "exact for the recorded iterations" if more else "exact at that moment; later flags were not recorded"
        return Finding(
            rule="evaluation-mode", severity="info" if place else "warning", place=place, places=places,
            message=message, sure=exact,
            unless="they are frozen on purpose" if more
            else "train() is called between then and the first forward pass, or they are frozen on purpose",
            remedy="Call model.train() before each epoch, after every evaluation.", code="model.train()", **more,
        )  # fmt: skip


RULES.register("evaluation-mode")(EvaluationMode())
