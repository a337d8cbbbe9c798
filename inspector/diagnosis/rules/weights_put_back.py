"""Weights that are after some steps bit for bit what they were before them: exact."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from inspector.analysis.clipping import percent
from inspector.diagnosis.rule import COUNT, PART, RULES, Limit, Run, Scope, Trust
from inspector.diagnosis.series import Floats, table_of
from inspector.records import Finding

BEFORE, AFTER, LOSS = "training:weights/before", "training:weights/after", "training:loss"


class WeightsPutBack:
    """Reads a checksum of weights before and after each recorded step.

    A step that changed them, and before the next recorded one the same number as before it: something undid the steps
    in between. An error where that is so of nearly all; where weights come back now and then it is information, since a
    search that rejects steps, or an inner loop that begins from the same weights for each task, does so on purpose.
    """

    id = "IN133"
    untried = "what puts weights back is in your training loop"
    title = "Weights are put back after each step"
    summary = "Steps change the weights, and before the next one they are what they were."
    trust: Trust = "exact"
    scope: Scope = "training"
    reads = ("series",)
    needs = ()
    limits = (
        Limit("steps", 10, "Steps that changed weights; fewer may be a trial before the training.", within=COUNT),
        Limit("share", 0.9, "Of these, after which weights are what they were: then nothing is learned.", within=PART),
        Limit("times", 5, "Comebacks that are told as information."),
    )
    reference = "TrainCheck, arXiv 2506.14813: a step without effect"

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """At most one."""
        tables = [table_of(run, name) for name in (BEFORE, AFTER)]
        before, after = tables
        if before is None or after is None:
            return
        n = min(len(before.values), len(after.values))
        known = np.isfinite(before.values[:n, 0]) & np.isfinite(after.values[:n, 0])
        first, then = before.values[:n, 0][known], after.values[:n, 0][known]
        if run.too_few(len(first), run.limit("steps") + 1):
            return
        moved = then[:-1] != first[:-1]
        undone = moved & (first[1:] == first[:-1])
        iterations = before.iterations[:n][known]
        if moved.sum() >= run.limit("steps") and undone.sum() >= run.limit("share") * moved.sum():
            yield self._finding(undone, moved, iterations, tuple(one for one in (LOSS,) if one in run.channels))
        elif len(back := _comebacks(first, then)) >= run.limit("times"):
            yield self._now_and_then(back, iterations)

    def _finding(self, undone: Floats, moved: Floats, iterations: Floats, more: tuple[str, ...]) -> Finding:
        return Finding(
            rule="weights-put-back", severity="error", place="",
            message=f"after {percent(float(undone.sum() / moved.sum()))} of {int(moved.sum())} recorded steps the "
            "weights are, before the next one, what they were before the step: what it changed is undone",
            evidence=(BEFORE, AFTER, *more), iterations=(int(iterations[0]),),
            sure="exact for the entries that were compared, of up to 16 parameters",
            unless="steps are tried and rejected on purpose",
            remedy="Look for load_state_dict, copy_ or .data = inside the loop: a state that is kept as a reference or "
            "from before the training, an average or another copy of the weights that is put back after each step.",
            code="best = copy.deepcopy(model.state_dict())  # and load it once, after the training",
        )  # fmt: skip

    def _now_and_then(self, back: list[int], iterations: Floats) -> Finding:
        return Finding(
            rule="weights-put-back", severity="info", place="",
            message=f"the weights come back to what they were before an earlier step {len(back)} times (first at "
            f"iteration {iterations[back[0]]:g}): what was learned in between is gone",
            evidence=(BEFORE, AFTER), iterations=tuple(int(iterations[one]) for one in back[:3]),
            sure="exact for the entries that were compared, at recorded iterations; other comebacks are not seen",
            unless="tasks begin from the same weights on purpose, or steps are tried and rejected",
            remedy="Look for load_state_dict in the loop, or a model that is made anew with the same seed.",
        )  # fmt: skip


def _comebacks(before: Floats, after: Floats) -> list[int]:
    """Numbers of steps that begin with weights of an earlier one, others having been there in between."""
    last: dict[float, int] = {}
    found = []
    for n, value in enumerate(before.tolist()):
        earlier = last.get(value)
        if earlier is not None and (before[earlier:n] != value).any() | (after[earlier:n] != value).any():
            found.append(n)
        last[value] = n
    return found


RULES.register("weights-put-back")(WeightsPutBack())
