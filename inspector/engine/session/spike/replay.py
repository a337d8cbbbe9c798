"""A subject and a batch that call a copy of a model as a training did, and whose loss has the gradient that it had.

The loss of the iteration needs targets, which are not kept. What is kept is g = ∂L/∂y at the output y: the function
⟨g, y⟩ of the model's output has the same gradient for every parameter and every state, by the chain rule, and its terms
by step, Σ_v g_tv y_tv, are what each step of the loss adds to them. Its values are no losses, and are not shown.

Letters: b sample, t step, v entry of the output.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from inspector.engine.devices.random_state import restore
from inspector.engine.errors import InputError
from inspector.engine.model.subject import Batch, Subject, adopt
from inspector.engine.session.spike.kept_step import Call, KeptStep
from inspector.engine.watch.measures.activations import first_tensor
from inspector.engine.watch.parameters import inner, plain_name
from inspector.records import counted

NO_GRADIENT = "No gradient at the output was kept of iteration {}, so what made the gradient cannot be told."


def restored(subject: Subject, step: KeptStep) -> Subject:
    """The subject with a copy of its model that has the parameters, buffers and modes of the iteration.

    Raises InputError where they are not those of this model.
    """
    try:
        model = copy.deepcopy(inner(subject.model))
    except Exception as problem:  # noqa: BLE001 - a model of the user's may hold anything that cannot be copied
        raise InputError(f"{subject.name} cannot be copied to run the iteration in the copy ({problem}).") from None
    _load(model, step, subject.name)
    for name, part in model.named_modules():
        part.training = step.calls[0].training if step.evaluation is None else name not in step.evaluation
    model.training = step.calls[0].training
    return adopt(replace(subject, model=model, set_to_eval=(), inputs={}, answer=None, next_token=False))


def _kind(tensor: Tensor) -> tuple[bool, bool]:
    return tensor.is_floating_point(), tensor.is_complex()


def _load(model: nn.Module, step: KeptStep, name: str) -> None:
    own = dict(model.named_parameters(remove_duplicate=False))
    ties = {id(one) for key, one in own.items() if plain_name(key) in step.parameters}
    missing = [key for key, one in own.items() if plain_name(key) not in step.parameters and id(one) not in ties]
    other = [key for key, one in own.items() if (kept := step.parameters.get(plain_name(key))) is not None
             and (kept.shape, *_kind(kept)) != (one.shape, *_kind(one))]  # fmt: skip
    if missing or other:
        what = f"{counted(len(missing), 'parameter')} of it not kept ({', '.join(missing[:3])})" if missing else ""
        shapes = (
            f"{counted(len(other), 'parameter')} of another shape or kind ({', '.join(other[:3])})" if other else ""
        )
        raise InputError(
            f"{step.path.name} is no iteration of {name}: {' and '.join(filter(None, (what, shapes)))}; open the model "
            "that was trained."
        )
    with torch.no_grad():
        for key, one in own.items():
            kept = step.parameters.get(plain_name(key))
            if kept is not None:
                one.data = kept.to(one.device)  # in the precision in which it was trained
        for key, buffer in model.named_buffers():
            saved = step.buffers.get(key)
            if saved is not None and saved.shape == buffer.shape:
                buffer.copy_(saved)


@dataclass(frozen=True, slots=True)
class Sequences:
    """What of a call is shown as the input: its tensor as (b, t) ids or (b, t, i) numbers, its name and axes.

    `as_called` gives the tensor the form that the model was called with.
    """

    tensor: Tensor
    path: tuple[str, int | str]
    as_called: Callable[[Tensor], Tensor]
    time_major: bool = False


def sequences_of(model: nn.Module, call: Call) -> Sequences:
    """The first tensor that the call has: (b, t) ids, (b, t, i) or (t, b, i) numbers, or (b, i), of one step.

    Raises InputError where there is none of these.
    """
    given = [("args", n, one) for n, one in enumerate(call.args)] + [("kwargs", k, v) for k, v in call.kwargs.items()]
    for lead, key, one in given:
        if not isinstance(one, Tensor) or one.is_complex():
            continue
        if one.is_floating_point() and one.dim() == 2:
            return Sequences(one[:, None], (lead, key), lambda x: x[:, 0])
        time_major = isinstance(model, nn.RNNBase) and not model.batch_first
        if one.dim() == (3 if one.is_floating_point() else 2):
            if time_major:
                return Sequences(one.transpose(0, 1), (lead, key), lambda x: x.transpose(0, 1), True)
            return Sequences(one, (lead, key), lambda x: x)
    raise InputError(
        "The model was called on no sequence that can be shown: expected ids (batch, step) or numbers (batch, step, "
        "width)."
    )


class Replay:
    """One call of the iteration, on a subject from `restored`. `scale`: the factor of a GradScaler."""

    def __init__(self, subject: Subject, step: KeptStep, call: Call, scale: float = 1.0) -> None:
        self.step, self.call, self.scale = step, call, scale
        self.model = subject.model
        self._called = _module(self.model, call.module)
        self._shown = sequences_of(self._called, call)
        device = next((one.device for one in self.model.parameters()), torch.device("cpu"))
        self._device = device
        self.subject = replace(subject, forward=self._forward, loss=self._loss, loss_unit="1")

    def batch(self, look_at: int = 0) -> Batch:
        """The sequences of the call, one of them looked at."""
        tensor = self._shown.tensor
        names: tuple[tuple[str, ...], ...] = ()
        vocabulary = self.subject.vocabulary
        if vocabulary is not None and not tensor.is_floating_point():
            count = len(vocabulary)
            names = tuple(tuple(vocabulary[i] if 0 <= i < count else str(i) for i in row) for row in tensor.tolist())
        title = f"iteration {self.step.iteration:,}"
        lengths = torch.full((len(tensor),), tensor.shape[1])
        return Batch(tensor.to(self._device), lengths, names, look_at=look_at, title=title)

    def output(self) -> Tensor:
        """The output of the call, made again: the tensor whose gradient was kept. Raises InputError."""
        found = first_tensor(self._forward(self.model, self.batch()))
        gradient = self.call.gradient
        if found is None or gradient is None:
            raise InputError(NO_GRADIENT.format(self.step.iteration))
        if found.shape != gradient.shape:
            raise InputError(
                f"The model returned shape {tuple(found.shape)} and the gradient that was kept has "
                f"{tuple(gradient.shape)}: this is not the model, or not the code, that was trained."
            )
        return found

    def _forward(self, model: nn.Module, batch: Batch) -> Any:
        def placed(value: Any) -> Any:
            if isinstance(value, Tensor):
                return value.to(self._device)
            if isinstance(value, dict):
                return {key: placed(one) for key, one in value.items()}
            return type(value)(placed(one) for one in value) if isinstance(value, (list, tuple)) else value

        lead, key = self._shown.path
        shown = self._shown.as_called(batch.inputs)
        args = tuple(shown if (lead, key) == ("args", n) else placed(one) for n, one in enumerate(self.call.args))
        kwargs = {n: shown if (lead, key) == ("kwargs", n) else placed(one) for n, one in self.call.kwargs.items()}
        with ExitStack() as stack:
            for device, dtype in self.call.autocast.items():
                stack.enter_context(torch.autocast(device, dtype))
            restore({device: state for device, state in self.call.random.items() if _is_here(device)})
            return _module(model, self.call.module)(*args, **kwargs)

    def terms(self, output: Tensor) -> Tensor | None:
        """⟨g, y⟩ by sample and step (b, t), NaN at steps of a model that answers once, at the end; None where the
        output has no samples."""
        gradient = self.call.gradient
        assert gradient is not None
        return self.by_step(output * (gradient.to(output.device) / self.scale))

    def by_step(self, product: Tensor) -> Tensor | None:
        """Sums of something of the output's form by sample and step, as `terms` has them."""
        b, t = self._shown.tensor.shape[:2]
        if self._shown.time_major and product.dim() > 2 and product.shape[:2] == (t, b):
            product = product.transpose(0, 1)
        if product.dim() >= 2 and product.shape[0] == b * t and b * t != b:
            product = product.reshape(b, t, *product.shape[1:])
        if not product.dim() or product.shape[0] != b:
            return None
        if product.dim() >= 3:
            return product.flatten(2).sum(-1)
        if product.dim() == 2 and product.shape[1] == t and t > 1:
            return product
        whole = product.reshape(b, -1).sum(-1)
        blank = torch.full((b, t - 1), float("nan"), dtype=whole.dtype, device=whole.device)
        return torch.cat((blank, whole[:, None]), 1)

    def _loss(self, output: Any, batch: Batch) -> Tensor:
        found = first_tensor(output)
        if found is None or self.call.gradient is None:
            raise InputError(NO_GRADIENT.format(self.step.iteration))
        terms = self.terms(found)
        return terms if terms is not None else (found * (self.call.gradient.to(found.device) / self.scale)).sum()


def _module(model: nn.Module, name: str) -> nn.Module:
    try:
        return model.get_submodule(name)
    except AttributeError:
        raise InputError(f"The training called {name!r}, which this model does not have.") from None


def _is_here(device: torch.device) -> bool:
    return device.type == "cpu" or (device.type == "cuda" and (device.index or 0) < torch.cuda.device_count())
