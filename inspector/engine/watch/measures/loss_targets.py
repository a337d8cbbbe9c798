"""What the loss of a training asks for, beside what the model gives: read where a backward pass begins, off what the
losses of torch saved for it (see hooks.loss_nodes)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from inspector.engine.hooks.loss_broadcast import CROSSED, crosses_all
from inspector.engine.hooks.loss_nodes import WRONG, Asked, are_shares, asked_of, origin, wrong_input
from inspector.engine.model.tensors_within import tensors_within
from inspector.engine.watch.measure import Measure, Moment
from inspector.engine.watch.measures.exchanged import Compared, compared, numbers_of, steps_ahead
from inspector.engine.watch.parameters import Parameters
from inspector.engine.watch.tables import PLACE, About
from inspector.engine.watch.turns import APART, FURTHER, Turns
from inspector.engine.wording import error_text

OWN, OTHERS, APART_BY, DIFFER = (f"{PLACE}:asked/{word}" for word in ("own", "others", "outputs", "differ"))
WRONG_INPUT, NUMBERS, AHEAD, OF_INPUT = (
    f"{PLACE}:asked/{word}" for word in ("given", "numbers", "ahead", "ahead_input")
)
STATISTICS = (
    "mean of targets", "deviation of targets", "mean of predictions", "deviation of predictions", "correlation",
)  # fmt: skip
SHIFTS = (0, 1, 2, 3)
BEGINNING = 64
"""Looks after which they are made less often: twice what the rules need that compare the end with the beginning."""
MOST_INPUTS = 4
"""Inputs of ids that are compared with the targets. Counter-example: a fifth one."""
SETTLED = 8
"""Looks after which what does not change while code stays as it is (what a loss is given, how targets lie beside
inputs) is looked for at every SETTLED / 2 th one only."""
_METHOD = (
    "of the first backward pass, from what torch's own losses saved for it; iterations are at least "
    f"{APART} apart in the preset normal, {FURTHER * APART} after {BEGINNING} looks; not of losses that are "
    "written out or compiled"
)
_EXCHANGED = "the targets of the batch are handed round, each sequence's to another, at the same steps"


@dataclass(slots=True)
class Call:
    """The first call of the model in an iteration: all ids that it was given (b, t), how many sequences, and what it
    gave."""

    ids: list[Tensor]
    sequences: int
    calls: int = 1
    outputs: list[Tensor] = field(default_factory=list)


class LossTargets(Measure):
    """Loss with the targets of each sequence and with those of others; targets beside predictions and inputs."""

    tables = (
        About(
            name=OWN, title="loss with the targets of each sequence", dtype="float64", method=_METHOD,
            formula="mean of −ln p(target), of (prediction − target)², or of the binary cross-entropy",
        ),
        About(
            name=OTHERS, title="loss with the targets of other sequences", dtype="float64", method=_METHOD,
            formula=f"the same mean over the same predictions, where {_EXCHANGED}",
            source="Karpathy 2019, A recipe for training neural networks: an input-independent baseline",
        ),
        About(
            name=APART_BY, title="difference between the outputs of sequences", method=_METHOD, scale="log",
            formula="max |y_n − y_m| / max |y|, of outputs that the loss is given, at the same steps",
        ),
        About(
            name=DIFFER, title="targets that differ from those of others", limits=(0, 1), method=_METHOD,
            formula="share of targets y_n ≠ y_m, m the sequence with which n is compared",
        ),
        About(
            name=WRONG_INPUT, title="what the loss is given", method=_METHOD, limits=(0, len(WRONG) - 1),
            formula=", ".join(f"{n}: {word}" for n, word in enumerate(WRONG)),
        ),
        About(
            name=NUMBERS, title="targets and predictions", dtype="float64", column=("statistic", "targets"),
            formula="over all entries of the batch; correlation: Pearson's", method=_METHOD,
        ),
        About(
            name=AHEAD, title="targets that are the input so many steps later", limits=(0, 1), method=_METHOD,
            column=("statistic", "steps ahead"), formula="share of targets with y_t = x_{t+s}, x the ids that the "
            "model is given; of several inputs the one that says most",
        ),
        About(name=OF_INPUT, title="which input of ids that is", method=_METHOD, formula="its number, from 0 on"),
    )  # fmt: skip

    def __init__(self, parameters: Parameters, turns: Turns) -> None:
        super().__init__(parameters)
        self._turns = turns
        self._call: Call | None = None
        self._over = False
        self._looks = 0

    def forward_begins(self, moment: Moment, model: nn.Module, args: Any, kwargs: Any) -> None:
        """Remember what is read until the loss is seen."""
        if WRONG_INPUT in moment.extra or self._over:
            return
        if self._call is not None:
            self._call.calls += 1
            return
        ids = ids_of(args, kwargs)
        given = [one for one in tensors_within((*args, *kwargs.values())) if one.dim() > 1]
        first = next(iter((*ids, *given)), None)
        self._call = Call(ids, 0 if first is None else len(first))

    def forward_ended(self, moment: Moment, model: nn.Module, output: Any) -> None:
        """Remember what it gave, for code in which no softmax is seen."""
        if self._call is not None and self._call.calls == 1:
            self._call.outputs = [one for one in tensors_within(output) if one.requires_grad][:4]

    def backward_begins(self, moment: Moment, roots: Sequence[Tensor]) -> None:
        """Compare, once an iteration."""
        call, self._call = self._call, None
        if self._over or WRONG_INPUT in moment.extra or len(roots) != 1 or not self._turns.has(moment, each=False):
            return
        moment.extra[WRONG_INPUT] = True
        try:
            self._look(moment, roots[0], call)
        except Exception as fault:  # noqa: BLE001 - losses of all sorts: one that cannot be read ends these series
            self._over = True
            self.say(f"What the loss is given is recorded no more ({error_text(fault)}).")

    def _look(self, moment: Moment, loss: Tensor, call: Call | None) -> None:
        asked = asked_of(loss)
        self._compare(moment, asked, 0 if call is None else call.sequences)
        self._looks += 1
        if self._looks > SETTLED and self._looks % (SETTLED // 2):
            return
        outputs = [] if call is None else call.outputs
        wrong = wrong_input(loss, lambda node: any(origin(one) is node and are_shares(one) for one in outputs))
        wrong = CROSSED if crosses_all(loss) else wrong
        if wrong is not None:
            moment.put(WRONG_INPUT, 0, float(wrong))
        if call is not None and call.calls == 1:
            self._ahead(moment, asked, call.ids)

    def _compare(self, moment: Moment, asked: Sequence[Asked], sequences: int) -> None:
        """The losses of one kind, that of the first."""
        same = [one for one in asked if one.kind == asked[0].kind]
        found = [one for one in (compared(each, sequences) for each in same) if one is not None]
        if found:
            mean = Compared.mean(found)
            for table, value in ((OWN, mean.own), (OTHERS, mean.others), (APART_BY, mean.apart), (DIFFER, mean.differ)):
                moment.pack.add(table, (0,), value)
        numbers = next((one for one in asked if one.kind == "numbers" and one.given.numel() > 1), None)
        if numbers is not None:
            columns = [self.column("targets", name) for name in STATISTICS]
            moment.pack.add(NUMBERS, columns, numbers_of(numbers))

    def _ahead(self, moment: Moment, asked: Sequence[Asked], given: Sequence[Tensor]) -> None:
        """Of several losses (heads that say several steps ahead) the largest share for each shift; of several inputs
        the one that says most of the targets."""
        of_inputs: list[tuple[int, Tensor]] = []
        for n, ids in enumerate(given):
            shares = [one for each in asked if (one := steps_ahead(each, ids, SHIFTS)) is not None]
            of_inputs += [(n, torch.stack(shares).amax(0))] if shares else []
        if of_inputs:
            number, chosen = of_inputs[0] if len(of_inputs) == 1 else max(of_inputs, key=lambda one: _says(one[1]))
            moment.pack.add(AHEAD, [self.column("steps ahead", str(one)) for one in SHIFTS], chosen)
            moment.pack.add(OF_INPUT, (0,), chosen.new_tensor([number]))

    def ends(self, moment: Moment) -> None:
        """Hold nothing of the batch."""
        self._call = None

    def over(self) -> None:
        """Hold nothing of the batch."""
        self._call = None


def ids_of(args: Any, kwargs: Any) -> list[Tensor]:
    """The ids (b, t) that a model is given, each once, in order; the first few."""
    every = [one for one in tensors_within((*args, *kwargs.values())) if one.dim() == 2]
    found = {id(one): one for one in every if one.dtype in (torch.int64, torch.int32)}
    return list(found.values())[:MOST_INPUTS]


def _says(shares: Tensor) -> tuple[float, bool]:
    """How much of the targets an input says. An input that is the targets' past comes before one that is the targets:
    the source of an autoencoder is its answer, and its decoder reads the answer so far."""
    known = shares.nan_to_num(0.0).tolist()
    return max(known), max(known) > known[0]
