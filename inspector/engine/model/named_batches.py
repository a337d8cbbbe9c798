"""Several named inputs as one batch: what was left out is made or reported as missing, and every sequence gets its step
axis."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from inspector.engine.errors import InputError
from inspector.engine.model.batch import SEQUENCES, Batch, InputKind, NamedInput
from inspector.engine.model.batching import (
    DEFAULT_STEPS,
    default_sequence,
    model_dtype,
    of_value,
    pad,
    rows_of,
    tensor_of,
)
from inspector.engine.model.call import arguments
from inspector.engine.model.declared_inputs import DeclaredInput, primary_of
from inspector.engine.model.subject import Subject
from inspector.records import ANSWER_DOMAIN, CLASS_DOMAIN, STEP_DOMAIN, VOCABULARY_DOMAIN
from inspector.records.channel import DIMS

TAKEN = frozenset((*DIMS, "position", STEP_DOMAIN, ANSWER_DOMAIN, VOCABULARY_DOMAIN, CLASS_DOMAIN))
"""Label domains with another meaning: a step axis of such a name would give its labels to other axes."""
FEWER = 12
"""Steps by which each further random sequence is shorter than the one before: equal lengths distinguish nothing."""
Declared = Mapping[str, DeclaredInput]


def of_values(
    subject: Subject,
    values: Mapping[str, Any],
    *,
    read: Callable[[Subject, Any], list[Tensor]] = rows_of,
    target: Any = None,
    look_at: int = 0,
    title: str = "",
) -> Batch:
    """A batch from text, ids, arrays or lists of several by the names of the inputs. Raises InputError."""
    present = {name: value for name, value in values.items() if value is not None}
    declared = declared_for(subject, {name: inferred(value) for name, value in present.items()}, list(values))
    given: dict[str, Batch] = {}
    for name, value in present.items():
        view = subject.view(name, declared[name])
        rows = read(view, value)
        given[name] = pad(view, rows, targets=[target] * len(rows))
    targets = next((batch.targets for batch in given.values()), None)
    return assemble(subject, declared, given, targets=targets, look_at=look_at, title=title or _title(present))


def _title(values: Mapping[str, Any]) -> str:
    return next((value[:40] for value in values.values() if isinstance(value, str)), "")


def declared_for(subject: Subject, found: Declared, names: Sequence[str]) -> Declared:
    """The subject's inputs; where it declares none, what the values are. Raises InputError for an unknown name."""
    if subject.declared:
        for name in names:
            if name not in subject.declared:
                raise InputError(f"{subject.name} has no input {name!r}; there are {', '.join(subject.declared)}.")
        return subject.declared
    if not found:
        raise InputError(f"No input was given; {subject.name} reads at least one.")
    first = primary_of(found, list(found))
    own = {"vocabulary": subject.vocabulary, "encode": subject.encode}
    return {name: replace(one, **own) if name == first else one for name, one in found.items()}  # type: ignore[arg-type]


def inferred(value: Any) -> DeclaredInput:
    """What a value that was given under a name is, where the subject declares nothing.

    Text and rows of whole numbers are tokens, rows of vectors vectors, (c, h, w) an image, rows of truth values a mask;
    anything else has no steps. (2, 8) numbers are taken for two steps although they may be the states of two layers,
    which is rarer: a state has to be declared.
    """
    several = isinstance(value, (list, tuple)) and value and not isinstance(value[0], (int, float))
    value = value[0] if several else value
    if isinstance(value, str):
        return DeclaredInput(kind="tokens")
    axes, fractions = tensor_of(value).dim(), tensor_of(value).is_floating_point()
    truth = value.dtype == torch.bool if isinstance(value, Tensor) else np.asarray(value).dtype == np.bool_
    kinds: dict[int, InputKind] = {2: "vectors", 3: "image"} if fractions else {1: "mask" if truth else "tokens"}
    return DeclaredInput(kind=kinds.get(axes, "other"))


def of_example(subject: Subject, found: Any, title: str) -> Batch:
    """The batch of an example sequence: a value or (value, target); for several inputs a mapping or the values in
    order.

    Raises InputError.
    """
    if not subject.declared and not isinstance(found, Mapping):
        value, target = found if isinstance(found, tuple) else (found, None)
        if not isinstance(value, Mapping):
            return pad(subject, _one(subject, value), targets=[target], title=title)
        found = value, target
    values, target = _by_name(subject, found, title)
    return of_values(subject, values, read=_one, target=target, title=title)


def primary_value(subject: Subject, found: Any) -> Any:
    """The example's value for the primary input: the window lets the user change it where it is text."""
    if not subject.declared and not isinstance(found, Mapping):
        return found[0] if isinstance(found, tuple) and found else found
    values, _ = _by_name(subject, found, "")
    return values.get(subject.primary)


def _one(subject: Subject, value: Any) -> list[Tensor]:
    return [of_value(subject, value)]


def _by_name(subject: Subject, found: Any, title: str) -> tuple[Mapping[str, Any], Any]:
    """(values by the names of the inputs, target) of an example."""
    if isinstance(found, Mapping):
        return found, None
    if isinstance(found, tuple) and len(found) == 2 and isinstance(found[0], Mapping):
        return found
    names = [name for name, one in subject.declared.items() if not one.derived]
    values = found if isinstance(found, tuple) else (found,)
    needed = sum(not subject.declared[name].optional for name in names)
    if not min(needed, 1) <= len(values) <= len(names) + 1:
        raise InputError(
            f"The example {title!r} of {subject.name} has {len(values)} values; expected those of {', '.join(names)}, "
            "and a target after them where there is one."
        )
    target = values[len(names)] if len(values) > len(names) else None
    return dict(zip(names, values, strict=False)), target


def defaults(subject: Subject, seed: int) -> Batch:
    """Random ids or noise for every input that has to be given. Raises InputError."""
    given: dict[str, Batch] = {}
    for name, one in subject.declared.items():
        if not _fills_itself(one):
            steps = max(8, DEFAULT_STEPS - FEWER * len(given))
            given[name] = default_sequence(subject.view(name, one), seed + len(given), steps)
    titles = ", ".join(f"{name}: {batch.title}" for name, batch in given.items())
    return assemble(subject, subject.declared, given, title=titles)


def _fills_itself(one: DeclaredInput) -> bool:
    """Whether an input need not be given: a mask, a state that begins at zero, what is optional."""
    return one.derived or one.optional or (one.kind == "state" and one.shape is not None)


def assemble(
    subject: Subject,
    declared: Declared,
    given: Mapping[str, Batch],
    *,
    targets: Any = None,
    look_at: int = 0,
    title: str = "",
) -> Batch:
    """One batch of the inputs that were given, each as a batch of its own, and of those that may be left out.

    Raises InputError for one that is missing, for different numbers of sequences or steps, and where it is not clear
    how the model is called with them.
    """
    _check_complete(subject, declared, given)
    primary = primary_of(declared, [name for name in declared if name in given])
    size = _common_size(given, primary)
    if not 0 <= look_at < size:
        raise InputError(f"Sequence {look_at} was selected; the batch has {size} (counted from 0).")
    named = _on_axes(declared, given, primary)
    for name, one in declared.items():
        named[name] = named[name] if name in named else _filled(subject, one, named, size)
    made = Batch.of(
        {name: named[name] for name in declared}, primary, targets=targets, look_at=look_at, title=title
    )  # fmt: skip
    _check_shared_steps(made)
    if subject.forward is None:
        arguments(subject.model, made)
    return made


def _check_complete(subject: Subject, declared: Declared, given: Mapping[str, Batch]) -> None:
    """Raises InputError where an input is missing that cannot be left out, or nothing was given."""
    missing = [name for name, one in declared.items() if name not in given and not _fills_itself(one)]
    if missing or not given:
        given_text = f"given was only {', '.join(given)}" if given else "none was given"
        lacking = f"{', '.join(missing)} is missing" if missing else "one at least is needed"
        raise InputError(f"{subject.name} reads {', '.join(declared)}; {given_text}, and {lacking}.")


def _common_size(given: Mapping[str, Batch], primary: str) -> int:
    """How many sequences every input has. Raises InputError where they differ."""
    size = given[primary].size
    for name, batch in given.items():
        if batch.size != size:
            raise InputError(f"{primary} was given {size} sequences and {name} {batch.size}; a batch has equally many.")
    return size


def _on_axes(declared: Declared, given: Mapping[str, Batch], primary: str) -> dict[str, NamedInput]:
    """The inputs that were given, each with its step axis and with what is declared of its shape."""
    named = {name: batch.first for name, batch in given.items()}
    return {
        name: replace(
            one,
            axis=axis_of(declared, name, primary, named),
            grid=declared[name].grid,
            before=tuple(declared[name].before),
        )
        for name, one in named.items()
    }


def axis_of(declared: Declared, name: str, primary: str, named: Mapping[str, NamedInput]) -> str:
    """The step axis of an input: "step" for the primary one's, its own name for others, "" without steps.

    A mask that does not declare what it masks belongs to the one sequence with its lengths.
    """
    one = named[name]
    if not one.axis:
        return ""
    alike = [
        other for other, its in named.items()
        if one.kind == "mask" and its.kind in SEQUENCES and torch.equal(its.lengths, one.lengths)
    ]  # fmt: skip
    said = declared[name].axis or declared[name].of or (alike[0] if len(alike) == 1 else name)
    if said == primary:
        return STEP_DOMAIN
    return f"{said} step" if said in TAKEN else said


def _filled(subject: Subject, one: DeclaredInput, named: Mapping[str, NamedInput], size: int) -> NamedInput:
    """A mask from the lengths of what it masks, a state of zeros, or nothing."""
    ones = torch.ones(size, dtype=torch.int64)
    source = named.get(one.of)
    if source is not None and source.axis:
        real = torch.arange(source.steps)[None] < source.lengths[:, None]
        mask = real if one.marks == "real" else ~real
        return replace(source, tensor=mask, kind="mask", batch_dim=one.batch_dim)
    if one.kind == "state" and one.shape is not None and not one.optional:
        zeros = torch.zeros(size, *one.shape, dtype=model_dtype(subject))
        return NamedInput(tensor=zeros, kind="state", lengths=ones, batch_dim=one.batch_dim)
    return NamedInput(tensor=None, kind=one.kind, lengths=ones, batch_dim=one.batch_dim)


def _check_shared_steps(batch: Batch) -> None:
    """Inputs over one axis have the same steps. Raises InputError."""
    seen: dict[str, tuple[str, NamedInput]] = {}
    for name, one in batch.named.items():
        if one.tensor is None or not one.axis:
            continue
        other, first = seen.setdefault(one.axis, (name, one))
        if not torch.equal(one.lengths, first.lengths):
            raise InputError(
                f"{name} has {one.lengths.tolist()} steps and {other} {first.lengths.tolist()}, though both have "
                "the same step axis."
            )
