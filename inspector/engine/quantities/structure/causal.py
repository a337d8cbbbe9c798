"""Does an output depend on inputs after its own step? Inputs are replaced one position at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor, nn

from inspector.engine.analyses.structure.calls import Answer, Calls, as_primary
from inspector.engine.analyses.structure.changes import Replacing, alone, positions, with_values
from inspector.engine.analyses.structure.findings import PLACE, Found, write
from inspector.engine.analyses.structure.modules import largest, moved
from inspector.engine.cells.family import step_family
from inspector.engine.errors import NotApplicable, Unsupported
from inspector.engine.model.batch import Batch
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import Describe, per_run
from inspector.engine.trace.spoken import spoken
from inspector.engine.trace.step_axes import of_primary
from inspector.engine.trace.trace import Trace
from inspector.records import ANSWER_DOMAIN

SOURCE = "finite differences; a leak of the future at initialisation: huggingface/transformers#48745"
ABOUT = Describe(
    kind="structure", compare="separate", scale="log", title="change of an output when an input is replaced",
    formula="max_f |y'_t[f] − y_t[f]| / max |y|, the input of one step replaced", source=SOURCE,
)  # fmt: skip
LARGE = Describe(
    kind="structure", compare="separate", scale="log", title="dependence on later inputs with large weights",
    formula="max over s > t (s ≥ t where step t of the input is what y_t is to say) of the change of y_t, every weight "
    "matrix drawn from N(0, (factor / √fan-in)²)",
    source=SOURCE, method="six positions, one draw of weights for each factor",
)  # fmt: skip
FACTORS = (1, 8, 64, 512)
"""Times the usual size of weights. Logits of attention are a product of two projections, so that they grow with the
square: a mask of −10⁴ is beaten at about 64."""
FEW = 6
OTHER_STEPS = (
    "The model's output has no step axis of its input, and no input holds what it is to say, so no output comes before "
    "an input."
)
WIDER = {
    torch.float32: torch.float64, torch.float16: torch.float64, torch.bfloat16: torch.float64,
    torch.complex64: torch.complex128,
}  # fmt: skip


@QUANTITIES.register("structure/causal")
@per_run(
    summary="whether outputs depend on later inputs, now and with large weights", order=90, default=False,
    cost="some 60 runs of the model on this sequence", work=lambda run: run.call * 60,
)  # fmt: skip
def causal(trace: Trace, emit: Emitter) -> None:
    """Write (changed, step) changes of the outputs, and the largest of s > t with weights of other sizes.

    Where the outputs have a step axis of their own, the input that is replaced is the one that a decoder is given to
    say. A model that reads both directions depends on later inputs by design; whether that is a fault depends on what
    it is trained for: `structure/causal/next_token` is 1 where its targets are its own next inputs.
    `structure/causal/zero_weights` is the number of its weight matrices that are all 0, `structure/causal/behind` 0
    where the input's own step is what the output is to say, `structure/causal/recurrent` its cells.
    """
    try:
        read = _reading(trace)
        _at_given_weights(trace, read, emit)
        _at_large_weights(trace, read, emit)
        emit.scalar("structure/causal/behind", float(read.behind))
    except NotApplicable:
        return
    except Unsupported as reason:
        emit.refuse(f"{PLACE}:structure/causal", str(reason))
    emit.scalar("structure/causal/next_token", float(_predicts_its_input(trace)))
    emit.scalar("structure/causal/zero_weights", float(_zero_weights(trace.subject.model)))
    emit.scalar("structure/causal/recurrent", float(_recurrent(trace.subject.model)))


@dataclass(frozen=True, slots=True)
class Reading:
    """What is replaced, and over how many steps the outputs lie.

    Attributes:
        batch: one sequence, whose primary input is the one that is replaced; steps: of the outputs.
        behind: an output may read the inputs up to its own step + behind − 1: 1, or 0 where step s of the input is
            what output s is to say.
        domains: label domains of the two axes.
    """

    calls: Calls
    batch: Batch
    steps: int
    behind: int = 1
    domains: Mapping[str, str] = field(default_factory=dict)

    def answer(self, batch: Batch) -> Answer:
        """The outputs of a call. Raises Unsupported."""
        return self.calls.answer(batch, self.steps)

    def ahead(self, source: int) -> int:
        """How many outputs come before they may read the input of this step."""
        return min(self.steps, source + 1 - self.behind)


def _reading(trace: Trace) -> Reading:
    """Raises NotApplicable without steps, Unsupported where outputs have other steps than any input that they say."""
    calls, said, answer = Calls(trace), spoken(trace), trace.answer
    if said is not None and answer is not None:
        shown = trace.batch.named[said.name]
        batch = alone(as_primary(trace.batch, said.name))
        steps = batch.length - max(0, shown.steps - answer.steps)
        domains = {"source": ANSWER_DOMAIN if answer.source else shown.axis, "step": ANSWER_DOMAIN}
        return Reading(calls, batch, steps, said.behind, domains)
    if answer is not None and not of_primary(trace, answer.steps):
        raise Unsupported(OTHER_STEPS)
    batch = alone(trace.batch)
    return Reading(calls, batch, batch.length)


def _at_given_weights(trace: Trace, read: Reading, emit: Emitter) -> None:
    batch = read.batch
    first = _of_steps(read.calls.settled(batch, read.steps))
    picks = positions(batch.length)
    table = np.zeros((batch.length, read.steps))
    table[:] = np.nan
    worst, pair = 0.0, None
    replacing = Replacing(trace.subject, batch)
    for s in picks:
        emit.check()
        changed, early = replacing.at(batch, [(0, s)]), read.ahead(s)
        change = first.change(read.answer(changed))[0]
        table[s] = change.numpy()
        if early and float(change[:early].max()) > max(worst, first.rounding):
            worst, pair = float(change[:early].max()), (changed, early)
    seen = None if pair is None else moved(read.calls, batch, pair[0], lambda change: change[0, : pair[1]], read.steps)
    write(Found("causal", ABOUT, ("source", "step"), table, first.rounding, seen, read.domains), emit)


def _zero_weights(model: nn.Module) -> int:
    matrices = (one for one in model.parameters() if one.dim() > 1)
    return sum(one.numel() > 0 and not bool(one.any()) for one in matrices)


def _recurrent(model: nn.Module) -> int:
    """Cells that take one step a call; one that runs whole sequences may go along another axis, which is told apart."""
    return sum(step_family(one) is not None for one in model.modules())


def _of_steps(answer: Answer) -> Answer:
    if not answer.steps:
        raise Unsupported(OTHER_STEPS)
    return answer


def _at_large_weights(trace: Trace, read: Reading, emit: Emitter) -> None:
    picks = [s for s in positions(read.batch.length) if read.ahead(s)]
    picks = picks[:: max(1, len(picks) // FEW)]
    found = np.full(len(FACTORS), np.nan)
    for n, factor in enumerate(FACTORS):
        emit.check()
        with large_weights(read.calls.model, factor, trace.seed + n):
            found[n], rounding = _reads_later(trace, read, picks)
        if found[n] > rounding:
            found[n] = min(found[n], _in_double(trace, read, picks, n))
    labels = {"value": tuple(f"factor {factor}" for factor in FACTORS)}
    name = f"{PLACE}:structure/causal/large"
    emit.array(LARGE.channel(name, ("value",), (len(FACTORS),), "float64", labels=labels), found)


def _reads_later(trace: Trace, read: Reading, picks: list[int]) -> tuple[float, float]:
    """(the largest change of an output before the input that was replaced, the answer's rounding); NaN where the
    outputs are not finite."""
    replacing, first = Replacing(trace.subject, read.batch), read.answer(read.batch)
    if not bool(first.values.isfinite().all()):
        return math.nan, math.inf
    table = torch.stack([first.change(read.answer(replacing.at(read.batch, [(0, s)])))[0] for s in picks])
    before = torch.arange(table.shape[1])[None] < torch.tensor([read.ahead(s) for s in picks])[:, None]
    return largest(table.masked_fill(~before, 0.0))[0], first.rounding


def _in_double(trace: Trace, read: Reading, picks: list[int], n: int) -> float:
    """The same in float64, which is far less where it was rounding: a convolution by Fourier transforms sums over all
    positions, and with large weights some are so large that rounding of them is seen at the others. A finite mask lets
    as much through in either. Infinite where the model does not run in float64."""
    if read.batch.inputs.is_floating_point():
        read = replace(read, batch=with_values(read.batch, read.batch.inputs.double()))
    try:
        with large_weights(read.calls.model, FACTORS[n], trace.seed + n, double=True):
            found, _ = _reads_later(trace, read, picks)
    except Unsupported:
        return math.inf
    return math.inf if math.isnan(found) else found


@contextmanager
def large_weights(model: nn.Module, factor: float, seed: int, *, double: bool = False) -> Iterator[None]:
    """Inside, matrices are random ones of a size; afterwards every parameter is the tensor that it was. `double`: the
    same ones, and all that the model has, in float64."""
    random = torch.Generator().manual_seed(seed)
    known = [(one, one.data) for one in model.parameters() if one.dim() > 1 and one.is_floating_point()]
    rest = [(one, one.data) for one in (*model.parameters(), *model.buffers())] if double else []
    try:
        for one, data in rest:
            one.data = data.to(WIDER.get(data.dtype, data.dtype))
        for one, data in known:
            drawn = torch.randn(data.shape, generator=random, dtype=torch.float32)
            one.data = (drawn * (factor / max(1, data[0].numel()) ** 0.5)).to(data).to(one.dtype)
        yield
    finally:
        for one, data in (*rest, *known):
            one.data = data


def _predicts_its_input(trace: Trace) -> bool:
    """Whether the targets are the inputs of the next steps, or the subject says that it predicts the next token; of a
    decoder, whether it is given what it is to say."""
    if trace.answer is not None and not trace.answer.source and spoken(trace) is not None:
        return True
    if trace.subject.next_token:
        return True
    targets, batch = trace.batch.targets, trace.batch
    if not isinstance(targets, Tensor) or batch.first.kind != "tokens" or targets.dim() != 2:
        return False
    ids = batch.inputs[batch.look_at, : batch.length].cpu()
    own = targets[batch.look_at].cpu() if len(targets) == batch.size else ids[:0]
    return len(ids) > 2 and len(own) >= len(ids) - 1 and bool(torch.equal(own[: len(ids) - 1], ids[1:]))
