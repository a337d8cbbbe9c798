"""What one run recorded in memory: the recurrences and attentions that the probes found, and the outputs.

Probes fill a Trace while the user's model runs; quantities read it afterwards and write channels.
Sequences run in processing order: a backward direction's step 0 is the last token (see Recurrence.reverse).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from inspector.engine.cells.base import Cell, StepBlock
from inspector.engine.cells.check import Check
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.trace.answer import Answer
from inspector.engine.trace.attention import Attention as Attention
from inspector.engine.trace.attention import KeyEnds as KeyEnds
from inspector.engine.trace.findings import Findings
from inspector.engine.trace.gradient_requests import GradientRequest, PartRequest
from inspector.engine.trace.reads import Reads
from inspector.engine.trace.run_gradients import RunGradients, Weights
from inspector.engine.trace.user_hooks import UserHooks
from inspector.records import STEP_DOMAIN

KEPT_BYTES = 256 << 20
KEPT_STEPS = 64
"""The size of block that most quantities use (quantity.BLOCK_STEPS)."""
KEPT_VALUES = 12
"""About how many numbers a block stores for every state entry: gates, coefficients, slopes."""


@dataclass(slots=True)
class Recurrence:
    """One recurrent layer in one direction, as it ran.

    Attributes:
        place: channel place, "rnn.l0" or "rnn.l0.reverse" (cells in a user's loop: the module's name).
        module: class name, for example "LSTM".
        cell: weights and equations.
        x: (t, b, i) inputs of every step, in processing order.
        states: (t + 1, b, s): the initial state, then the state after each step, in processing order.
        lengths: (b,) steps that are real for each sample.
        reverse: True for a backward direction: processing step j of a sample of length n is sequence step n-1-j.
        check: how well the recomputation reproduces the module's own output; gates are rejected if it failed.
        arriving: (t, b, s) gradient of the loss that reaches the state after each step from outside the
            recurrence (not through the next step), or None without a loss.
        delta: (t, b, s) total gradient ∂L/∂s_t, where autograd gave it directly (cells in a user's loop);
            None where it is to be swept from `arriving`.
        shown: signals whose pages the probe has already written live.
        base: number of the first sample of the batch that is stored here (not 0 when only one was recorded).
        known: (t, b, h) each: intermediate values that the check has computed already (see Cell.block).
    """

    place: str
    module: str
    cell: Cell
    x: Tensor
    states: Tensor
    lengths: Tensor
    reverse: bool = False
    check: Check | None = None
    arriving: Tensor | None = None
    delta: Tensor | None = None
    shown: set[str] = field(default_factory=set)
    base: int = 0
    known: tuple[Tensor, ...] = ()
    followed_input: bool = True
    """What the steps are given, or begin with, needs a gradient: parameters may act on the states through it."""
    upstream: frozenset[int] | None = None
    """Ids of the leaves of autograd's graph that its inputs and its first state are made of; None: not known."""
    beside: frozenset[str] = frozenset()
    """Names of parameters that act on the states through other values that their loop carries from step to step."""
    ahead: str = ""
    """Which parameters have no items because the steps read only what was computed from them before the loop."""
    domain: str = STEP_DOMAIN
    """The axis of these steps: the input's, another input's, the output's, or the layers of a stack."""
    names: tuple[str, ...] = ()
    """Names of the steps where they are the layers of a stack, if their modules give them."""
    reads: Reads | None = None
    """Which steps of an input the steps read, in the order of the sequence given to it; None where not recorded."""
    cuts: dict[int, Tensor] = field(default_factory=dict)
    """Processing step k → (s,) 1 where the gradient at the state before it flows on to the step before, 0 where the
    model detached that state; steps that are not here are not cut."""
    partly_cut: bool = False
    """A step detaches some of what its new state is made of, and not all: its Jacobian goes through what is detached,
    while autograd's gradient does not."""
    unfollowed: Tensor | None = None
    """(t, s) True where δ is not known, and NaN: a state that needs no gradient. None where it is known everywhere."""
    ran: Recurrence | None = None
    """The same steps as autograd's graph has them, where that is not the dynamics: what is read inside a step by
    something else is a further part of the state, and detached values are constants. For gradients by step."""
    inside: Tensor | None = None
    """Of steps as autograd's graph has them: (t, b, s) what reaches the new state of the dynamics from the loss through
    values inside the same step; None where nothing does."""
    weights: Weights | None = None
    """The cell's parameters as the model has them, with their graph back to the model's own parameters."""
    run: RunGradients | None = None
    """The gradients of the run that this is a part of; None for a recurrence that no run made."""
    stored: dict[Hashable, Any] = field(default_factory=dict)
    """What one walk over the steps found beside what it was made for, until that is asked for."""
    _blocks: dict[tuple[int, int, int], StepBlock] = field(default_factory=dict)

    @property
    def cut_before(self) -> tuple[int, ...]:
        """Processing steps whose state passes no gradient on to the state before them: the model detached all of it."""
        return tuple(sorted(step for step, joined in self.cuts.items() if not bool(joined.any())))

    @property
    def followed(self) -> Tensor | None:
        """δ with 0 for states that need no gradient: that it is not known there is no damage."""
        delta, unknown = self.delta, self.unfollowed
        return delta if delta is None or unknown is None else delta.masked_fill(unknown[:, None].to(delta.device), 0)

    @property
    def steps(self) -> int:
        """Number of processing steps of the longest sample."""
        return self.states.shape[0] - 1

    def length(self, sample: int) -> int:
        """Number of real steps of one sample of the batch."""
        return int(self.lengths[sample - self.base])

    def block(self, start: int, stop: int, samples: slice | Tensor = slice(None)) -> StepBlock:
        """Steps start … stop-1 (processing order) of the given samples."""
        return self.cell.block(
            self.x[start:stop, samples],
            self.states[start:stop, samples],
            self.states[start + 1 : stop + 1, samples],
            tuple(values[start:stop, samples] for values in self.known),
        )

    def all_samples(self, start: int, stop: int) -> StepBlock:
        """Steps start … stop-1 of every sample; that of all steps is kept where it is small, for who asks again."""
        if (start, stop) != (0, self.steps) or self.states.shape[1] == 1:
            return self.block(start, stop)
        key = (-1, start, stop)
        found = self._blocks.get(key)
        if found is None:
            found = self.block(start, stop)
            if self.states.nbytes * KEPT_VALUES <= KEPT_BYTES:
                self._blocks[key] = found
        return found

    def in_float64(self) -> Recurrence | None:
        """The same steps at the same states, computed in float64; None where they cannot be, or are already."""
        return None

    def blocks(self, sample: int, size: int) -> Iterator[tuple[int, StepBlock]]:
        """The real steps of one sample in blocks of `size`: (first processing step, block of one sample).

        Blocks of the common size are cached, with their gates, while they are small together: several quantities read
        them.
        """
        length, index = self.length(sample), sample - self.base
        keep = size == KEPT_STEPS and self.keeps(sample)
        for start in range(0, length, size):
            stop = min(start + size, length)
            found = self._blocks.get((index, start, stop))
            block = found if found is not None else self.block(start, stop, slice(index, index + 1))
            if keep:
                self._blocks[index, start, stop] = block
            yield start, block

    def keeps(self, sample: int) -> bool:
        """Whether the blocks of one sample are small enough together to be kept."""
        numbers = self.length(sample) * self.cell.state_size * KEPT_VALUES
        return numbers * self.states.element_size() <= KEPT_BYTES

    def built(self, sample: int) -> bool:
        """Whether Jacobians that no closed form gives were built for this sample and kept."""
        kept = self._blocks.get((sample - self.base, 0, min(KEPT_STEPS, self.length(sample))))
        return kept is not None and "matrices" in vars(kept)

    def again(self, cell: Cell, t: int, state: Tensor, index: int) -> Tensor:
        """Processing step t of one sample from another state, (s,) from (s,), by `cell` instead of its own."""
        return cell.step(self.x[t, index : index + 1], state[None])[0]

    def weight_gradients(self, delta: Tensor) -> dict[str, Tensor]:
        """Σ_t Σ_b δᵀ ∂⁺s_t/∂θ of the gradients δ (t, b, s) at the states, by autograd over the plain step."""
        leaves = {name: value.detach().clone().requires_grad_() for name, value in self.cell.parameters().items()}
        with torch.enable_grad():
            cell = self.cell.with_parameters(leaves)
            made = cell.step(self.x.flatten(0, 1), self.states[:-1].flatten(0, 1))
            found = torch.autograd.grad(
                made, list(leaves.values()), delta.flatten(0, 1).to(made.dtype), allow_unused=True,
                materialize_grads=True,
            )  # fmt: skip
        return dict(zip(leaves, found, strict=True))

    def leave_out(self, step: int, entries: slice) -> None:
        """Note that δ of these entries of the state after a step is not known."""
        assert self.delta is not None
        if self.unfollowed is None:
            self.unfollowed = torch.zeros(self.steps, self.cell.state_size, dtype=torch.bool)
        self.unfollowed[step, entries] = True
        self.delta[step, :, entries] = torch.nan

    def in_order(self, values: Tensor, sample: int) -> Tensor:
        """Values (t, …) of one sample's real steps from processing order to sequence order."""
        return values.flip(0) if self.reverse else values

    def sequence_offset(self, start: int, count: int, sample: int) -> int:
        """Sequence step of the first row of a page that holds processing steps start … start+count-1."""
        return self.length(sample) - start - count if self.reverse else start


@dataclass(slots=True)
class Trace:
    """One run of a subject on a batch.

    Attributes:
        output: what the model returned, detached; None if it raised half-way (then what was recorded is still here).
        logits: (b, t, v) or None; loss: (b, t) with NaN where a step carries none, or None.
        findings: other values of probes and quantities, by their class.
    """

    subject: Subject
    batch: Batch
    recurrences: list[Recurrence] = field(default_factory=list)
    attentions: list[Attention] = field(default_factory=list)
    output: Any = None
    logits: Tensor | None = None
    loss: Tensor | None = None
    scores_are_output: bool = False
    """The scores are the output itself, not computed from it."""
    answer: Answer | None = None
    """The output's own step axis, where it has one: loss and logits then have that axis, not the input's."""
    findings: Findings = field(default_factory=Findings)
    cells_within: set[str] = field(default_factory=set)
    """Names of the modules of cells that are part of a larger hand-written recurrence."""
    calls_within: set[int] = field(default_factory=set)
    """The memory of the outputs of those calls of fused modules that are part of such a recurrence."""
    seed: int = 0
    """Of everything random while the model ran."""
    only_looked_at: bool = False
    """Record inner values of the selected sample only; quantities that average then average over that one."""
    gradient_requests: list[GradientRequest | PartRequest] = field(default_factory=list)
    """Values whose gradient a probe requests (see `want_gradient`): one backward pass computes them all."""
    places: dict[int, str] = field(default_factory=dict)
    """Places of objects that compute and are not modules of the model, by id (torch's modules as loops)."""
    states: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Place of a hand-written recurrence → the variables that the user declares to be its state."""
    editing: bool = False
    """Store what an edited run needs to find its targets (engine/interventions/runs.py)."""
    editor: Any = None
    """What replaces values in the middle of the run (engine/interventions/editor.py), or None."""
    observed: bool = False
    """The user's code makes the call, and its backward pass if there is one."""
    compared: bool = False
    """Gradients inside fused modules were compared with autograd's in an earlier call of the same model."""
    passing_on: bool = False
    """Keep what the heads of attention pass on: values, the projection behind them, where their gradient is."""
    products: bool = False
    """Keep the products that scores are made of where a model computes its attention itself."""
    batch_axes: dict[str, int] = field(default_factory=dict)
    """{place: which of several axes that may be the batch it is}, where that is not the likeliest."""
    lineages: bool = False
    """Note of which earlier attentions each one was computed (attention/ancestry.py)."""
    keep_graph: bool = False
    """Set by a probe that reads derivatives off autograd's graph after the backward pass."""
    after_forward: list[Callable[[], None]] = field(default_factory=list)
    """Called when the model has returned and the backward pass has not begun: a probe may still request gradients."""
    after_states: list[Callable[[], None]] = field(default_factory=list)
    """What the probes have left to do and states and gates do not need: gradients inside fused modules."""
    chosen: frozenset[str] = frozenset()
    """The quantities that the run will compute, so that one pass need not compute more; empty where not known."""
    returned: Any = None
    """What the model returned, with its graph, while `after_forward` is called."""
    parameter_gradients: RunGradients = field(default_factory=RunGradients)
    """∂L/∂θ of the parameters, L the sum of the loss: of the weights of recurrences, by which sums over steps are
    checked, and of all of them where a quantity requests that."""
    loss_given: bool = False
    """The subject or the output gave a loss."""
    backward_ran: bool = False
    """The loss needed a gradient, and the backward pass was made."""
    loss_carried: Tensor | None = None
    """True at the entries of the loss that carry one, also where the model made NaN of it; in the loss's shape."""
    loss_rule: str = ""
    """How NaN that means "no loss" was told apart from NaN that the model made; "" where there is no NaN."""
    loss_terms: int = 0
    """How many entries of the loss carry one: the mean loss is the sum divided by it."""
    hooks: list[Any] = field(default_factory=list)
    """The user's hooks on tensors of this run (trace/gradient_hooks.py)."""
    user_hooks: UserHooks = field(default_factory=UserHooks)
    """The user's hooks on modules and parameters, which were there before the run."""
    node_hooks: list[tuple[str, Tensor]] = field(default_factory=list)
    """(function and line, tensor) where the user's code may hook the node of autograd's graph that made a tensor."""

    def want_gradient(self, value: Tensor, take: Callable[[Tensor | None], None]) -> None:
        """Have `take` called after the run with the gradient of the loss at `value`, None where none reached it.

        The gradient is that of the value as it is now, also where it is overwritten later. Values that need no gradient
        are skipped, and `take` is not called.
        """
        if value.requires_grad:
            self.gradient_requests.append(GradientRequest(value, take))

    def want_part(self, node: Any, number: int, take: Callable[[Tensor | None], None]) -> None:
        """Have `take` called after the run with the gradient that a node of the graph sends to its input of a number.

        A request for the gradient at that input (see `want_gradient`) must be made, too.
        """
        self.gradient_requests.append(PartRequest(node, number, take))

    @property
    def may_have_gradients(self) -> bool:
        """Whether a backward pass may follow: for an observed call only the caller knows."""
        return self.observed or self.subject.may_give_loss(self.batch)

    def hand_out_gradients(self) -> None:
        """Call every `take` with its gradient; gradients of several backward passes are summed."""
        for request in self.gradient_requests:
            request.take(request.gradient)

    def after_the_states(self) -> None:
        """Do what the probes left to be done once the states were known."""
        waiting, self.after_states = self.after_states, []
        for work in waiting:
            work()

    def share_parameter_gradients(self) -> None:
        """The run has ended: its recurrences refer to the gradients of its weights from now on."""
        run = self.parameter_gradients
        run.names = {id(value): name for name, value in self.subject.model.named_parameters()}
        run.recurrences, run.samples = list(self.recurrences), int(self.batch.lengths.numel())
        for one in self.recurrences:
            for other in (one, one.ran):
                if other is not None:
                    other.run = run

    def forget_requests(self) -> None:
        """Remove the hooks; later gradients are ignored."""
        for request in self.gradient_requests:
            request.let_go()
        self.gradient_requests.clear()
        for hook in self.hooks:
            hook.let_go()
        self.hooks.clear()
        self.user_hooks.let_go()
        self.node_hooks.clear()
        self.after_forward.clear()

    @property
    def look_at(self) -> int:
        """The sample of the batch that is shown."""
        return self.batch.look_at
