"""The four registries of the engine. A new probe, quantity, loader or input is one new file in its folder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from inspector.engine.errors import InputError
from inspector.records.options import named_words, split_request, values_of, written
from inspector.registry import Registry, instead

if TYPE_CHECKING:
    from inspector.engine.contracts import Input, Loader, Probe
    from inspector.engine.trace.quantity import Quantity

PROBES: Registry[type[Probe]] = Registry("probes", "inspector.engine.probes")
QUANTITIES: Registry[Quantity] = Registry("quantities", "inspector.engine.quantities")
LOADERS: Registry[Loader] = Registry("loaders", "inspector.engine.loaders")
INPUTS: Registry[Input] = Registry("inputs", "inspector.engine.inputs")


def quantity_of(request: str) -> tuple[Quantity, dict[str, Any]]:
    """The quantity of a request ("influence", "gradient/vectors@0:5") and a value of each of its options.

    Raises InputError for a key that is not there, and for options that it has not or that are of another type.
    """
    key, words = split_request(request)
    entry = _known(key)
    try:
        return entry, values_of(entry.options, named_words(entry.options, words))
    except ValueError as problem:
        raise InputError(f"The quantity {key} {problem}.") from None


def request_of(key: str, given: Mapping[str, Any] | None = None) -> str:
    """The request for a quantity with these values of its options, as `quantity_of` reads it. Raises InputError."""
    if given is None:
        quantity_of(key)
        return key
    try:
        return written(key, _known(key).options, given)
    except ValueError as problem:
        raise InputError(f"The quantity {key} {problem}.") from None


def _known(key: str) -> Quantity:
    if key not in QUANTITIES:
        raise InputError(f"There is no quantity {key!r}; {instead(key, QUANTITIES)}.")
    return QUANTITIES[key]
