"""The subject called again, on copies of the selected sequence, without changing anything of the run.

Copies keep the padded length of the batch and go through the model side by side, as its author would call it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from inspector.engine.cells.family import sequence_family
from inspector.engine.errors import Unsupported, model_error
from inspector.engine.hooks.isolation import unchanged
from inspector.engine.model.batch import Batch, selected
from inspector.engine.trace.trace import Trace

ENTRIES = 1 << 25
"""How many numbers the copies of one call may have in memory together (128 MB of float32), one copy at least."""
KEPT_VALUES = 8
"""About how many numbers a recurrent step needs for every entry of its state."""
AGAIN = "The model, called again on its sequence,"
LEAST_WIDTH = 512
"""The least that a step is assumed to need: not all of a model is recorded."""


@contextmanager
def undisturbed(model: nn.Module, seed: int = 0) -> Iterator[None]:
    """As `unchanged`; attributes that a call rebinds (a state that is carried from call to call) are restored too."""
    attributes = [(module, dict(module.__dict__)) for module in model.modules()]
    with unchanged(model, seed):
        try:
            yield
        finally:
            for module, known in attributes:
                module.__dict__.clear()
                module.__dict__.update(known)


def chunk(trace: Trace) -> int:
    """How many copies of the sequence go through the model at once."""
    steps = trace.batch.steps
    width = sum(KEPT_VALUES * item.cell.state_size for item in trace.recurrences)
    width += trace.logits.shape[-1] if trace.logits is not None else 0
    maps = sum(int(np.prod((item.query.shape[1], steps, steps))) for item in trace.attentions)
    return max(1, ENTRIES // max(1, steps * max(width, LEAST_WIDTH) + maps))


ONE_ONLY = (
    "The model was given {} sequences at once and returned one, of shape {}: a batch of 1 seems to be written into it "
    "(reshape(1, …), squeeze), and inputs are replaced in many copies at once."
)


def copies(batch: Batch, count: int) -> Batch:
    """The selected sequence, `count` times, padding and targets included. Raises Unsupported."""
    return selected(batch, [batch.look_at] * count, _targets(batch, count))


def _targets(batch: Batch, count: int) -> Any:
    """The targets of the selected sequence, `count` times; None stays None."""
    targets, one = batch.targets, batch.look_at
    if targets is None:
        return None
    if isinstance(targets, Tensor) and targets.dim() and len(targets) == batch.size:
        return targets[one : one + 1].expand(count, *targets.shape[1:]).clone()
    raise Unsupported("The targets are not a tensor with one row for each sequence, so copies of one have no targets.")


def answer(trace: Trace, given: Batch, asked: Batch) -> tuple[Tensor | None, Tensor | None]:
    """Run the subject on `given`; (loss (n, t) against the targets of `asked`, scores (n, t, v)), None where none.

    The two batches differ where inputs were replaced: what has to be predicted stays what it was.
    Raises Unsupported with one line about the error that the model raised.
    """
    subject, shape = trace.subject, (asked.size, asked.steps)
    given, asked = subject.placed(given), subject.placed(asked)
    output = _ask(AGAIN, subject.run, given)
    scores = _ask("logits, called again,", subject.scores, output)
    first = next((leaf for leaf in tree_leaves(output) if isinstance(leaf, Tensor) and leaf.dim() > 1), None)
    if trace.batch.size == 1 < asked.size and first is not None and len(first) == 1:
        raise Unsupported(ONE_ONLY.format(asked.size, tuple(first.shape)))
    if not isinstance(scores, Tensor) or tuple(scores.shape[:2]) != shape:
        scores = None
    scores = None if scores is None else scores.cpu()
    if trace.loss is None:
        return None, scores
    loss = _ask("The loss, called again on copies of the sequence,", subject.loss_of, output, asked)
    if not isinstance(loss, Tensor) or tuple(loss.shape) != shape:
        raise Unsupported(f"The loss, called again, is not one value for each sequence and step, {shape}.")
    return loss.cpu(), scores


def own_loss(trace: Trace) -> Tensor | None:
    """Run the subject on its own batch again; the loss over whatever steps it has, or None.

    Raises Unsupported with one line about the error that the model raised.
    """
    subject = trace.subject
    if not subject.may_give_loss(trace.batch):
        return None
    batch = subject.placed(trace.batch)
    output = _ask(AGAIN, subject.run, batch)
    loss = _ask("The loss, called again,", subject.loss_of, output, batch)
    return loss.cpu() if isinstance(loss, Tensor) else None


def _ask(who: str, function: Callable[..., Any], *given: Any) -> Any:
    """Call the user's code; whatever it raises becomes one line in an Unsupported."""
    try:
        return function(*given)
    except (Exception, SystemExit) as fault:  # noqa: BLE001 - the user's code may raise anything
        raise Unsupported(str(model_error(fault, who))) from None


class Entry:
    """Makes what enters the model an autograd leaf, so that gradients with respect to every step's input can be
    computed.

    That is the embedded tokens (the output of the nn.Embedding that reads the ids), or the vectors themselves;
    for tokens without an embedding, the input of the first module that runs whole sequences (nn.RNN, nn.GRU, nn.LSTM).
    """

    def __init__(self, given: Batch) -> None:
        self.given = given
        self.leaf: Tensor | None = None
        self.transposed = False
        if given.inputs.is_floating_point():
            self.leaf = given.inputs.detach().clone().requires_grad_()
            given.inputs = self.leaf

    @contextmanager
    def watching(self, model: nn.Module) -> Iterator[None]:
        """Hooks that replace the first input by an equal leaf, while the context is open."""
        handles = []
        for module in model.modules():
            if self.leaf is None and isinstance(module, nn.Embedding):
                handles.append(module.register_forward_hook(self._embedded))
            elif self.leaf is None and sequence_family(module) is not None:
                handles.append(module.register_forward_pre_hook(self._entering))
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def _embedded(self, _module: nn.Module, args: tuple[Any, ...], output: Any) -> Any:
        ids, read = self.given.inputs, args[0] if args else None
        if self.leaf is not None or not isinstance(read, Tensor) or not isinstance(output, Tensor):
            return None
        for transposed, wanted in ((False, ids), (True, ids.T if ids.dim() == 2 else ids)):
            if read.shape == wanted.shape and torch.equal(read.cpu(), wanted.cpu()):
                return self._take(output, transposed)
        return None

    def _entering(self, module: nn.Module, args: tuple[Any, ...]) -> Any:
        if self.leaf is not None or not args or not isinstance(args[0], Tensor) or args[0].dim() != 3:
            return None
        family = sequence_family(module)
        assert family is not None
        return (self._take(args[0], not family.stack(module).batch_first), *args[1:])

    def _take(self, value: Tensor, transposed: bool) -> Tensor:
        self.leaf, self.transposed = value.detach().clone().requires_grad_(), transposed
        return self.leaf

    def gradient(self, total: Tensor) -> Tensor:
        """(n, t): norm of ∂total/∂x at every step of every copy. Raises Unsupported where no gradient flows."""
        if self.leaf is None:
            raise Unsupported("No nn.Embedding and no recurrent layer reads the tokens, so they have no gradient.")
        if not total.requires_grad:
            raise Unsupported("The loss is not connected to the inputs by autograd (no_grad inside the model?).")
        found = torch.autograd.grad(total, self.leaf, allow_unused=True)[0]
        values = torch.zeros_like(self.leaf) if found is None else found
        values = values.transpose(0, 1) if self.transposed else values
        norms: Tensor = values.flatten(2).cpu().double().norm(dim=2)  # squares of large float32 numbers would overflow
        return norms
