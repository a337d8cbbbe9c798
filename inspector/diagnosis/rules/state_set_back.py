"""A loop over steps that gives its cell a fresh state at every one of them: exact."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from inspector.diagnosis.rule import COUNT, RULES, Limit, Run, Scope, Trust, scalar
from inspector.diagnosis.series import listed, table_of, the_only
from inspector.records import Finding

FRESH, CAUSAL = "modules:state/fresh", "model:structure/causal"
REMEDY = "Make the first state before the loop, and hand on in the loop what the cell returns."
CODE = "h = cell(x[:, t], h)  # with h = x.new_zeros(b, hidden) once, before the loop"


class StateSetBack:
    """Reads what state modules are given that are called step after step within one call of the model.

    A cell that is given zeros, or no state, at each of its steps forgets all of them; so does a loop by hand whose
    recurrent layer is given zeros at each step, in a model in which nothing depends on an earlier step.
    Counter-example: a cell that is applied to separate things, one by one.
    """

    id = "IN134"
    untried = "what the loop hands on is in the model's code"
    title = "The state is set back at every step"
    summary = "A loop over steps gives its cell a fresh state each time, so that nothing is remembered."
    trust: Trust = "exact"
    scope: Scope = "training"
    reads = ("structure", "series")
    needs = ("structure/causal",)
    limits = (
        Limit("looks", 2, "Calls of the model, in all of which it is so.", within=COUNT),
        Limit("steps", 3, "Steps before the last one whose input is replaced: fewer show no loop.", within=COUNT),
    )
    reference = "Elman 1990, Finding structure in time: the state of a step is an input of the next one"

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """At most one, for all such modules; without a training one of the newest run."""
        table = table_of(run, FRESH)
        if table is None:
            yield from self._of_a_run(run)
            return
        known = np.isfinite(table.values)
        seen = known.sum(0)
        judged = [n for n in range(len(seen)) if not run.too_few(int(seen[n]), run.limit("looks"))]
        names = [table.names[n] for n in judged if bool((table.values[known[:, n], n] == 1).all())]
        if not names:
            return
        one = len(names) == 1
        yield Finding(
            rule="state-set-back", severity="warning", place=the_only(names), places=tuple(names),
            message=f"{listed(names)} {'is' if one else 'are'} called step after step, and given a state of zeros, or "
            "none, at every one of them: no step knows of those before it",
            evidence=(FRESH,), iterations=(int(table.iterations[known.any(1)][0]),),
            sure=f"exact, in all {int(seen[judged].max())} calls of the model that were looked at",
            unless="the module is applied to separate things, one by one",
            remedy=REMEDY, code=CODE,
        )  # fmt: skip

    def _of_a_run(self, run: Run) -> Iterable[Finding]:
        if CAUSAL not in run.channels or not run.revision(CAUSAL):
            return
        at = run.frame_of(CAUSAL)
        table = np.ma.filled(np.ma.asarray(run.array(CAUSAL, at), np.float64), np.nan)
        source, step = np.indices(table.shape)
        earlier = np.isfinite(table) & (source < step)
        rounding = scalar(run, "structure/causal/rounding", at)
        own = np.where(source == step, np.nan_to_num(table), 0.0)
        if table.shape[0] != table.shape[1] or earlier.any(1).sum() < run.limit("steps"):
            return
        if np.nanmax(table[earlier]) > rounding or not own.max() > rounding:
            return
        states = [one.name for one in run.channels.values() if one.kind == "state" and run.revision(one.name, at)]
        meant = bool(states) or scalar(run, "structure/causal/recurrent", at) > 0
        yield Finding(
            rule="state-set-back", severity="warning" if meant else "info", place="",
            message=f"outputs depend on the input of their own step alone: of {int(earlier.any(1).sum())} inputs that "
            "were replaced, one by one, none changes an output after its step",
            evidence=(CAUSAL, *states[:1]), sure="exact but for rounding, on the sequence that was given",
            unless="the gates keep the state shut at these weights" if meant
            else "each step is meant to be judged by itself",
            remedy=REMEDY, code=CODE,
        )  # fmt: skip


RULES.register("state-set-back")(StateSetBack())
