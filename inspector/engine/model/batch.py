"""What goes into a model: any number of named inputs, each with its own lengths and step axis, one of them primary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor

from inspector.engine.errors import InputError
from inspector.records import STEP_DOMAIN

InputKind = Literal["tokens", "vectors", "image", "mask", "state", "other"]
SEQUENCES = ("tokens", "vectors")
"""Kinds that are a sequence of steps by themselves; a mask has the steps of the input that it masks."""
INPUT = "input"
"""Name of the only input of a batch where none is given, and the place of the primary input's channels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedInput:
    """One input of a batch.

    Attributes:
        tensor: (b, …) with the batch axis first, padded on the right; None for an optional input that is left out.
        kind: "tokens" (b, t) ids, "vectors" (b, t, i), "image" (b, c, h, w), "mask" (b, t) bool, "state", "other".
        lengths: (b,) long, on the CPU: real steps of each sequence; 1 where the input has no steps.
        names: for each sequence, the labels of its steps (empty: steps are numbered).
        axis: its step axis: "step" for the primary input, its own name for others; "" without steps.
        grid: (rows, columns) of a picture that is cut into patches, row by row: each step, or for an image each
            position that the model attends to, is a patch.
        before: names of the positions in front of a picture's patches.
        batch_dim: where the model wants the batch axis (1 for the states of nn.LSTM, or time-major sequences).
        sound: of sequences that were made of recordings, for each (its samples (n,), their rate in hertz).
    """

    tensor: Tensor | None
    kind: InputKind
    lengths: Tensor
    names: tuple[tuple[str, ...], ...] = ()
    axis: str = ""
    grid: tuple[int, int] | None = None
    before: tuple[str, ...] = ()
    batch_dim: int = 0
    sound: tuple[tuple[Tensor, int], ...] = ()

    @property
    def steps(self) -> int:
        """Number of steps with padding; 1 where the input has no steps."""
        return self.tensor.shape[1] if self.axis and self.tensor is not None else 1

    def row_names(self, sample: int) -> tuple[str, ...]:
        """Labels of the steps of one sequence."""
        return self.names[sample] if self.names else ()


class Batch:
    """Sequences ready to run: `batch["src"]` is the tensor of an input as the model takes it.

    Attributes:
        named: every input by its name, in the order in which they were declared.
        primary: the name of the input whose step axis is the run's: the window's token strip shows it.
        targets: whatever the subject's loss wants, or None.
        look_at: the sequence that is shown; the others count where a quantity averages.
        title: what was run, for the window's title.
    """

    __slots__ = ("_moved", "look_at", "named", "primary", "targets", "title")

    def __init__(
        self,
        inputs: Tensor,
        lengths: Tensor,
        names: tuple[tuple[str, ...], ...] = (),
        targets: Any = None,
        look_at: int = 0,
        title: str = "",
    ) -> None:
        """A batch of one input: (b, t) long ids or (b, t, i) floats, padded on the right; lengths (b,)."""
        kind: InputKind = "vectors" if inputs.is_floating_point() else "tokens"
        only = NamedInput(tensor=inputs, kind=kind, lengths=lengths, names=names, axis=STEP_DOMAIN)
        self.named: Mapping[str, NamedInput] = {INPUT: only}
        self.primary = INPUT
        self._moved: dict[str, tuple[Tensor, Tensor]] = {}
        self.targets, self.look_at, self.title = targets, look_at, title

    @classmethod
    def of(
        cls, named: Mapping[str, NamedInput], primary: str, *, targets: Any = None, look_at: int = 0, title: str = ""
    ) -> Batch:
        """A batch of several inputs, all of equally many sequences; the primary one has a tensor."""
        made = cls.__new__(cls)
        made.named, made.primary, made._moved = dict(named), primary, {}
        made.targets, made.look_at, made.title = targets, look_at, title
        return made

    @property
    def first(self) -> NamedInput:
        """The primary input."""
        return self.named[self.primary]

    @property
    def inputs(self) -> Tensor:
        """The primary input's tensor: (b, t) ids or (b, t, i) numbers, padded on the right."""
        tensor = self.first.tensor
        assert tensor is not None
        return tensor

    @inputs.setter
    def inputs(self, tensor: Tensor) -> None:
        self.named = {**self.named, self.primary: replace(self.first, tensor=tensor)}

    @property
    def lengths(self) -> Tensor:
        """(b,) long, on the CPU: real steps of each sequence of the primary input."""
        return self.first.lengths

    @property
    def names(self) -> tuple[tuple[str, ...], ...]:
        """For each sequence of the primary input, the labels of its steps (empty: steps are numbered)."""
        return self.first.names

    @property
    def length(self) -> int:
        """Steps of the primary input's sequence that is shown."""
        return int(self.lengths[self.look_at])

    @property
    def steps(self) -> int:
        """Steps of the primary input with padding (1 where it has no steps, as an image)."""
        return self.first.steps

    @property
    def size(self) -> int:
        """Number of sequences."""
        return len(self.lengths)

    def __contains__(self, name: object) -> bool:
        return name in self.named and self.named[str(name)].tensor is not None

    def __getitem__(self, name: str) -> Any:
        """The tensor of an input as the model takes it; None for an optional one that was left out."""
        found = self._input(name)
        if found.tensor is None or not found.batch_dim:
            return found.tensor
        known = self._moved.get(name)
        if known is None or known[0] is not found.tensor:  # always the same view: tensors are recognised by identity
            known = self._moved[name] = found.tensor, found.tensor.movedim(0, found.batch_dim)
        return known[1]

    def mask(self, name: str = "") -> Tensor:
        """(b, t) True at the real steps of an input (the primary one if none is named), False at padding."""
        found = self._input(name or self.primary)
        if found.tensor is None or not found.axis:
            raise InputError(f"The input {name!r} has no steps, so it has no padding to mask.")
        return torch.arange(found.steps, device=found.tensor.device) < found.lengths.to(found.tensor.device)[:, None]

    def others(self) -> list[tuple[str, NamedInput]]:
        """The sequences beside the primary one that run over a step axis of their own, one for each axis."""
        found: dict[str, tuple[str, NamedInput]] = {}
        for name, one in self.named.items():
            if one.tensor is not None and one.kind in SEQUENCES and one.axis not in ("", STEP_DOMAIN):
                found.setdefault(one.axis, (name, one))
        return list(found.values())

    def _input(self, name: str) -> NamedInput:
        if name not in self.named:
            raise InputError(f"The batch has no input {name!r}; there are {', '.join(self.named)}.")
        return self.named[name]


def selected(batch: Batch, samples: Sequence[int] | Tensor, targets: Any = None) -> Batch:
    """Copies of some sequences of a batch, in that order, padding included; the first of them is shown."""
    picks = torch.as_tensor(samples)
    named = {
        name: replace(
            one,
            tensor=None if one.tensor is None else one.tensor[picks.to(one.tensor.device)],
            lengths=one.lengths[picks],
            names=tuple(one.names[i] for i in picks.tolist()) if one.names else (),
            sound=tuple(one.sound[i] for i in picks.tolist()) if one.sound else (),
        )
        for name, one in batch.named.items()
    }
    return Batch.of(named, batch.primary, targets=targets, title=batch.title)


def to_device(batch: Batch, device: str | torch.device) -> Batch:
    """The same batch with its inputs (not its lengths) on a device; itself where they lie there."""
    held = [batch.targets, *(one.tensor for one in batch.named.values())]
    if all(one.device == torch.device(device) for one in held if isinstance(one, Tensor)):
        return batch
    targets = batch.targets.to(device) if isinstance(batch.targets, Tensor) else batch.targets
    named = {
        name: one if one.tensor is None else replace(one, tensor=one.tensor.to(device))
        for name, one in batch.named.items()
    }
    return Batch.of(named, batch.primary, targets=targets, look_at=batch.look_at, title=batch.title)
