"""From the input of the window, the command line or a Python caller to the batch that is run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from inspector.engine.errors import InputError
from inspector.engine.model.batching import pad, rows_of
from inspector.engine.model.call import names_taken, takes_by_name
from inspector.engine.model.declared_inputs import DeclaredInput
from inspector.engine.model.named_batches import assemble, declared_for, of_values
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.registries import INPUTS, input_of_file, make_input, options_of_input
from inspector.records import InputSpec
from inspector.records.sequences import NAMED

EXAMPLE = "example"


def batch_of_spec(subject: Subject, spec: InputSpec, seed: int) -> Batch:
    """The batch of a request. Raises InputError."""
    if spec.parts and _are_names(subject, spec):
        return _of_parts(subject, spec, seed)
    _refuse_names(subject, spec)
    if spec.kind == EXAMPLE or not subject.declared:
        return make_input(subject, spec, seed)
    return _of_parts(subject, replace(spec, parts={subject.primary: spec}), seed)


def _are_names(subject: Subject, spec: InputSpec) -> bool:
    """Whether the parts are inputs of the model. "x=5" is a text too, which `value` has, unless x is an input.

    For a model that declares none they are where there are several: a single input needs no name.
    """
    if subject.declared or not spec.value:
        return not spec.value or any(name in subject.declared for name in spec.parts)
    return len(spec.parts) > 1 and all(takes_by_name(subject.model, name) for name in spec.parts)


def _refuse_names(subject: Subject, spec: InputSpec) -> None:
    """One text that reads NAME=VALUE is a text; among several it is taken for what was meant for an input of that name,
    and not run as one more row. Raises InputError."""
    texts = [spec.value, *spec.options.get("texts", ())] if spec.kind == "text" else []
    named = [match for text in texts if (match := NAMED.fullmatch(text)) is not None]
    if len(texts) < 2 or not named:
        return
    there = list(subject.declared) or names_taken(subject.model)
    has = f"there {'is' if len(there) == 1 else 'are'} {', '.join(there)}" if there else "its inputs have no names"
    unknown = [match["name"] for match in named if match["name"] not in there]
    if not unknown:
        raise InputError(
            f"{len(texts)} texts were given, of which {len(named)} begin{'s' if len(named) == 1 else ''} with the name "
            f"of an input ({named[0]['name']}=…); expected is a name for each, or for none."
        )
    raise InputError(
        f"{subject.name} has no input {unknown[0]!r}, which was given as {unknown[0]}=…; {has}. "
        "A text that begins like that, beside others, is read from a file."
    )


def _of_parts(subject: Subject, spec: InputSpec, seed: int) -> Batch:
    declared = declared_for(subject, {name: _of_kind(part) for name, part in spec.parts.items()}, list(spec.parts))
    given: dict[str, Batch] = {}
    options = {name for part in spec.parts.values() for name in options_of_input(part.kind)}
    for number, (name, part) in enumerate(spec.parts.items()):
        view = subject.view(name, declared[name])
        given[name] = make_input(view, replace(part, look_at=0, parts={}), seed + number, options)
        _keep_vocabulary(subject, name, view)
    declared = subject.declared or declared
    titles = [batch.title for batch in given.values() if batch.title]
    targets = next((batch.targets for batch in given.values() if batch.targets is not None), None)
    return assemble(subject, declared, given, targets=targets, look_at=spec.look_at, title=titles[0] if titles else "")


def _of_kind(part: InputSpec) -> DeclaredInput:
    """The declaration of an input of which only its kind of sequence is known."""
    of_file = getattr(INPUTS[part.kind], "form", "") == "file" if part.kind in INPUTS else False
    kind = input_of_file(Path(part.value)) if of_file else part.kind
    reads = getattr(INPUTS[kind], "reads", ()) if kind is not None and kind in INPUTS else ()
    return DeclaredInput(kind="tokens" if "tokens" in reads else "vectors")


def _keep_vocabulary(subject: Subject, name: str, view: Subject) -> None:
    """A vocabulary file names the ids of the input for the whole session, as it does where there is only one input."""
    if name not in subject.declared or view.vocabulary is subject.declared[name].vocabulary:
        return
    subject.inputs = {**subject.declared, name: replace(subject.declared[name], vocabulary=view.vocabulary)}
    if name == subject.primary:
        subject.vocabulary = view.vocabulary


def make_batch(subject: Subject, sequence: Any, seed: int, look_at: int) -> Batch:
    """A batch from text, ids, an array, a list of several, any of these by the names of inputs, an InputSpec, or None.

    None is the subject's first example; a spec (inspector.sequence) what its input makes.

    Raises InputError.
    """
    if isinstance(sequence, InputSpec):
        return batch_of_spec(subject, sequence, seed)
    if sequence is None:
        return INPUTS[EXAMPLE].make(subject, InputSpec(), seed)
    if isinstance(sequence, Mapping):
        return of_values(subject, sequence, look_at=look_at)
    if subject.declared:
        return of_values(subject, {subject.primary: sequence}, look_at=look_at)
    rows = rows_of(subject, sequence)
    title = sequence[:40] if isinstance(sequence, str) else ""
    return pad(subject, rows, targets=[None] * len(rows), title=title, look_at=look_at)
