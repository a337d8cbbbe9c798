"""What attention does with its scores, read off autograd's graph where the first backward passes begin."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from inspector.engine.hooks.score_facts import score_facts
from inspector.engine.watch.measure import Measure, Moment
from inspector.engine.watch.parameters import Parameters
from inspector.engine.watch.tables import PLACE, About
from inspector.engine.wording import error_text
from inspector.records.scores import SCORES

FACTS = f"{PLACE}:asked/scores"
TIMES = 3
"""Recorded iterations that are looked at: a graph is the same in each of a training, but for rare branches."""


class ScoreFacts(Measure):
    """Goes through the whole graph, so only at the beginning."""

    tables = (
        About(
            name=FACTS, title="what attention does with its scores", dtype="float64", column=("statistic", "scores"),
            formula="factor c in softmax(c · q·k); matrix products on the shortest way between attention layers",
            method=f"of the first {TIMES} recorded backward passes, from the operations that autograd recorded; not of "
            "compiled code, nor inside torch.utils.checkpoint",
            source="Vaswani et al. 2017, arXiv 1706.03762, section 3.2.1",
        ),
    )  # fmt: skip

    def __init__(self, parameters: Parameters) -> None:
        super().__init__(parameters)
        self._left = TIMES

    def backward_begins(self, moment: Moment, roots: Sequence[Tensor]) -> None:
        """Read the graph of the first pass of an iteration."""
        if not self._left or FACTS in moment.extra:
            return
        moment.extra[FACTS] = True
        self._left -= 1
        try:
            found = score_facts(roots)
        except Exception as fault:  # noqa: BLE001 - graphs of all sorts: one that cannot be read ends this series
            self._left = 0
            self.say(f"What attention does with its scores is not recorded ({error_text(fault)}).")
            return
        if found is None:
            self._left = 0  # no attention: the graph is not looked at again
            return
        for name, value in zip(SCORES, found, strict=True):
            moment.put(FACTS, self.column("scores", name), value)
