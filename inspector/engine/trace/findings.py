"""What probes and quantities store in a trace beside recurrences and attentions, one value of each class.

The code that stores a value and the code that reads it import the same class, so that no reader can mistype a name.
"""

from __future__ import annotations

from typing import Any, TypeVar, cast

Kind = TypeVar("Kind")


class Findings:
    """Values by their own class, for probes and quantities of this and of other packages."""

    def __init__(self) -> None:
        self._values: dict[type[Any], Any] = {}

    def put(self, value: Any) -> None:
        """Store a value, replacing one of the same class."""
        self._values[type(value)] = value

    def get(self, kind: type[Kind]) -> Kind | None:
        """The value of a class, or None where there is none."""
        return cast("Kind | None", self._values.get(kind))

    def of(self, kind: type[Kind]) -> Kind:
        """The value of a class; an empty one is made and stored where there is none."""
        if kind not in self._values:
            self._values[kind] = kind()
        return cast(Kind, self._values[kind])
