"""A recurrence of which the model itself cuts the gradient between steps: exact, no threshold."""

from __future__ import annotations

from collections.abc import Iterable

from inspector.analysis.gradient_cuts import CODE, REMEDY, Cut, cuts_of, parts_cut
from inspector.diagnosis.rule import RULES, Run, Scope, Trust
from inspector.records import Finding


class DetachedState:
    """Reads what the recorder noted: before which steps the whole state passes no gradient on to the step before.

    A warning where that is every step, so that nothing is learned through time. Fewer cuts are truncated
    backpropagation, which a long sequence may need, and so information: IN201 warns where influence was computed and
    the loss depends on what lies beyond. So is a part of the state (an LSTM's c) or of the step that is detached, which
    straight-through estimators do on purpose. Counter-example of the warning: a recurrence that is trained on one step
    at a time on purpose, as random reservoirs and some fixed-point iterations are.
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
        whole = cuts_of(run, frame)
        for cut in whole:
            yield _finding(cut, _evidence(run, cut.place, cut.frame, states))
        for place, said in parts_cut(run, frame).items():
            if place not in {cut.place for cut in whole}:
                yield _of_a_part(place, said, _evidence(run, place, frame, states))


def _evidence(run: Run, place: str, frame: int, states: list[str]) -> tuple[str, ...]:
    """The channel that shows where gradients end: their norms, else the states of the recurrence, if there are any."""
    norms = f"{place}:gradient/state_norm"
    own = [name for name in states if name.startswith(f"{place}:")] or states
    return (norms,) if norms in run.channels and run.revision(norms, frame) else tuple(own[:1])


def _of_a_part(place: str, said: str, evidence: tuple[str, ...]) -> Finding:
    return Finding(
        rule="detached-state", severity="info", place=place, message=said, evidence=evidence,
        sure="exact: what autograd recorded of this run",
        unless="it is meant, as in a straight-through estimator, and the rest carries what the task needs",
        remedy=REMEDY,
    )  # fmt: skip


def _finding(cut: Cut, evidence: tuple[str, ...]) -> Finding:
    return Finding(
        rule="detached-state", severity="warning" if cut.every else "info", place=cut.place, message=cut.said,
        evidence=evidence, sure="exact: what autograd recorded of this run",
        unless="it is meant to learn from one step alone" if cut.every
        else "the truncation is meant, and what the task needs lies between two cuts",
        remedy=REMEDY, code=CODE,
    )  # fmt: skip


RULES.register("detached-state")(DetachedState())
