"""The subject called again with another sample z of one of its hidden variables, a vector for each sequence."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

import torch
from torch import Tensor

from inspector.engine.analyses.rerun import undisturbed
from inspector.engine.errors import InputError, Unsupported, model_error
from inspector.engine.latent.replaced import Replacing
from inspector.engine.latent.variables import Line, Variable, Variables
from inspector.engine.latent.written import Drawn, WrittenVariables
from inspector.engine.model.batch import Batch
from inspector.engine.model.batching import pad
from inspector.engine.model.named_batches import of_example
from inspector.engine.model.uncompiled import uncompiled
from inspector.engine.trace.trace import Trace

MOST_SEQUENCES = 128
AGAIN = "The model, called again with another z,"
ONE_SEQUENCE = (
    "What z says of a sequence shows beside others: this run has one sequence, and the subject has no `data` with more."
)
BY_STEP = "{} is drawn at every step; how much of it is used is measured of one vector for each sequence."
OWN_PRIOR = "{} is compared with {}, a prior of the model's own; what is measured here supposes N(0, 1)."
NOT_FOUND = (
    "Where {} is drawn was not found again when the model was called again: it is followed as z = μ + σ ε with noise "
    "of randn, randn_like, normal_ or torch.normal, in the model's own code or in torch.distributions."
)
SHAPE = "{} has shape {}; expected one row for each of {} sequences."


@dataclass(frozen=True, slots=True)
class Told:
    """One call: mean, deviation and sample (n, u) of the variable, in float64; loss (n, t), scores (n, t, v) or None.

    `drawn` is the sample as the call drew it, with its graph.
    """

    mean: Tensor
    deviation: Tensor
    sample: Tensor
    loss: Tensor | None
    scores: Tensor | None
    drawn: Tensor


class LatentCalls:
    """Calls of a trace's subject in which one draw, by its number, is chosen. All begin with the run's random state."""

    def __init__(self, trace: Trace, number: int, name: str) -> None:
        self.trace, self.subject, self.number, self.name = trace, trace.subject, number, name

    def told(self, batch: Batch, choose: Callable[[Drawn], Tensor | None] = lambda _drawn: None) -> Told:
        """A call in which `choose` gives another z, of the shape of that which was drawn. Raises Unsupported."""
        drawn: list[Drawn] = []

        def chosen(number: int, one: Drawn) -> Tensor | None:
            if number != self.number:
                return None
            drawn.append(one)
            return choose(one)

        placed = self.subject.placed(batch)
        with undisturbed(self.subject.model, self.trace.seed), uncompiled(self.subject.model):
            try:
                with Replacing(chosen):
                    output = self.subject.run(placed)
                scores = self.subject.scores(output)
                loss = self.subject.loss_of(output, placed) if self.trace.loss is not None else None
            except (Exception, SystemExit) as fault:  # noqa: BLE001 - the user's code may raise anything
                raise Unsupported(str(model_error(fault, AGAIN))) from None
        if len(drawn) != 1:
            raise Unsupported(NOT_FOUND.format(self.name))
        form = (batch.size, batch.steps)
        mean, deviation, sample = (
            rows_of(value, batch.size, self.name).detach().double().cpu()
            for value in (drawn[0].mean, drawn[0].deviation, drawn[0].sample)
        )
        fits = isinstance(loss, Tensor) and tuple(loss.shape) == form
        scored = isinstance(scores, Tensor) and tuple(scores.shape[:2]) == form
        return Told(mean, deviation, sample, loss if fits else None, scores if scored else None, drawn[0].sample)

    def with_z(self, batch: Batch, z: Tensor) -> Told:
        """A call with these z (n, u)."""
        with torch.no_grad():
            return self.told(batch, lambda drawn: z.to(drawn.sample).reshape(drawn.sample.shape))

    def plain(self, batch: Batch) -> Told:
        """A call as the model makes it."""
        with torch.no_grad():
            return self.told(batch)


def rows_of(value: Tensor, size: int, name: str) -> Tensor:
    """(n, u) of (n, …), or of (1, n, …) as layers of nn.LSTM have it. Raises Unsupported."""
    if value.dim() > 1 and value.shape[0] == size:
        return value.reshape(size, -1)
    if value.dim() > 2 and tuple(value.shape[:2]) == (1, size):
        return value[0].reshape(size, -1)
    raise Unsupported(SHAPE.format(name, tuple(value.shape), size))


def latent_calls(trace: Trace, refuse: Callable[[str, str], None]) -> Iterator[tuple[Variable, LatentCalls]]:
    """The variables of a run of which one vector is drawn for each sequence, each with what draws it again.

    Others are refused by `refuse(channel, reason)`.
    """
    variables = [*trace.findings.of(Variables).found, *trace.findings.of(WrittenVariables).found]
    sampled = [(one, line) for one in variables for line in one.lines if line.sort == "sample"]
    draws: list[Tensor] = []
    if any(not line.domain for _, line in sampled):
        draws = _draws(trace)
    for variable, line in sampled:
        channel = f"{variable.place}:latent/{variable.name}/use"
        reason, number = _reason(variable, line), _number(draws, line, trace)
        if reason or number is None:
            refuse(channel, reason or NOT_FOUND.format(variable.name))
        else:
            yield variable, LatentCalls(trace, number, variable.name)


def _draws(trace: Trace) -> list[Tensor]:
    """The samples of the run, drawn again."""
    found: list[Tensor] = []
    placed = trace.subject.placed(trace.batch)
    with undisturbed(trace.subject.model, trace.seed), uncompiled(trace.subject.model), torch.no_grad():
        try:
            with Replacing(lambda _number, drawn: found.append(drawn.sample.detach().clone())):
                trace.subject.run(placed)
        except (Exception, SystemExit) as fault:  # noqa: BLE001 - the user's code may raise anything
            raise Unsupported(str(model_error(fault, AGAIN))) from None
    return found


def _number(draws: list[Tensor], line: Line, trace: Trace) -> int | None:
    """Which of the draws gave the sample of a line, of the sequence that is shown."""
    wanted, batch = line.values.reshape(-1).double().cpu(), trace.batch
    for number, drawn in enumerate(draws):
        try:
            own = rows_of(drawn, batch.size, "z")[batch.look_at].double().cpu()
        except Unsupported:
            continue
        if own.shape == wanted.shape and torch.allclose(own, wanted, equal_nan=True):
            return number
    return None


def _reason(variable: Variable, sample: Line) -> str:
    """Why nothing can be said of a variable; "" where something can."""
    if sample.domain:
        return BY_STEP.format(variable.name)
    others = [one for one in variable.lines if one.sort == "estimate"][1:]
    standard = torch.tensor([0.0, 1.0])
    for one in others:
        if not torch.allclose(one.values.to(standard), standard.expand(one.values.shape)):
            return OWN_PRIOR.format(variable.name, one.signal)
    return ""


def many_sequences(trace: Trace) -> Batch:
    """The sequence that is shown and, after it, others: of the subject's data, else of the batch. Raises Unsupported.

    At most MOST_SEQUENCES, evenly spaced through the data.
    """
    batch, subject = trace.batch, trace.subject
    if subject.data is None or len(batch.named) > 1 or subject.declared:
        if batch.size < 2:
            raise Unsupported(ONE_SEQUENCE)
        return batch
    try:
        given = subject.data() if callable(subject.data) else subject.data
        every = list(islice(given.values() if hasattr(given, "values") else given, 64 * MOST_SEQUENCES))
        picked = [every[i * len(every) // MOST_SEQUENCES] for i in range(MOST_SEQUENCES)]
        others = [of_example(subject, one, "") for one in (every if len(every) <= MOST_SEQUENCES else picked)]
    except InputError as problem:
        raise Unsupported(str(problem)) from None
    except (Exception, SystemExit) as fault:  # noqa: BLE001 - the user's code may raise anything
        raise Unsupported(str(model_error(fault, f"The data of {subject.name}"))) from None
    own = batch.inputs[batch.look_at, : batch.length].cpu()
    others = [one for one in others if not torch.equal(one.inputs[0].cpu(), own)]
    if not others:
        raise Unsupported(ONE_SEQUENCE)
    targets = [_target(batch, batch.look_at), *(_target(one, 0) for one in others)]
    return pad(subject, [own, *(one.inputs[0].cpu() for one in others)], targets=targets)


def _target(batch: Batch, row: int) -> object:
    targets = batch.targets
    return targets[row].cpu().numpy() if isinstance(targets, Tensor) and len(targets) == batch.size else None
