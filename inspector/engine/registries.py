"""The five registries of the engine. A new probe, quantity, loader, input or cure is one new file in its folder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inspector.engine.errors import InputError
from inspector.records import InputSpec
from inspector.records.options import Option, OptionError, named_words, split_request, values_of, written
from inspector.registry import Registry, instead

if TYPE_CHECKING:
    from inspector.engine.contracts import Cure, Input, Loader, Probe
    from inspector.engine.model.subject import Batch, Subject
    from inspector.engine.trace.quantity import Quantity

PROBES: Registry[type[Probe]] = Registry("probes", "inspector.engine.probes")
QUANTITIES: Registry[Quantity] = Registry("quantities", "inspector.engine.quantities")
LOADERS: Registry[Loader] = Registry("loaders", "inspector.engine.loaders")
INPUTS: Registry[Input] = Registry("inputs", "inspector.engine.inputs")
CURES: Registry[Cure] = Registry("cures", "inspector.engine.cures")


def quantity_of(request: str) -> tuple[Quantity, dict[str, Any]]:
    """The quantity of a request ("influence", "gradient/vectors@0:5") and a value of each of its options.

    Raises InputError for an unknown key, and for options that do not exist or are of another type.
    """
    key, words = split_request(request)
    entry = _known(key)
    try:
        return entry, values_of(entry.options, named_words(entry.options, words))
    except OptionError as problem:
        raise InputError(f"The quantity {key} {problem}.") from None


def request_of(key: str, given: Mapping[str, Any] | None = None) -> str:
    """The request for a quantity with these values of its options, as `quantity_of` reads it. Raises InputError."""
    if given is None:
        quantity_of(key)
        return key
    try:
        return written(key, _known(key).options, given)
    except OptionError as problem:
        raise InputError(f"The quantity {key} {problem}.") from None


def make_input(subject: Subject, spec: InputSpec, seed: int, others: Iterable[str] = ()) -> Batch:
    """The batch that the input of a spec makes, with a value for each of its options. Raises InputError.

    `others` are options of the inputs beside it, which may be among its own.
    """
    if spec.kind not in INPUTS:
        raise InputError(f"There is no input {spec.kind!r}; {instead(spec.kind, INPUTS)}.")
    entry = INPUTS[spec.kind]
    options = input_options(entry)
    if options is None:
        return entry.make(subject, spec, seed)
    names = {option.name for option in options}
    given = {name: value for name, value in spec.options.items() if name in names or name not in set(others)}
    try:
        return entry.make(subject, replace(spec, options=values_of(options, given)), seed)
    except OptionError as problem:
        raise InputError(f"The input {spec.kind} {problem}.") from None


def input_options(entry: Any) -> tuple[Option, ...] | None:
    """The options of an input; None where it passes the options on."""
    return entry.options if hasattr(entry, "options") else ()


def input_suffixes(entry: Any) -> tuple[str, ...]:
    found: tuple[str, ...] = getattr(entry, "suffixes", ())
    return found


def options_of_input(kind: str) -> set[str]:
    """Names of the options of an input; of one that passes the sequence on, those of all inputs that read files."""
    if kind not in INPUTS:
        return set()
    own = input_options(INPUTS[kind])
    if own is not None:
        return {option.name for option in own}
    files = [other for other, entry in INPUTS.items() if other != kind and input_suffixes(entry)]
    return {name for other in files for name in options_of_input(other)}


def input_of_file(path: Path, head: bytes = b"") -> str | None:
    """The key of the input that reads a file: by its suffix, else by its first bytes; None for an unknown one."""
    suffix, found = path.suffix.lower(), None
    for key, entry in INPUTS.items():
        if suffix and suffix in input_suffixes(entry):
            return key
        if found is None and any(head.startswith(magic) for magic in getattr(entry, "magic", ())):
            found = key
    return found


def _known(key: str) -> Quantity:
    if key not in QUANTITIES:
        raise InputError(f"There is no quantity {key!r}; {instead(key, QUANTITIES)}.")
    return QUANTITIES[key]
