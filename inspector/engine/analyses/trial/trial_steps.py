"""The loss of a run's batch at other parameters, which are put in the model's place and taken away again.

The tensors of the parameters themselves are never written to: `Parameter.data` is another tensor meanwhile, so that
whatever holds them afterwards (flattened weights, an optimizer, a graph) has what it had.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from inspector.engine.analyses.real_numbers import real_numbers
from inspector.engine.analyses.rerun import undisturbed
from inspector.engine.errors import Unsupported, model_error
from inspector.engine.model.uncompiled import uncompiled
from inspector.engine.trace.trace import Trace


class Trial:
    """The mean loss of the whole batch of a run, as a function of the parameters that require a gradient."""

    def __init__(self, trace: Trace, *, frozen: bool = False) -> None:
        """With `frozen` also of those that require none. Raises Unsupported where there is no loss with a gradient."""
        self.trace, self.subject = trace, trace.subject
        every = [(name, one) for name, one in trace.subject.model.named_parameters() if _may_train(one)]
        named = [(name, one) for name, one in every if frozen or one.requires_grad]
        self._frozen = [one for _, one in named if not one.requires_grad]
        self.names = [name for name, _ in named]
        self.parameters = [one for _, one in named]
        if not trace.subject.may_give_loss(trace.batch):
            raise Unsupported("The subject gives no loss, so no step of training can be tried.")
        if not self.parameters:
            raise Unsupported("No parameter requires a gradient, so no step of training can be tried.")
        if pair := overlapping(named):
            raise Unsupported(
                f"{pair[0]} and {pair[1]} are two parameters in one memory, which copies of them would not be, so no "
                "step of training can be tried."
            )
        self.call: Callable[[Any], Any] = trace.subject.run
        """How the model is called on a batch: as its subject says, or as it is while it learns."""
        self.batch = self._own = trace.subject.placed(trace.batch)
        """What `loss` is of: the run's batch, or another one that was put here, of whose loss every entry counts that
        is not NaN. (Where training makes only some of its entries NaN, that is not seen.)"""

    @contextmanager
    def ready(self, seed: int | None = None) -> Iterator[None]:
        """Losses inside change nothing; the first one is computed with the run's random state, or that of a seed."""
        seeded = self.trace.seed if seed is None else seed
        with undisturbed(self.subject.model, seeded), uncompiled(self.subject.model), self._thawed():
            yield

    @contextmanager
    def _thawed(self) -> Iterator[None]:
        """Inside, what is frozen and tried all the same requires a gradient."""
        frozen = [one for one in self._frozen if not one.requires_grad]
        try:
            for one in frozen:
                one.requires_grad_(True)
            yield
        finally:
            for one in frozen:
                one.requires_grad_(False)

    def loss(self) -> Tensor:
        """The mean over all entries that carry a loss, (), with its graph. Raises Unsupported."""
        try:
            found = self.subject.loss_of(self.call(self.batch), self.batch)
        except (Exception, SystemExit) as fault:  # noqa: BLE001 - the user's code may raise anything
            raise Unsupported(str(model_error(fault, "The model, called again,"))) from None
        if not isinstance(found, Tensor):
            raise Unsupported("The subject gives no loss, so no step of training can be tried.")
        carried = self.trace.loss_carried if self.batch is self._own else ~found.detach().isnan()
        if carried is None or carried.shape != found.shape:
            return found.mean()
        where = carried.to(found.device)
        mean: Tensor = torch.where(where, found, torch.zeros_like(found)).sum() / max(1, int(where.sum()))
        return mean

    def gradients(self) -> tuple[float, list[Tensor]]:
        """(mean loss, its gradient by parameter; zeros where none reaches one; never sparse). Raises Unsupported."""
        with torch.enable_grad():
            loss = self.loss()
            if not loss.requires_grad:
                raise Unsupported("The loss needs no gradient, so no step of training can be tried.")
            try:
                found = torch.autograd.grad(loss, self.parameters, allow_unused=True)
            except Exception as fault:  # noqa: BLE001 - functions and hooks of the user's may raise anything
                raise Unsupported(str(model_error(fault, "The backward pass of the loss"))) from None
        pairs = zip(self.parameters, found, strict=True)
        return float(loss.detach()), [torch.zeros_like(one) if g is None else dense(g) for one, g in pairs]

    @contextmanager
    def at(self, values: Sequence[Tensor]) -> Iterator[None]:
        """Inside, the parameters have these values."""
        known = [(one, one.data) for one in self.parameters]
        try:
            for one, value in zip(self.parameters, values, strict=True):
                one.data = value
            yield
        finally:
            for one, data in known:
                one.data = data

    def loss_along(self, direction: Sequence[Tensor], rate: float) -> float:
        """The mean loss after θ − rate · direction, rounded to the dtype of the parameters; with the random state of
        the run (the same zeros of dropout each time), and the buffers as they are now."""
        pairs = zip(self.parameters, direction, strict=True)
        moved = [(one.data.to(step.dtype) - rate * step).to(one.dtype) for one, step in pairs]
        with undisturbed(self.subject.model, self.trace.seed), self.at(moved), torch.no_grad():
            return float(self.loss())


def _may_train(one: Tensor) -> bool:
    return one.is_floating_point() or one.is_complex()


def dense(gradient: Tensor) -> Tensor:
    """A gradient with all its entries: those of embeddings may be sparse."""
    found: Tensor = gradient.detach() if gradient.layout == torch.strided else gradient.detach().to_dense()
    return found


def in_float64(value: Tensor) -> Tensor:
    """The entries in float64; of complex numbers both parts, as optimizers of torch's take them."""
    found: Tensor = real_numbers(value.detach()).double()
    return found


def wide(value: Tensor) -> Tensor:
    """In float32 at least: in half precision 1e-8 is 0."""
    return value.to(torch.promote_types(value.dtype, torch.float32))


def norm(values: Sequence[Tensor]) -> float:
    """‖·‖₂ of all tensors together, in float64."""
    return float(torch.stack([in_float64(one).pow(2).sum() for one in values]).sum().sqrt())


def overlapping(named: Sequence[tuple[str, Tensor]]) -> tuple[str, str] | None:
    """Names of two parameters that lie in the same memory (two objects over one tensor), None where there are none.

    Weights beside each other in one storage, as cuDNN has them, are not in the same memory. Counter-example: two views
    that interleave (every second row) are taken for such a pair.
    """
    ends: dict[torch.device, tuple[int, str]] = {}
    for name, one in sorted((pair for pair in named if pair[1].numel()), key=lambda pair: pair[1].data_ptr()):
        reach = 1 + sum((size - 1) * step for size, step in zip(one.shape, one.stride(), strict=True))
        end, before = ends.get(one.device, (0, ""))
        if one.data_ptr() < end:
            return before, name
        ends[one.device] = one.data_ptr() + reach * one.element_size(), name
    return None


def stand_ins(parameters: Sequence[Tensor]) -> list[nn.Parameter]:
    """Copies that an optimizer may step."""
    return [nn.Parameter(one.detach().clone()) for one in parameters]
