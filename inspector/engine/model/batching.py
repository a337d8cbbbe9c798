"""From what a user gave for one input to a padded batch of it: encoding, checking and labelling of sequences.

`subject` is the subject itself, or a view of one of its inputs (`Subject.view`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from inspector.capture.regular import NotRegularError, in_words, path_of, regular_stat
from inspector.engine.errors import InputError, model_error
from inspector.engine.model.batch import INPUT, SEQUENCES, Batch, NamedInput
from inspector.engine.model.subject import Subject, guess_again
from inspector.engine.wording import a_class, text_of
from inspector.records import STEP_DOMAIN, InputSpec, Option, counted
from inspector.records.plain_text import shortened

MAX_STEPS = 2_000_000
MAX_FILE = 1 << 30
MAX_TEXT = 256 << 20
"""Bytes of a file that is parsed as text: its cells take twenty times their size in memory while they are read."""
DEFAULT_STEPS = 64
LETS_IT_RUN = (
    "The option allow_nonfinite lets it run: under Options… beside the line in the window, "
    "--option allow_nonfinite=1 in a terminal."
)


def of_value(subject: Subject, value: Any, *, allow_nonfinite: bool = False) -> Tensor:
    """One sequence from text, an array or a tensor: (t,) ids, (t, i) floats, or an array of another kind.

    Raises InputError.
    """
    if isinstance(value, str):
        return encode_text(subject, value)
    tensor = tensor_of(value)
    if subject.kind_guessed:
        guess_again(subject, tensor)
    if subject.kind == "tokens":
        return check_ids(subject, tensor)
    if subject.kind not in (*SEQUENCES, None):
        return check_array(subject, tensor, allow_nonfinite=allow_nonfinite)
    return check_vectors(subject, tensor, allow_nonfinite=allow_nonfinite)


def tensor_of(value: Any) -> Tensor:
    """A tensor of any numbers, of its own memory; byte order and types that torch lacks are converted exactly,
    except long doubles, which become doubles. Raises InputError for what is not a rectangular array of numbers.
    """
    if isinstance(value, Tensor):
        return value.detach()
    try:
        array = np.array(value)  # a copy: arrays may be read-only, or mapped from a file that is truncated meanwhile
    except (ValueError, TypeError) as problem:
        raise InputError(f"The sequence is not an array of numbers: {' '.join(str(problem).split())}.") from None
    kinds = {"b": np.int64, "i": np.int64, "u": np.int64, "c": np.complex128, "f": np.float64}
    if array.dtype.kind not in kinds:
        raise InputError(f"The sequence is {a_class(value)} of {array.dtype}; expected numbers.")
    if array.dtype.kind == "f" and array.dtype.itemsize <= 8:
        return torch.from_numpy(array.astype(array.dtype.newbyteorder("=")))
    if array.dtype.kind == "u" and array.size and int(array.max()) >> 63:
        raise InputError("The sequence holds whole numbers of 2⁶³ and more, which no tensor has.")
    return torch.from_numpy(array.astype(kinds[array.dtype.kind]))


def ask(subject: Subject, what: str, function: Callable[..., Any], *given: Any) -> Any:
    """Call a function of the user's subject: its ValueErrors are messages for the user, anything else is an error of
    the model.

    Raises InputError or ModelError.
    """
    try:
        return function(*given)
    except ValueError as problem:
        raise InputError(" ".join(text_of(problem).split()) or f"{what} of {subject.name} rejected it.") from None
    except (Exception, SystemExit) as fault:
        raise model_error(fault, f"{what} of {subject.name}") from fault


def encode_text(subject: Subject, text: str) -> Tensor:
    """Text to ids with the subject's own encoder, or one character = one entry of the vocabulary."""
    if subject.kind != "tokens":
        raise InputError(f"{subject.name} reads {what_it_reads(subject)}, not text; give .npy, .csv or audio.")
    if not text:
        raise InputError("The text is empty; at least one character is needed.")
    if subject.encode is not None:
        return check_ids(subject, tensor_of(ask(subject, "encode", subject.encode, text)))
    if subject.vocabulary is None:
        raise InputError(f"{subject.name} declares no vocabulary, so text cannot be encoded; give ids instead.")
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
    if subject.reads is not None:  # which of several embeddings reads it is not known
        return subject.reads.size
    for module in subject.model.modules():
        if isinstance(module, torch.nn.Embedding):
            return module.num_embeddings
    return None


def check_ids(subject: Subject, ids: Tensor) -> Tensor:
    """Whole numbers within the vocabulary, one axis, at least one. Raises InputError naming the first bad one."""
    if ids.dim() != 1:
        raise InputError(f"Token ids have one axis (steps); given were {ids.dim()} axes of shape {tuple(ids.shape)}.")
    check_length(len(ids))
    if ids.is_complex():
        raise InputError("Token ids are whole numbers; the sequence given holds complex ones.")
    if ids.is_floating_point():
        if bool((ids != ids.round()).any()):
            raise InputError("Token ids are whole numbers; the sequence given holds fractions.")
        ids = ids.long()
    size = vocabulary_size(subject)
    wrong = torch.nonzero((ids < 0) | (ids >= (size if size is not None else 2**62)))
    if len(wrong):
        place = int(wrong[0, 0])
        known = f"ids go from 0 to {size - 1}" if size is not None else "ids begin at 0"
        raise InputError(f"Id {int(ids[place])} at step {place} does not exist; {known}.")
    return ids.long()


def check_vectors(subject: Subject, values: Tensor, *, allow_nonfinite: bool = False) -> Tensor:
    """(t, i) floats of the model's width, finite unless allowed. One axis is one number a step when the width is 1."""
    if values.dim() == 1 and subject.width == 1:
        values = values[:, None]
    if values.dim() != 2:
        wide = "numbers of a step" if subject.width is None else subject.width
        raise InputError(
            f"{subject.name} reads an array (steps, {wide}); given was an array of shape {tuple(values.shape)}."
        )
    check_length(values.shape[0])
    if subject.width is not None and values.shape[1] != subject.width and not subject.guessed:
        raise InputError(
            f"{subject.name} reads vectors of {counted(subject.width, 'number')}; "
            f"the sequence given has {values.shape[1]} a step."
        )
    if values.is_complex():
        raise InputError("The sequence holds complex numbers; the model reads real ones.")
    values = values.to(model_dtype(subject))
    if allow_nonfinite or math.isfinite(values.sum(dtype=torch.float64).item()):
        return values
    bad = torch.nonzero(~torch.isfinite(values))  # none where only the sum of large numbers is not finite
    if len(bad):
        step, feature = (int(v) for v in bad[0])
        raise InputError(
            f"The sequence holds {float(values[step, feature])} at step {step}, feature {feature}; it must be finite. "
            f"{LETS_IT_RUN}"
        )
    return values


def check_array(subject: Subject, values: Tensor, *, allow_nonfinite: bool = False) -> Tensor:
    """An image (c, h, w), a mask, a state or any other array of one sequence, of the shape that is declared.

    Numbers with a fraction get the model's type, and so do all of an image; an image of two axes has one channel.
    """
    if subject.kind == "image" and values.dim() == 2:
        values = values[None]
    shape = subject.reads.shape if subject.reads is not None else None
    if (subject.kind == "image" and values.dim() != 3) or (shape is not None and tuple(values.shape) != shape):
        expected = shape if shape is not None else "(channels, height, width)"
        raise InputError(f"{subject.name} has the shape {expected}; given was an array of shape {tuple(values.shape)}.")
    if values.is_complex():
        raise InputError(f"{subject.name} is real; the array given holds complex numbers.")
    if subject.kind == "mask":
        if bool(((values != 0) & (values != 1)).any()):
            raise InputError(f"{subject.name} is a mask; expected nothing but 0 and 1 (or False and True).")
        return values.bool()
    if not values.is_floating_point() and subject.kind == "other":
        return values
    if not allow_nonfinite and not bool(torch.isfinite(values).all()):
        raise InputError(f"{subject.name} holds numbers that are not finite. {LETS_IT_RUN}")
    return values.to(model_dtype(subject))


def what_it_reads(subject: Subject) -> str:
    """The kind of input, as a short text."""
    known = {"tokens": "tokens", "image": "an image", "mask": "a mask", "state": "a state", "other": "an array"}
    if subject.width is None:
        return known.get(str(subject.kind), "vectors, of how many numbers is not known")
    return known.get(str(subject.kind), f"vectors of {counted(subject.width, 'number')}")


def check_length(steps: int) -> None:
    """At least one step, at most MAX_STEPS. Raises InputError."""
    if steps == 0:
        raise InputError("The sequence is empty; at least one step is needed.")
    if steps > MAX_STEPS:
        raise InputError(f"The sequence has {steps:,} steps; at most {MAX_STEPS:,} are run.")


def model_dtype(subject: Subject) -> torch.dtype:
    """The dtype of the model's first floating parameter, without one of its first floating buffer."""
    held = itertools.chain(subject.model.parameters(), subject.model.buffers())
    return next((one.dtype for one in held if one.is_floating_point()), torch.float32)


def pad(subject: Subject, rows: list[Tensor], *, targets: list[Any], title: str = "", look_at: int = 0) -> Batch:
    """Sequences of different lengths as one batch, padded on the right, with the labels of their steps."""
    if not 0 <= look_at < len(rows):
        raise InputError(f"Sequence {look_at} was selected; the batch has {len(rows)} (counted from 0).")
    known = [target for target in targets if target is not None]
    stacked = torch.as_tensor(np.asarray(known)) if known and len(known) == len(rows) else None
    return Batch.of({INPUT: as_input(subject, rows)}, INPUT, targets=stacked, look_at=look_at, title=title)


def as_input(subject: Subject, rows: list[Tensor]) -> NamedInput:
    """Sequences, or one array for each, as one input of a batch. Raises InputError where arrays differ in shape."""
    kind, reads = subject.kind or "vectors", subject.reads
    moved = 0 if reads is None else reads.batch_dim
    if kind in SEQUENCES or (kind == "mask" and all(row.dim() == 1 for row in rows)):
        padded = rows[0][None].clone() if len(rows) == 1 else torch.nn.utils.rnn.pad_sequence(
            rows, batch_first=True, padding_value=0 if reads is None else reads.padding
        )  # fmt: skip
        lengths = torch.tensor([row.shape[0] for row in rows])
        names = tuple(step_names(subject, row) for row in rows)
        return NamedInput(
            tensor=padded, kind=kind, lengths=lengths, names=names, axis=STEP_DOMAIN, batch_dim=moved
        )  # fmt: skip
    shapes = sorted({tuple(row.shape) for row in rows})
    if len(shapes) > 1:
        raise InputError(f"{subject.name} is given in the shapes {shapes[0]} and {shapes[1]}; a batch has one.")
    ones = torch.ones(len(rows), dtype=torch.int64)
    return NamedInput(tensor=torch.stack(rows), kind=kind, lengths=ones, batch_dim=moved)


def step_names(subject: Subject, row: Tensor) -> tuple[str, ...]:
    """The label of each step: its vocabulary entry, or its id; nothing for vectors."""
    if subject.kind != "tokens":
        return ()
    names = subject.vocabulary
    return tuple(str(names[i]) if names is not None and i < len(names) else str(i) for i in row.tolist())


def rows_of(subject: Subject, sequence: Any) -> list[Tensor]:
    """One sequence, or those of a list or an array of several, from text, ids or arrays. Raises InputError."""
    if isinstance(sequence, str):
        return [of_value(subject, sequence)]
    if isinstance(sequence, (list, tuple)) and sequence and not isinstance(sequence[0], (int, float)):
        return [of_value(subject, item) for item in sequence]
    return [of_value(subject, row) for row in split_batch(subject, tensor_of(sequence), "The array")]


def split_batch(subject: Subject, values: Tensor, name: str) -> list[Tensor]:
    """The sequences of an array that has the batch axis too, where the model wants that axis; else the one that it is.

    Ids in a row or a column, (1, t) or (t, 1), are one sequence, as a table of them is written. Raises InputError for
    a batch of none.
    """
    if subject.kind_guessed and values.dim() > 1:
        guess_again(subject, values if values.dim() == 2 else values[:1].flatten(0, 1))
    axes, reads = _axes_of_one(subject), subject.reads
    if values.dim() == 2 and axes == 1 and 1 in values.shape:
        return [values.reshape(-1)]
    if axes < 0 or values.dim() != axes + 1:
        return [values]
    rows = list(values.unbind(0 if reads is None else reads.batch_dim))
    if not rows:
        raise InputError(f"{name} holds no sequences.")
    return rows


def _axes_of_one(subject: Subject) -> int:
    """Axes of one sequence, or of one array; -1 where that is not known."""
    shape = subject.reads.shape if subject.reads is not None else None
    known = {"tokens": 1, "mask": 1, "vectors": 2, "image": 3}
    return len(shape) if shape is not None else known.get(str(subject.kind), -1)


def default_sequence(subject: Subject, seed: int, steps: int = DEFAULT_STEPS) -> Batch:
    """Something to run a model on that has no examples: random ids, or noise of the right width or shape."""
    random = torch.Generator().manual_seed(seed)
    if subject.kind == "tokens":
        size = vocabulary_size(subject)
        if size is None:
            raise InputError(f"{subject.name} declares no vocabulary; give ids or text.")
        row = torch.randint(0, size, (steps,), generator=random)
        return pad(subject, [row], targets=[None], title=f"{steps} random tokens (seed {seed})")
    if subject.reads is not None and subject.reads.shape is not None:
        row = torch.randn(subject.reads.shape, generator=random).to(model_dtype(subject))
        return pad(subject, [row], targets=[None], title=f"noise (seed {seed})")
    if subject.kind not in (*SEQUENCES, None):
        raise InputError(f"{subject.name} has to be given: it is {what_it_reads(subject)} of an undeclared shape.")
    if subject.width is None:
        raise InputError(f"The width of {subject.name}'s input is unknown; give a file of numbers, or declare `width`.")
    row = torch.randn(steps, subject.width, generator=random).to(model_dtype(subject))
    return pad(subject, [row], targets=[None], title=f"{steps} steps of noise (seed {seed})")


ALLOW_NONFINITE = Option(
    name="allow_nonfinite", type="bool", default=False, help="Let NaN and infinities pass, to see where they spread."
)
MORE_FILES = Option(name="files", type="texts", default=(), help="Further files of the batch.")


def number_option(spec: InputSpec, name: str, default: float) -> float:
    """A number among the options. Raises InputError."""
    value = spec.options.get(name, default)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < 1e18:
        raise InputError(f"Option {name} is {shortened(str(value), 40)!r}; expected a number.")
    return float(value)


def allows_nonfinite(spec: InputSpec) -> bool:
    """Whether NaN and infinities are allowed, to find out where they spread."""
    return bool(spec.options.get("allow_nonfinite", False))


def more_of(spec: InputSpec, name: str) -> list[str]:
    """The option that lists further sequences of the batch, `texts` or `files`. Raises InputError."""
    more = spec.options.get(name, [])
    if not isinstance(more, (list, tuple)) or not all(isinstance(item, str) for item in more):
        raise InputError(f"Option {name} is a list of {name}.")
    return list(more)


def regular_file(path: str, most: int = MAX_FILE) -> Path:
    """An existing ordinary file that is not too large; FIFOs and devices would hang the reader. Raises InputError."""
    try:
        found = path_of(path)
        size = regular_stat(found).st_size
    except FileNotFoundError:
        raise InputError(f"There is no file {found}.") from None
    except NotRegularError as problem:
        raise InputError(f"{found} cannot be read: {in_words(problem)}.") from None
    except (OSError, ValueError, RuntimeError) as problem:
        why = in_words(problem) if isinstance(problem, OSError) else problem
        raise InputError(f"{shortened(path, 80)!r} cannot be read: {why}.") from None
    if size > most:
        raise InputError(f"{found.name} has {size >> 20} MiB; at most {most >> 20} MiB are read here.")
    return found
