"""A model and how to feed it, however it was opened: the one object that probes, inputs and runs share.

A user's callable may return an nn.Module, or any object with a `model` attribute and some of the attributes
below; `adopt` fills in the rest. README shows both in ten lines.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal

import torch
from torch import Tensor, nn

from inspector.engine.cells.family import sequence_family
from inspector.engine.errors import InputError
from inspector.engine.wording import text_of

Kind = Literal["tokens", "vectors"]


@dataclass(slots=True)
class Batch:
    """Sequences ready to run.

    Attributes:
        inputs: (b, t) long ids or (b, t, i) floats, right-padded with 0.
        lengths: (b,) long, on the CPU: real steps of each sequence.
        names: for each sequence, the labels of its steps (empty: steps are numbered).
        targets: whatever the subject's loss wants, or None.
        look_at: the sequence that is shown; the others count where a quantity averages.
        title: what was run, for the window's title.
    """

    inputs: Tensor
    lengths: Tensor
    names: tuple[tuple[str, ...], ...] = ()
    targets: Any = None
    look_at: int = 0
    title: str = ""

    @property
    def length(self) -> int:
        """Steps of the sequence looked at."""
        return int(self.lengths[self.look_at])


@dataclass(slots=True)
class Subject:
    """A model with its conventions; see README, "Open your own model", for each field."""

    model: nn.Module
    name: str = ""
    kind: Kind | None = None
    vocabulary: Sequence[str] | None = None
    labels: Sequence[str] | None = None
    encode: Callable[[str], Tensor] | None = None
    width: int | None = None
    frames: Callable[[Tensor, int], Tensor] | None = None
    forward: Callable[[nn.Module, Tensor, Tensor], Any] | None = None
    logits: Callable[[Any], Tensor] | None = None
    loss: Callable[[Any, Batch], Tensor] | None = None
    next_token: bool = False
    answer: Callable[[Any, Batch], Any] | None = None
    """(output, batch) → ids (b, t) of an answer with steps of its own, negative at padding; or labels; or None."""
    decoder: str | Sequence[str] = ()
    """Modules that run over the answer's steps; told by their number of steps where that differs from the input's."""
    examples: Mapping[str, Any] = field(default_factory=dict)
    guessed: bool = False
    """True where nobody said the width: it is that of the first layer, which may not be what the model reads."""
    checkpoint: str = ""
    """The file that the weights are from; what training left beside it (history.json) is read."""

    def run(self, batch: Batch) -> Any:
        """Call the model on a batch as its author would."""
        if self.forward is not None:
            return self.forward(self.model, batch.inputs, batch.lengths)
        return self.model(batch.inputs)

    def scores(self, output: Any) -> Tensor | None:
        """(b, t, v) scores of every step, or None when the output is nothing of that kind."""
        if self.logits is not None:
            return self.logits(output)
        first = output[0] if isinstance(output, (tuple, list)) and output else output
        names = self.labels if self.labels is not None else self.vocabulary
        fits = isinstance(first, Tensor) and first.dim() == 3 and names is not None and first.shape[-1] == len(names)
        return first if fits else None

    def decodes(self, place: str) -> bool:
        """Whether a place lies in a module that the subject says runs over the answer's steps."""
        names = (self.decoder,) if isinstance(self.decoder, str) else self.decoder
        return any(place == name or place.startswith((f"{name}.", f"{name}#")) for name in names if name)


def adopt(thing: Any, name: str = "") -> Subject:
    """A Subject from whatever a user's callable returned: an nn.Module, a Subject, or an object with `model`."""
    if isinstance(thing, Subject):
        subject = thing
    elif isinstance(thing, nn.Module):
        subject = Subject(model=thing)
    elif isinstance(getattr(thing, "model", None), nn.Module):
        known = {part.name: getattr(thing, part.name) for part in fields(Subject) if hasattr(thing, part.name)}
        subject = Subject(**{key: value for key, value in known.items() if value is not None})
    else:
        raise InputError(
            f"{name or 'The callable'} returned a {type(thing).__name__}; expected a torch.nn.Module, or an object "
            "with a `model` attribute that is one."
        )
    subject.name = text_of(subject.name or name or type(subject.model).__name__)
    _settle_texts(subject)
    _settle_kind(subject)
    return subject


def _settle_texts(subject: Subject) -> None:
    """Entries and names as plain strings: what a user put there may have a text of its own making, or none."""
    for attribute in ("vocabulary", "labels"):
        entries = getattr(subject, attribute)
        if entries is not None and not all(type(entry) is str for entry in entries):
            setattr(subject, attribute, tuple(map(text_of, entries)))
    if not all(type(name) is str for name in subject.examples):
        subject.examples = {text_of(name): example for name, example in subject.examples.items()}


def _settle_kind(subject: Subject) -> None:
    embedding = next((m for m in subject.model.modules() if isinstance(m, nn.Embedding)), None)
    if subject.kind is None:
        subject.kind = "tokens" if subject.vocabulary is not None or embedding is not None else "vectors"
    if subject.kind == "vectors" and subject.width is None:
        subject.width = _first_width(subject.model)
        subject.guessed = subject.width is not None and sequence_family(subject.model) is None


def _first_width(model: nn.Module) -> int | None:
    """The input width of the first module that has one."""
    for module in model.modules():
        for attribute in ("input_size", "in_features", "d_model", "embed_dim"):
            width = getattr(module, attribute, None)
            if isinstance(width, int):
                return width
    return None


def to_device(batch: Batch, device: str) -> Batch:
    """The same batch with its inputs (not its lengths) on a device."""
    targets = batch.targets.to(device) if isinstance(batch.targets, torch.Tensor) else batch.targets
    return Batch(batch.inputs.to(device), batch.lengths, batch.names, targets, batch.look_at, batch.title)
