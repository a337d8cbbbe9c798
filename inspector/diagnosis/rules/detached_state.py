"""A recurrence of which the model itself cuts the gradient between steps: exact, no threshold."""

from __future__ import annotations

from collections.abc import Iterable

from inspector.analysis.gradient_cuts import CODE, REMEDY, Cut, cuts_of
from inspector.diagnosis.rule import RULES, Run, Scope, Trust
from inspector.records import Finding


class DetachedState:
    """Reads what the recorder noted: before which steps the whole state passes no gradient on to the step before.

    A warning where that is every step, so that nothing is learned through time. Fewer cuts are truncated
    backpropagation, which a long sequence may need, and so information: IN201 warns where influence was computed and
    the loss depends on what lies beyond. Counter-example of the warning: a recurrence that is trained on one step at a
    time on purpose, as random reservoirs and some fixed-point iterations are.
    """

    id = "IN124"
    untried = "what cuts the gradient is in the model's code"
    title = "The state is detached between steps"
    summary = "The model cuts the gradient of a recurrence, so that a loss teaches nothing before the cut."
    trust: Trust = "exact"
    scope: Scope = "frame"
    reads = ("state", "structure", "trial")  # of a pre-flight no states are kept, and cuts are noted all the same
    needs = ()
    limits = ()
    reference = "Williams & Peng 1990 (truncated backpropagation through time)"

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """One for each recurrence."""
        states = [one.name for one in run.channels.values() if one.kind == "state" and run.revision(one.name, frame)]
        for cut in cuts_of(run, frame):
            yield _finding(cut, [name for name in states if name.startswith(f"{cut.place}:")] or states, run)


def _finding(cut: Cut, states: list[str], run: Run) -> Finding:
    norms = f"{cut.place}:gradient/state_norm"
    evidence = [norms] if norms in run.channels and run.revision(norms, cut.frame) else states[:1]
    return Finding(
        rule="detached-state", severity="warning" if cut.every else "info", place=cut.place, message=cut.said,
        evidence=tuple(evidence), sure="exact: what autograd recorded of this run",
        unless="it is meant to learn from one step alone" if cut.every
        else "the truncation is meant, and what the task needs lies between two cuts",
        remedy=REMEDY, code=CODE,
    )  # fmt: skip


RULES.register("detached-state")(DetachedState())
