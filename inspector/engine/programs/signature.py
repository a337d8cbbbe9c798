"""What a program reads, and its Subject: the sizes that are fixed, an example, and how a batch is given to it.

A program knows the shapes and types of what it reads, not their meaning. Whole numbers (b, t) are taken for tokens,
numbers (b, t, i) for vectors, anything else is given as it is. The axis of size 1 in the example is the batch's where
the first two are free. `kind`, `time_first` and `task` of the arguments say otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, pad

from inspector.engine.errors import InputError
from inspector.engine.model.batch import Batch
from inspector.engine.model.subject import Subject, adopt
from inspector.engine.programs.agreement import tensors_of
from inspector.engine.wording import text_of
from inspector.records.plain_text import shortened

ARGUMENTS = {"kind": ("tokens", "vectors", "other"), "task": ("next token", "none"), "time_first": (True, False)}
"""What `--arguments` may say of a program, and the values of each."""
STEPS = 12
"""Of an example that is made here."""
Call = Callable[[nn.Module, list[Any]], Any]
"""(the module, its inputs in order) → its output."""


@dataclass(frozen=True, slots=True)
class Size:
    """One axis of an input: from `low` to `high` (None: any)."""

    low: int
    high: int | None

    @property
    def fixed(self) -> bool:
        """Whether there is only one."""
        return self.low == self.high

    def told(self) -> str:
        """In words."""
        if self.fixed:
            return f"exactly {self.low}"
        return f"{self.low} or more" if self.high is None else f"{self.low} to {self.high}"

    def allows(self, size: int) -> bool:
        """Whether an axis may be of that size."""
        return self.low <= size and (self.high is None or size <= self.high)


ANY = Size(1, None)


@dataclass(frozen=True, slots=True)
class Given:
    """One input of a program.

    Attributes:
        name: an identifier; sizes: of its axes, as the program has them; dtype: its type.
        example: values that the program can run on, as it takes them.
    """

    name: str
    sizes: tuple[Size, ...]
    dtype: torch.dtype
    example: Tensor


@dataclass(frozen=True, slots=True)
class Reads:
    """How the inputs of a program are taken: kinds by name, and where the axes of steps and of the batch are."""

    kinds: Mapping[str, str]
    time_first: bool

    def axes(self) -> tuple[int, int]:
        """(axis of the batch, axis of the steps)."""
        return (1, 0) if self.time_first else (0, 1)


def check_arguments(arguments: Mapping[str, Any], known: Mapping[str, Sequence[Any]] = ARGUMENTS) -> None:
    """Raises InputError for arguments that a program does not take."""
    for name, value in arguments.items():
        if name not in known:
            raise InputError(
                f"This file takes no argument {shortened(text_of(name), 40)!r}; there are {', '.join(known)}."
            )
        if value not in known[name]:
            expected = " or ".join(map(text_of, known[name]))
            raise InputError(f"The {name} asked for is {shortened(text_of(value), 40)!r}; expected {expected}.")


def reads(inputs: Sequence[Given], arguments: Mapping[str, Any]) -> Reads:
    """How they are taken: a guess, which arguments change."""
    kinds = {one.name: _kind(one) for one in inputs}
    asked = arguments.get("kind")
    if asked is not None and inputs:
        kinds[_first(kinds)] = str(asked)
    sequences = [one for one in inputs if kinds[one.name] != "other"]
    first = sequences[0] if sequences else None
    guess = first is not None and first.example.shape[0] > 1 == first.example.shape[1]
    return Reads(kinds, bool(arguments.get("time_first", guess)))


def _first(kinds: Mapping[str, str]) -> str:
    return next((name for name, kind in kinds.items() if kind != "other"), next(iter(kinds)))


def _kind(one: Given) -> str:
    if len(one.sizes) == 2 and not (one.dtype.is_floating_point or one.dtype == torch.bool):
        return "tokens"
    return "vectors" if len(one.sizes) == 3 and one.dtype.is_floating_point else "other"


def subject_of(
    model: nn.Module, name: str, inputs: Sequence[Given], call: Call, arguments: Mapping[str, Any], tokens: int | None
) -> Subject:
    """The Subject of a program. `tokens`: how many ids its table has, where it has one. Raises InputError."""
    check_arguments(arguments)
    how = reads(inputs, arguments)
    subject = Subject(model=model, name=name)
    varying = [one for one in inputs if one.example.dim()]
    alone = len(varying) == 1 and how.kinds[varying[0].name] != "other"
    if alone:
        (one,) = varying
        subject.kind = "tokens" if how.kinds[one.name] == "tokens" else "vectors"
        subject.width = None if subject.kind == "tokens" else int(one.example.shape[-1])
        subject.examples = {"its own example": _row(one, how)}
    elif varying:
        subject.inputs = {one.name: _declared(one, how, tokens) for one in varying}
        subject.examples = {"its own example": {one.name: _row(one, how) for one in varying}}
    subject.forward = _forward(inputs, how, call)
    if alone and subject.kind == "tokens" and arguments.get("task") != "none":
        _next_tokens(subject, tokens, asked="task" in arguments)
    return adopt(subject)


def _row(one: Given, how: Reads) -> Tensor:
    """The first sequence of an example, without the batch axis."""
    return one.example.select(_batch_axis(one, how), 0)


def _batch_axis(one: Given, how: Reads) -> int:
    return how.axes()[0] if how.kinds[one.name] != "other" else 0


def _declared(one: Given, how: Reads, tokens: int | None) -> dict[str, Any]:
    kind = how.kinds[one.name]
    if kind == "tokens":
        return {"kind": kind, "size": tokens}
    if kind == "vectors":
        return {"kind": kind, "width": int(one.example.shape[-1])}
    return {"kind": "other", "shape": tuple(one.example.shape[1:])}


def _forward(inputs: Sequence[Given], how: Reads, call: Call) -> Callable[[nn.Module, Batch], Any]:
    """How a batch is given to the program."""
    batch_axis, _ = how.axes()
    varying = [one for one in inputs if one.example.dim()]

    def forward(model: nn.Module, batch: Batch) -> Any:
        values: list[Any] = []
        rows = len(batch.inputs) if batch.inputs is not None else 1
        repeats = _repeats(varying, how, rows)
        for one in inputs:
            if not one.example.dim():
                values.append(one.example)
                continue
            value = batch.inputs if len(varying) == 1 and one.name not in batch.named else batch[one.name]
            value = value.to(one.dtype)
            value = torch.cat([value] * repeats) if repeats > 1 else value
            value = value.transpose(0, 1) if how.kinds[one.name] != "other" and batch_axis else value
            _check_sizes(one, how, value)
            values.append(value)
        output = call(model, values)
        if repeats > 1:
            output = _first_rows(output, rows, rows * repeats, batch_axis)
        return _batch_first(output, rows) if batch_axis else output

    return forward


def _repeats(varying: Sequence[Given], how: Reads, rows: int) -> int:
    """How often the sequences are given to a program whose batch has a fixed size."""
    sizes = {one.sizes[_batch_axis(one, how)].low for one in varying if one.sizes[_batch_axis(one, how)].fixed}
    size = next(iter(sizes), rows)
    return size // rows if rows and size % rows == 0 else 1


def _check_sizes(one: Given, how: Reads, value: Tensor) -> None:
    batch_axis, step_axis = how.axes()
    for axis, (size, found) in enumerate(zip(one.sizes, value.shape, strict=False)):
        if size.allows(found):
            continue
        plain = how.kinds[one.name] == "other"
        what = "numbers" if plain else {batch_axis: "sequences", step_axis: "steps"}.get(axis, "numbers a step")
        raise InputError(
            f"This program takes {size.told()} {what} on axis {axis} of {one.name}, and {found} were given; a program "
            "has the sizes with which it was exported, unless it was exported with dynamic ones."
        )
    if len(one.sizes) != value.dim():
        raise InputError(f"This program reads {one.name} of {len(one.sizes)} axes; {value.dim()} were given.")


def _first_rows(output: Any, rows: int, whole: int, axis: int) -> Any:
    return _mapped(
        output, lambda one: one.narrow(axis, 0, rows) if one.dim() > axis and one.shape[axis] == whole else one
    )


def _batch_first(output: Any, rows: int) -> Any:
    """Outputs (t, b, …) as (b, t, …)."""
    return _mapped(output, lambda one: one.transpose(0, 1) if one.dim() > 2 and one.shape[1] == rows else one)


def _mapped(output: Any, change: Callable[[Tensor], Tensor]) -> Any:
    if isinstance(output, Tensor):
        return change(output)
    if isinstance(output, (tuple, list)):
        return tuple(_mapped(one, change) for one in output)
    if isinstance(output, dict):
        return {key: _mapped(one, change) for key, one in output.items()}
    return output


def _next_tokens(subject: Subject, tokens: int | None, *, asked: bool) -> None:
    """Take next tokens for the task where the output has a score for each token."""
    row = subject.examples["its own example"][None]
    batch = Batch(inputs=row, lengths=torch.tensor([row.shape[1]]))
    with torch.no_grad():
        output = subject.run(batch)
    scores = next((n for n, one in enumerate(tensors_of(output)) if one.shape == (1, row.shape[1], tokens)), None)
    if scores is None:
        if asked:
            raise InputError("The task asked for is 'next token', and no output of this program has a score per token.")
        return

    def logits(output: Any) -> Tensor:
        return list(tensors_of(output))[scores]

    def loss(output: Any, batch: Batch) -> Tensor:
        following = batch.inputs[:, 1:].long()
        losses = cross_entropy(logits(output)[:, :-1].float().transpose(1, 2), following, reduction="none")
        return pad(losses.masked_fill(~batch.mask()[:, 1:], torch.nan), (0, 1), value=torch.nan)

    subject.next_token, subject.logits, subject.loss = True, logits, loss
