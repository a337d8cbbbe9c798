"""From what a user gave to a padded batch: encoding, checking and labelling of sequences."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from inspector.engine.errors import InputError
from inspector.engine.subject import Batch, Subject
from inspector.records import InputSpec

MAX_STEPS = 2_000_000
MAX_FILE = 1 << 30
DEFAULT_STEPS = 64


def of_value(subject: Subject, value: Any) -> Tensor:
    """One sequence from text, an array or a tensor: (t,) ids or (t, i) floats. Raises InputError."""
    if isinstance(value, str):
        return encode_text(subject, value)
    tensor = torch.as_tensor(np.asarray(value)) if not isinstance(value, Tensor) else value
    return check_ids(subject, tensor) if subject.kind == "tokens" else check_vectors(subject, tensor)


def encode_text(subject: Subject, text: str) -> Tensor:
    """Text to ids with the subject's own encoder, or one character = one entry of the vocabulary."""
    if subject.kind != "tokens":
        raise InputError(
            f"{subject.name} reads vectors of {subject.width} numbers, not text; give .npy, .csv or audio."
        )
    if not text:
        raise InputError("The text is empty; at least one character is needed.")
    if subject.encode is not None:
        try:
            ids = torch.as_tensor(subject.encode(text))
        except ValueError as problem:
            raise InputError(str(problem)) from None
        return check_ids(subject, ids)
    if subject.vocabulary is None:
        raise InputError(
            f"{subject.name} says nothing about its vocabulary, so text cannot be encoded; give ids instead."
        )
    index = {entry: number for number, entry in enumerate(subject.vocabulary)}
    for position, character in enumerate(text):
        if character not in index:
            raise InputError(
                f"Character {character!r} at position {position} is not in the vocabulary of {subject.name}, which has "
                f"{len(index)} entries: {_listed(subject.vocabulary)}."
            )
    return torch.tensor([index[character] for character in text])


def _listed(entries: Sequence[str]) -> str:
    shown = "".join(map(str, entries)) if all(len(str(e)) == 1 for e in entries) else ", ".join(map(str, entries[:20]))
    return repr(shown[:120]) + ("…" if len(shown) > 120 else "")


def vocabulary_size(subject: Subject) -> int | None:
    """How many ids exist: entries of the vocabulary, else rows of the first embedding."""
    if subject.vocabulary is not None:
        return len(subject.vocabulary)
    for module in subject.model.modules():
        if isinstance(module, torch.nn.Embedding):
            return module.num_embeddings
    return None


def check_ids(subject: Subject, ids: Tensor) -> Tensor:
    """Whole numbers within the vocabulary, one axis, at least one. Raises InputError naming the first bad one."""
    if ids.dim() != 1:
        raise InputError(f"Token ids have one axis (steps); given were {ids.dim()} axes of shape {tuple(ids.shape)}.")
    check_length(len(ids))
    if ids.is_floating_point():
        if bool((ids != ids.round()).any()):
            raise InputError("Token ids are whole numbers; the sequence given holds fractions.")
        ids = ids.long()
    size = vocabulary_size(subject)
    wrong = torch.nonzero((ids < 0) | (ids >= (size if size is not None else 2**62)))
    if len(wrong):
        place = int(wrong[0, 0])
        raise InputError(f"Id {int(ids[place])} at step {place} does not exist; ids go from 0 to {(size or 0) - 1}.")
    return ids.long()


def check_vectors(subject: Subject, values: Tensor) -> Tensor:
    """(t, i) floats of the model's width, finite. One axis is taken as one number a step when the width is 1."""
    if values.dim() == 1 and subject.width == 1:
        values = values[:, None]
    if values.dim() != 2:
        raise InputError(
            f"{subject.name} reads (steps, {subject.width}) numbers; given was an array of shape {tuple(values.shape)}."
        )
    check_length(len(values))
    if subject.width is not None and values.shape[1] != subject.width:
        raise InputError(
            f"{subject.name} reads vectors of {subject.width} numbers; the sequence given has {values.shape[1]} a step."
        )
    if values.is_complex():
        raise InputError("The sequence holds complex numbers; the model reads real ones.")
    values = values.to(model_dtype(subject))
    bad = torch.nonzero(~torch.isfinite(values))
    if len(bad):
        step, feature = (int(v) for v in bad[0])
        raise InputError(
            f"The sequence holds {float(values[step, feature])} at step {step}, feature {feature}; it must be finite."
        )
    return values


def check_length(steps: int) -> None:
    """At least one step, at most MAX_STEPS. Raises InputError."""
    if steps == 0:
        raise InputError("The sequence is empty; at least one step is needed.")
    if steps > MAX_STEPS:
        raise InputError(f"The sequence has {steps} steps; at most {MAX_STEPS} are run.")


def model_dtype(subject: Subject) -> torch.dtype:
    """The dtype of the model's first floating parameter."""
    for parameter in subject.model.parameters():
        if parameter.is_floating_point():
            return parameter.dtype
    return torch.float32


def pad(subject: Subject, rows: list[Tensor], *, targets: list[Any], title: str = "", look_at: int = 0) -> Batch:
    """Sequences of different lengths as one batch, padded with 0 on the right, with the labels of their steps."""
    if not 0 <= look_at < len(rows):
        raise InputError(f"Sequence {look_at} was asked for; the batch has {len(rows)} (counted from 0).")
    lengths = torch.tensor([len(row) for row in rows])
    inputs = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
    known = [target for target in targets if target is not None]
    stacked = torch.as_tensor(np.asarray(known)) if known and len(known) == len(rows) else None
    return Batch(inputs, lengths, tuple(step_names(subject, row) for row in rows), stacked, look_at, title)


def step_names(subject: Subject, row: Tensor) -> tuple[str, ...]:
    """The label of each step: its vocabulary entry, or its id; nothing for vectors."""
    if subject.kind != "tokens":
        return ()
    names = subject.vocabulary
    return tuple(str(names[i]) if names is not None and i < len(names) else str(i) for i in row.tolist())


def default_sequence(subject: Subject, seed: int) -> Batch:
    """Something to run a model on that brings no examples: random ids, or noise of the right width."""
    random = torch.Generator().manual_seed(seed)
    if subject.kind == "tokens":
        size = vocabulary_size(subject)
        if size is None:
            raise InputError(f"{subject.name} says nothing about its vocabulary; give ids or text.")
        row = torch.randint(0, size, (DEFAULT_STEPS,), generator=random)
        return pad(subject, [row], targets=[None], title=f"{DEFAULT_STEPS} random tokens (seed {seed})")
    if subject.width is None:
        raise InputError(f"The width of {subject.name}'s input is unknown; give a file of numbers, or say `width`.")
    row = torch.randn(DEFAULT_STEPS, subject.width, generator=random).to(model_dtype(subject))
    return pad(subject, [row], targets=[None], title=f"{DEFAULT_STEPS} steps of noise (seed {seed})")


def number_option(spec: InputSpec, name: str, default: float) -> float:
    """A number among the options. Raises InputError."""
    value = spec.options.get(name, default)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InputError(f"Option {name} is {value!r}; expected a number.")
    return float(value)


def regular_file(path: str) -> Path:
    """An existing ordinary file of bearable size; FIFOs and devices would hang the reader. Raises InputError."""
    found = Path(path).expanduser()
    if not found.exists():
        raise InputError(f"There is no file {found}.")
    if not found.is_file():
        raise InputError(f"{found} is not an ordinary file.")
    if found.stat().st_size > MAX_FILE:
        raise InputError(
            f"{found.name} has {found.stat().st_size >> 20} MiB; at most {MAX_FILE >> 20} MiB are read as input."
        )
    return found
