"""Backward passes that go through the graphs of earlier iterations: a state was not detached. Exact."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from inspector.diagnosis.rule import COUNT, RULES, Limit, Run, Scope, Trust
from inspector.diagnosis.series import Floats, Table, listed, table_of
from inspector.records import Finding, counted
from inspector.records.run import Severity

GRAPH, KEPT, FAILED = "training:graph/nodes", "training:graph/kept_in", "training:graph/failed"
NODES, OLD, BACK = range(3)
WHY = {
    1: "what its earlier pass had freed is needed again",
    2: "weights that it needs as they were have been changed by the step since",
}
"""By the numbers of training:graph/failed."""


class EarlierGraphs:
    """Reads of how many earlier iterations the graph of a backward pass has nodes, and whether torch refused it.

    Longer sequences make a graph longer too, but of its own iteration; so a training that becomes slower for another
    reason has nothing here. An error where the pass failed by it, a warning where the graph grows from iteration to
    iteration, information where it goes back over always as many. Counter-example: truncated backpropagation whose
    windows overlap several steps on purpose, or a constant that was computed once before the training.
    """

    id = "IN137"
    untried = "where a state is detached is in the model's code, or in your training loop"
    title = "A state is not detached"
    summary = "Backward passes go through the graphs of earlier iterations, further with each."
    trust: Trust = "exact"
    scope: Scope = "training"
    reads = ("series",)
    needs = ()
    limits = (
        Limit(
            "iterations",
            10,
            "Windows that overlap, or two models that take turns, go back over a few; a judgement.",
            within=COUNT,
        ),
    )
    reference = "torch.Tensor.detach; Williams & Peng 1990 (truncated backpropagation through time)"

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """At most one."""
        table = table_of(run, GRAPH)
        if table is None or table.values.shape[1] <= BACK:
            return
        known = np.isfinite(table.values[:, : BACK + 1]).all(1)
        looks, at = table.values[known].astype(np.float64), table.iterations[known]
        failed = _failed(run, at)
        if failed and looks[-1, BACK] > 0:
            yield self._finding(run, looks, at, "error", f": torch refused it, since {WHY[failed]}")
        elif len(looks) and looks[:, BACK].max() >= run.limit("iterations"):
            grows = _grows(looks[:, BACK])
            more = f", and one more with each iteration; at iteration {at[0]:g} it had {looks[0, NODES]:g}"
            yield self._finding(run, looks, at, "warning" if grows else "info", more if grows else "")

    def _finding(self, run: Run, looks: Floats, at: Floats, severity: Severity, more: str) -> Finding:
        worst = len(looks) - 1 if severity == "error" else int(looks[:, BACK].argmax())
        nodes, old, back = looks[worst, :3]
        holds = _names(table_of(run, KEPT))
        evidence = tuple(one for one in (GRAPH, KEPT, FAILED) if one in run.channels)
        return Finding(
            rule="earlier-graphs", severity=severity, place="",
            message=f"the backward pass of iteration {at[worst]:g} goes through the graph of "
            f"{counted(int(back), 'earlier iteration')}: {old:g} of its {nodes:g} nodes"
            + (f" (held by {listed(holds)})" if holds else "") + more,
            evidence=evidence, iterations=(int(at[worst]),),
            sure="exact: autograd numbers its nodes in the order in which they are made",
            unless="windows of truncated backpropagation overlap on purpose, or something that was computed once is "
            "used in every iteration",
            remedy="Detach what is handed on to the next iteration, where it is kept: its numbers stay, the gradient "
            "ends there. retain_graph=True hides the error of torch and keeps all graphs in memory.",
            code="state = state.detach()  # of an LSTM: tuple(one.detach() for one in state)",
        )  # fmt: skip


def _names(table: Table | None) -> tuple[str, ...]:
    return () if table is None else tuple(name for n, name in enumerate(table.names) if (table.values[:, n] > 0).any())


def _failed(run: Run, at: Floats) -> int:
    """How the last look ended: a key of WHY, 0 where that pass did not fail."""
    table = table_of(run, FAILED)
    if table is None or not len(at):
        return 0
    last = np.flatnonzero(np.isfinite(table.values[:, 0]))
    code = int(table.values[last[-1], 0]) if len(last) and table.iterations[last[-1]] == at[-1] else 0
    return code if code in WHY else 0


def _grows(back: Floats) -> bool:
    """Whether it is larger at the end than in the middle, or begins anew and grows again (at each epoch, say)."""
    steps = np.diff(back[np.argmax(back > 0) :])
    return bool(len(steps)) and bool((steps > 0).mean() > 0.5)


RULES.register("earlier-graphs")(EarlierGraphs())
