"""Values of several calls that are nested alike, as columns: one for every leaf of their arguments or results."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from torch import Tensor

from inspector.engine.recurrent.traced.record.operation import Call


class Uneven(Exception):
    """Values that are nested in different ways, or of which only some are tensors."""


def leaves(values: Sequence[Any]) -> list[Sequence[Any]]:
    """Values that are nested alike, as one column for every leaf. Raises Uneven."""
    kinds = set(map(type, values))
    nested = {kind for kind in kinds if issubclass(kind, (tuple, list, dict))}
    if not nested:
        return [values]
    if len(kinds) > 1 or len(set(map(len, values))) > 1:
        raise Uneven
    if issubclass(kinds.pop(), dict):
        if len(set(map(tuple, values))) > 1:
            raise Uneven
        values = [tuple(value.values()) for value in values]
    return [leaf for column in zip(*values, strict=True) for leaf in leaves(column)]


def tensor_columns(columns: Sequence[Sequence[Any]]) -> list[Sequence[Any]]:
    """The columns that are tensors. Raises Uneven where only some of a column's values are."""
    found = []
    for column in columns:
        are = {issubclass(kind, Tensor) for kind in set(map(type, column))}
        if len(are) > 1:
            raise Uneven
        if are == {True}:
            found.append(column)
    return found


def argument_leaves(together: Sequence[Call]) -> list[Sequence[Any]]:
    """The arguments of calls as columns. Raises Uneven."""
    if any(map(itemgetter(2), together)):
        return leaves([(call[1], call[2] or {}) for call in together])
    return leaves(list(map(itemgetter(1), together)))


def result_leaves(together: Sequence[Call]) -> list[Sequence[Any]]:
    """What calls returned as columns. Raises Uneven."""
    outs = list(map(itemgetter(3), together))
    if any(issubclass(kind, dict) for kind in set(map(type, outs))):
        raise Uneven
    return leaves(outs)


def constant(columns: Sequence[Sequence[Any]]) -> bool:
    """True where all values of each column are equal, tensors excepted."""
    return all(isinstance(column[0], Tensor) or _equal(column) for column in columns)


def _equal(column: Sequence[Any]) -> bool:
    """True where all are equal to the first; not where that cannot be asked (arrays of numpy's)."""
    try:
        return list(column).count(column[0]) == len(column)
    except Exception:  # noqa: BLE001 - an object of the user's may raise anything
        return False


def all_same(values: Sequence[Any]) -> bool:
    """True where all are one and the same object."""
    return len(set(map(id, values))) == 1
