"""The base of rules on what attention does with its scores, of a training or of the newest run."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from inspector.analysis.before_training.scored import Facts
from inspector.diagnosis.rule import Limit, Run, Scope, Trust
from inspector.diagnosis.series import table_of
from inspector.records import Finding
from inspector.records.scores import SCORES

WATCHED, TESTED = "training:asked/scores", "model:structure/scores"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreRule:
    """Reads numbers of autograd's graph.

    Attributes:
        key, id, title, summary, reference, trust, limits, untried: as of every rule.
        says: the sentence of a fault, "" where there is none, from the numbers and the limits by name.
        remedy, code, unless: of a finding.
    """

    key: str
    id: str
    title: str
    summary: str
    reference: str
    trust: Trust = "exact"
    limits: tuple[Limit, ...] = ()
    untried: str = "what is made of scores is in the model's code"
    says: Callable[[Facts, dict[str, float]], str]
    remedy: str
    code: str
    unless: str
    scope: Scope = "training"
    reads: tuple[str, ...] = ("structure", "series")
    needs: tuple[str, ...] = ("structure/scores",)

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """At most one. Of a training the same has to be so in all passes that were looked at."""
        limits = {one.name: run.limit(one.name) for one in self.limits}
        table = table_of(run, WATCHED)
        if table is not None:
            said = [self.says(Facts.read(table.names, row), limits) for row in table.values.astype(np.float64)]
            if said and all(said):
                count = len(said)
                sure = f"exact: the operations that autograd recorded in {count} backward pass{'es' * (count != 1)}"
                yield self._finding(said[0], WATCHED, sure, (int(table.iterations[0]),))
        elif TESTED in run.channels and run.revision(TESTED):
            values = np.ma.filled(np.ma.asarray(run.array(TESTED, run.frame_of(TESTED)), np.float64), np.nan)
            if told := self.says(Facts.read(SCORES, values), limits):
                yield self._finding(told, TESTED, "exact: the operations that autograd recorded in one call", ())

    def _finding(self, said: str, evidence: str, sure: str, iterations: tuple[int, ...]) -> Finding:
        return Finding(
            rule=self.key, severity="warning", place="", message=said, evidence=(evidence,), iterations=iterations,
            sure=sure, unless=self.unless, remedy=self.remedy, code=self.code,
        )  # fmt: skip
