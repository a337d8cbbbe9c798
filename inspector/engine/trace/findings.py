"""What probes and quantities leave in a trace beside recurrences and attentions, one value of a type.

Who leaves something and who reads it name the same class, which both import: what nobody knows cannot be asked for.
"""

from __future__ import annotations

from typing import Any, TypeVar, cast

Kind = TypeVar("Kind")


class Findings:
    """Values by their own class, for probes and quantities of this and of other packages."""

    def __init__(self) -> None:
        self._values: dict[type[Any], Any] = {}

    def put(self, value: Any) -> None:
        """Leave a value, in the place of one of the same class."""
        self._values[type(value)] = value

    def get(self, kind: type[Kind]) -> Kind | None:
        """The value of a class, or None where nobody left one."""
        return cast("Kind | None", self._values.get(kind))

    def of(self, kind: type[Kind]) -> Kind:
        """The value of a class; an empty one is made, and left there, where nobody left any."""
        if kind not in self._values:
            self._values[kind] = kind()
        return cast(Kind, self._values[kind])
