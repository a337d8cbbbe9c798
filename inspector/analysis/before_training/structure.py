"""What the structure tests say, in sentences: read from the channels that they wrote, wherever these are shown."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from inspector.analysis.before_training.given import loss_input_verdict
from inspector.analysis.before_training.late_inputs import late_verdict
from inspector.analysis.before_training.left_padding import left_padding_verdict
from inspector.analysis.before_training.scored import scores_verdict
from inspector.analysis.before_training.verdicts import Numbers, Readings, Tested, Verdict, share
from inspector.analysis.before_training.wiring import accumulation_verdict, labels_verdict, tied_verdict
from inspector.records import ANSWER_DOMAIN

QUERY = "structure/query"
NORMALISES = ("BatchNorm", "SyncBatchNorm")
CANCELS = 1e-5
"""Distances of attention rows up to this are rounding of a softmax in float32."""
NAMES = (
    "causal",
    "batch",
    "padding",
    "left_padding",
    "order",
    "repeat",
    "cache",
    "query",
    "tied",
    "labels",
    "accumulation",
    "loss_input",
    "scores",
)
TESTS = tuple(f"structure/{test}" for test in NAMES)
"""Keys of the quantities that make the tests."""
READS_ITS_TARGET = "The model is trained to predict its next input, which it can read."
READS_WHAT_IT_SAYS = "The decoder is trained to say what it is given, which it can read."
BETWEEN = "between "
"""How a place begins that is no module: the code from one call of a module to the next."""
NOT_SHIFTED = (
    "Give the decoder what it said before: a start sign, and the answer without its last entry "
    "(torch.cat([start, answer[:, :-1]], 1)). Where it is shifted already, mask what comes later."
)
INVERTED = (
    "See which value hides: masked_fill hides where its mask is True, a boolean mask of scaled_dot_product_attention "
    "where it is False. Mask by −∞: a query without a key is then seen at once, as NaN."
)
READS_BOTH = "A model that reads both directions does so by design; one that predicts what it is given must not."
BEGINS_AT_ZERO = (
    "No output changes when any input is replaced, and weights of the model are all 0, as of a read-out that begins "
    "so: what outputs depend on shows after a first step of training."
)
LEAST_LEAK = 2e-3
"""Of the largest output: what a beaten mask moves at least. From one size of weights to the next scores grow 64 times,
so that a mask which lets anything through lets nearly all through at the next; a convolution by Fourier transforms,
whose rounding grows with its kernel, moves some 2e-4. Half precision has a larger limit of its own."""


def verdicts(run: Tested, frame: int = -1, only: str = "") -> list[Verdict]:
    """What every test that was made says, in a fixed order; "not tested" with the reason where one was refused.

    only: "causal", "large", "batch", "padding", "left_padding", "order", "repeat" (with "random"), "finite", "cache",
        "query", "tied", "labels", "accumulation", "loss_input" or "scores": that one alone.
    Raises CaptureError.
    """
    tests = _Tests(run, frame)
    makers: dict[str, Callable[[], Iterator[Verdict]]] = {
        "causal": partial(tests.of, "causal", tests.causal), "large": tests.large,
        "batch": partial(tests.of, "batch", tests.batch), "padding": partial(tests.of, "padding", tests.padding),
        "left_padding": partial(tests.of, "left_padding", partial(left_padding_verdict, tests)),
        "order": partial(tests.of, "order", tests.order), "repeat": partial(tests.of, "repeat", tests.repeat),
        "finite": tests.finite, "cache": partial(tests.of, "cache", tests.cache), "query": tests.query,
        "tied": partial(tests.of, "tied", partial(tied_verdict, tests)),
        "labels": tests.labels,
        "accumulation": partial(tests.of, "accumulation", partial(accumulation_verdict, tests)),
        "loss_input": partial(tests.of, "loss_input", partial(loss_input_verdict, tests)),
        "scores": partial(tests.of, "scores", partial(scores_verdict, tests)),
    }  # fmt: skip
    return [verdict for test, make in makers.items() if only in ("", test) for verdict in make()]


class _Tests(Readings):
    """The tests of one frame."""

    group = "structure"

    def causal(self, table: Numbers) -> Iterator[Verdict]:
        name = self.channel("causal")
        if not np.nanmax(table, initial=0.0) > 0 and self._begins_at_zero():
            yield Verdict("causal", "not tested", BEGINS_AT_ZERO, 0.0, name)
            return
        if not np.nanmax(table, initial=0.0) > 0:
            said = "No output changes when any input is replaced: the input does not reach the output."
            yield Verdict("causal", "fault", said, 0.0, name)
            return
        later = self._later(table)
        number = float(later.max(initial=0.0))
        if unclear := [*self.unclear("causal", number, self._rounding("causal"))]:
            yield from unclear
            return
        if number <= self._rounding("causal"):
            tested = f"{int(np.isfinite(table).any(1).sum())} of {len(table)} inputs replaced, one by one"
            given = self._given()
            said = (
                f"No output depends on what it is to say, or on what comes after that ({given}: {tested})."
                if self._own() else
                f"No output depends on an input after its own step ({given}: {tested})." if given else
                f"No output depends on an input after its own step ({tested})."
            )  # fmt: skip
            yield Verdict("causal", "holds", said, number, name)
            return
        source, step = (int(one) for one in np.unravel_index(int(later.argmax()), later.shape))
        where, meant = self._first("causal"), self.scalar("causal/next_token") > 0
        given = self._given()
        replaced = f"step {source} of {given}" if given else f"the input of step {source}"
        after = "which it is to say" if source == step else "which comes after it"
        reads = (READS_WHAT_IT_SAYS if given else READS_ITS_TARGET) if meant else READS_BOTH
        said = (
            f"The output at step {step} changes by {share(number)} of the largest output when {replaced} is replaced, "
            f"{after}{_from(where)}. {reads}"
        )
        remedy = NOT_SHIFTED if meant and source == step and given else ""
        yield Verdict("causal", "fault" if meant else "fact", said, number, name, where, (step, source), remedy)

    def _begins_at_zero(self) -> bool:
        """Whether no output depends on any input, in a model that has a weight matrix of zeros."""
        table = self.array("causal")
        still = table is not None and not np.nanmax(table, initial=0.0) > 0
        return still and self.scalar("causal/zero_weights") > 0

    def _given(self) -> str:
        """Which input was replaced, where that is not the primary one."""
        domain = self.run.channel(self.channel("causal"), self.frame).domain("source")
        return {"source": "", "step": "", ANSWER_DOMAIN: "the decoder's input"}.get(domain, domain)

    def _own(self) -> bool:
        """Whether step s of what was replaced is what the output of step s is to say."""
        return self.scalar("causal/behind", 1.0) == 0

    def _later(self, table: Numbers) -> Numbers:
        """The changes of outputs before they may read the input that was replaced; 0 elsewhere, and where none was."""
        source, step = np.indices(table.shape)
        found: Numbers = np.where((source + self._own() > step) & ~np.isnan(table), table, 0.0)
        return found

    def large(self) -> Iterator[Verdict]:
        values, table = self.array("causal/large"), self.array("causal")
        if values is None or table is None:
            return
        name, rounding = self.channel("causal/large"), self._rounding("causal")
        if self._later(table).max(initial=0.0) > rounding:
            return  # it depends on later inputs as it is
        factors = [word.removeprefix("factor ") for word in self.run.channel(name, self.frame).labels["value"]]
        over = [n for n, value in enumerate(values) if value > max(rounding, LEAST_LEAK)]
        most = float(np.nanmax(values, initial=0.0))
        if not over and most > LEAST_LEAK and (unclear := [*self.unclear("large", most, rounding)]):
            yield from (replace(one, channel=name) for one in unclear)
            return
        if not over:
            tested = [factor for factor, value in zip(factors, values, strict=True) if np.isfinite(value)]
            said = f"Nor with random weights {', '.join(tested)} times the usual size." if tested else ""
            said = said or "With random weights the outputs are not finite."
            yield Verdict("large", "holds" if tested else "not tested", said, most, name)
            return
        said = (
            f"With random weights {factors[over[0]]} times the usual size, outputs depend on later inputs, by "
            f"{share(float(values[over[0]]))} of the largest output: the mask is a finite number, which large scores "
            "outweigh."
        )
        yield Verdict("large", "fault", said, float(values[over[0]]), name)

    def batch(self, values: Numbers) -> Iterator[Verdict]:
        name, number = self.channel("batch"), float(np.nanmax(values, initial=0.0))
        if unclear := [*self.unclear("batch", number, self._rounding("batch"))]:
            yield from unclear
            return
        if number <= self._rounding("batch"):
            said = "A sequence's outputs do not depend on the others of its batch."
            yield Verdict("batch", "holds", said, number, name)
            return
        where = self._first("batch")
        said = (
            f"A sequence's outputs change by {share(number)} of the largest output when the other sequences of its "
            f"batch are replaced{_from(where)}."
        )
        normalises = any(f"({word}" in where for word in NORMALISES)
        more = (
            " Batch normalisation in training mode does so by design." if normalises else
            " Batch and time may be exchanged (batch_first), or a sum goes over the batch axis."
        )  # fmt: skip
        yield Verdict("batch", "fact" if normalises else "fault", said + more, number, name, where)

    def padding(self, values: Numbers) -> Iterator[Verdict]:
        name, number = self.channel("padding"), float(np.nanmax(values, initial=0.0))
        told = self.scalar("padding/told") > 0
        if unclear := [*self.unclear("padding", number, self._rounding("padding"))]:
            yield from unclear
            return
        if number <= self._rounding("padding"):
            said = "A sequence's outputs do not depend on the padding behind it."
            yield Verdict("padding", "holds", said, number, name)
            return
        labels = self.run.channel(name, self.frame).labels["part"]
        row, step = (int(one) for one in np.unravel_index(int(np.nanargmax(values)), values.shape))
        more = f"{labels[row]} step{'' if labels[row].startswith('1 ') else 's'}"
        said = f"With {more} of padding the output at step {step} changes by {share(number)} of the largest."
        more = (
            " The model is told what is padding (lengths or a mask), and reads it all the same." if told else
            " Neither lengths nor a mask are given to the model: unless it knows padding by its id, that is input like "
            "any other."
        )  # fmt: skip
        yield Verdict("padding", "fault" if told else "fact", said + more, number, name, steps=(step,))

    def order(self, values: Numbers) -> Iterator[Verdict]:
        name, number = self.channel("order"), float(np.nanmax(values, initial=0.0))
        if number <= self._rounding("order") and self._begins_at_zero():
            yield Verdict("order", "not tested", BEGINS_AT_ZERO, number, name)
            return
        if unclear := [*self.unclear("order", number, self._rounding("order"))]:
            yield from unclear
            return
        if number <= self._rounding("order"):
            said = "The order of the inputs is not seen: permuted inputs give the same outputs, permuted."
            yield Verdict("order", "fact", said, number, name)
            return
        where = self._first("order")
        said = f"The order of the inputs is seen: permuted, they change outputs by {share(number)} of the largest"
        yield Verdict("order", "holds", f"{said}{_from(where)}.", number, name, where)

    def repeat(self, values: Numbers) -> Iterator[Verdict]:
        name, rounding = self.channel("repeat"), self._rounding("repeat")
        again, other = (float(np.nanmax(row, initial=0.0)) for row in values)
        if again > rounding:
            said = (
                f"Called again on the same input, the model gives other outputs, by {share(again)} of the largest: it "
                "carries a state from call to call."
            )
            yield Verdict("repeat", "fault", said, again, name)
        elif unclear := [*self.unclear("repeat", again, rounding)]:
            yield from unclear
        else:
            yield Verdict("repeat", "holds", "Called again on the same input, it gives the same.", again, name)
        if other > rounding:
            said = f"With other random numbers outputs change by {share(other)} of the largest: dropout or sampling."
            yield Verdict("random", "fact", said, other, name)

    def labels(self) -> Iterator[Verdict]:
        yield from self.of("labels", partial(labels_verdict, self))
        yield from late_verdict(self)

    def finite(self) -> Iterator[Verdict]:
        """Nothing where no output is NaN: then nothing was looked for."""
        nan = self.scalar("repeat/nan", 0.0)
        if nan > 0:
            said = f"{share(nan)} of the model's outputs are NaN."
            yield Verdict("finite", "fault" if nan == 1 else "fact", said, nan)

    def cache(self, values: Numbers) -> Iterator[Verdict]:
        name, number = self.channel("cache"), float(np.nanmax(values, initial=0.0))
        if unclear := [*self.unclear("cache", number, self._rounding("cache"))]:
            yield from unclear
            return
        if number <= self._rounding("cache"):
            said = "Steps given one at a time, with what the model hands on, give what one call gives."
            yield Verdict("cache", "holds", said, number, name)
            return
        step = int(np.nanargmax(values))
        said = (
            "Steps given one at a time, with what the model hands on, give other outputs than one call: at step "
            f"{step} by {share(number)} of the largest."
        )
        yield Verdict("cache", "fault", said, number, name, steps=(step,))

    def query(self) -> Iterator[Verdict]:
        own = [
            channel
            for channel in self.run.channels.values()
            if channel.signal == QUERY and self.run.revision(channel.name, self.frame)
        ]
        for channel in own:
            values = np.asarray(self.run.array(channel.name, self.frame), dtype=np.float64)
            heads = [n for n, value in enumerate(values) if value <= CANCELS]
            least = float(np.nanmin(values, initial=1.0))
            which = f"Attention in {channel.place}" if len(own) > 1 else "Attention"
            if len(values) and np.isnan(values).all():
                said = (
                    f"{which} has every key of every query masked by a finite number, so that the keys which are to be "
                    "hidden share all the weight: the mask may be inverted."
                )
                yield Verdict("query", "fault", said, math.nan, channel.name, channel.place, remedy=INVERTED)
                continue
            if not heads:
                said = f"{which} depends on its query: rows are {share(least)} apart at the least."
                yield Verdict("query", "holds", said, least, channel.name, channel.place)
                continue
            those = "every head" if len(heads) == len(values) else f"head {', '.join(map(str, heads))}"
            said = (
                f"{which} does not depend on its query in {those}: all rows are the same. Either every step asks with "
                "the same query (the first state, say, and not the newest), or the score is a sum of a term of the "
                "query and one of the key, without a nonlinearity, which loses the query in the softmax."
            )
            yield Verdict("query", "fault", said, least, channel.name, channel.place)

    def _rounding(self, test: str) -> float:
        return self.scalar(f"{test}/rounding", 0.0)

    def _first(self, test: str) -> str:
        names = self.run.labels(f"structure first module of {test}", self.frame)
        return names[0] if names else ""


def _from(where: str) -> str:
    return f"; it comes in {'' if where.startswith(BETWEEN) else 'at '}{where}" if where else ""
