"""Options of an entry, with their types: what the command line, the window and Python offer, and how each is written.

A request names an entry and may set its options after `@`: `gradient/vectors@0:5`, `gradient/vectors@steps=0:5`, and
`KEY@a=1@b=2` for several. A word without a name sets the first option that has not been set.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from inspector.records.plain_text import shortened
from inspector.registry import instead

OptionType = Literal["int", "float", "bool", "text", "choice", "steps", "texts"]
EXPECTED = {
    "int": "a whole number", "float": "a number", "bool": "yes or no", "text": "text", "choice": "one of them",
    "steps": "FROM:TO, the first step and the one behind the last", "texts": "a list of texts",
}  # fmt: skip
YES, NO = ("yes", "true", "1"), ("no", "false", "0")
LARGEST = 1e18
_STEPS = re.compile(r"(\d{1,15})?(:)?(\d{1,15})?")
_NAMED = re.compile(r"(?P<name>[A-Za-z_]\w*)=(?P<value>.*)", re.DOTALL)


class OptionError(ValueError):
    """An option that an entry does not have, or a value that it cannot take:
    the end of a sentence that begins with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One option of a quantity or an input.

    Attributes:
        name: as it is written and as the function takes it, a Python name.
        type: of its value: int, float, bool, text (str), choice (one of `choices`), texts (a list of str), or
            steps: (first, behind the last), where None stands for the beginning or the end.
        default: the value where none is given.
        help: one sentence.
        low, high: bounds of a number, both included; None for none.
        choices: of a choice.
        of_value: sequences that this option is for ("impulse"), where an input has several kinds; empty for all.
    """

    name: str
    type: OptionType = "float"
    default: Any = None
    help: str = ""
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    of_value: tuple[str, ...] = ()

    def value(self, given: Any) -> Any:
        """A value of the option's type from one of that type or from text. Raises OptionError."""
        try:
            found = _READ[self.type](self, given)
        except (ValueError, TypeError, OverflowError):
            raise OptionError(f"is {shortened(repr(given), 40)}; expected {self.expected}") from None
        if isinstance(found, (int, float)) and not isinstance(found, bool) and not self._within(found):
            raise OptionError(f"is {shortened(repr(given), 40)}; expected {self.expected}")
        return found

    @property
    def expected(self) -> str:
        """The expected value, as text."""
        if self.type == "choice":
            return f"one of {', '.join(self.choices)}"
        if self.low is not None and self.high is not None:
            return f"{EXPECTED[self.type]} from {_plain(self.low)} to {_plain(self.high)}"
        if self.low is not None:
            return f"{EXPECTED[self.type]}, {_plain(self.low)} or more"
        return EXPECTED[self.type] if self.high is None else f"{EXPECTED[self.type]}, at most {_plain(self.high)}"

    def written(self, value: Any) -> str:
        """A value as `value` reads it from text."""
        if self.type == "steps" and value is not None:
            return ":".join("" if end is None else str(end) for end in value)
        return ("yes" if value else "no") if self.type == "bool" else str(value)

    def _within(self, number: float) -> bool:
        low = -LARGEST if self.low is None else self.low
        high = LARGEST if self.high is None else self.high
        return low <= number <= high


def _plain(number: float) -> str:
    return f"{int(number):,}" if number == int(number) else f"{number:g}"


def _int(_option: Option, given: Any) -> int:
    if isinstance(given, bool) or (isinstance(given, float) and not given.is_integer()):
        raise ValueError
    return int(given)


def _float(_option: Option, given: Any) -> float:
    if isinstance(given, bool) or not math.isfinite(number := float(given)):
        raise ValueError
    return number


def _bool(_option: Option, given: Any) -> bool:
    if isinstance(given, bool) or str(given).lower() not in (*YES, *NO):
        return given if isinstance(given, bool) else _raise()
    return str(given).lower() in YES


def _text(_option: Option, given: Any) -> str:
    return given if isinstance(given, str) else str(given) if isinstance(given, (int, float)) else _raise()


def _choice(option: Option, given: Any) -> str:
    return str(given) if given in option.choices else str(_raise())


def _texts(_option: Option, given: Any) -> list[str]:
    if isinstance(given, str) or not all(isinstance(item, str) for item in given):
        raise ValueError
    return list(given)


def _steps(_option: Option, given: Any) -> tuple[int | None, int | None]:
    if isinstance(given, str):
        found = _STEPS.fullmatch(given)
        if found is None or not given:
            raise ValueError
        first = int(found[1]) if found[1] else None
        last = int(found[3]) if found[3] else None
        first, last = (first, last) if found[2] else (first, None if first is None else first + 1)
    else:
        ends = [given, _int(_option, given) + 1] if isinstance(given, int) else list(given)
        first, last = (None if end is None else _int(_option, end) for end in ends)
    if (first or 0) < 0 or (last is not None and last <= (first or 0)):
        raise ValueError
    return first, last


def _raise() -> Any:
    raise ValueError


_READ: Mapping[str, Any] = {
    "int": _int, "float": _float, "bool": _bool, "text": _text, "choice": _choice, "steps": _steps, "texts": _texts,
}  # fmt: skip


def split_request(request: str) -> tuple[str, tuple[str, ...]]:
    """The key of a request, and the words behind it that set options."""
    key, *words = request.strip().split("@")
    return key, tuple(words)


def requests_in(texts: Iterable[str]) -> tuple[str, ...]:
    """The requests of an option that may be repeated and may be a list with commas."""
    return tuple(part.strip() for text in texts for part in text.split(",") if part.strip())


def named_words(options: Sequence[Option], words: Sequence[str]) -> dict[str, str]:
    """{option: text} of words that are NAME=VALUE, or only VALUE. Raises OptionError where there are too many."""
    named: dict[str, str] = {}
    for word in words:
        match = _NAMED.fullmatch(word)
        left = [option.name for option in options if option.name not in named]
        if match is not None:
            named[match["name"]] = match["value"]
        elif left:
            named[left[0]] = word
        else:
            raise OptionError(f"has no option for {word!r}; it has {_list(options)}")
    return named


def values_of(options: Sequence[Option], given: Mapping[str, Any]) -> dict[str, Any]:
    """Every option with its value: as given, or the default. Raises OptionError."""
    known = {option.name: option for option in options}
    for name in given:
        if name not in known:
            raise OptionError(f"has no option {name!r}; {instead(name, known)}")
    values = {}
    for name, option in known.items():
        try:
            values[name] = option.value(given[name]) if name in given else option.default
        except OptionError as problem:
            raise OptionError(f"cannot take this: {name} {problem}") from None
    return values


def written(key: str, options: Sequence[Option], given: Mapping[str, Any]) -> str:
    """The request that sets these options: `KEY@NAME=VALUE@…`. Raises OptionError as `values_of` does."""
    values = values_of(options, given)
    return "@".join([key, *(f"{o.name}={o.written(values[o.name])}" for o in options if o.name in given)])


def _list(options: Sequence[Option]) -> str:
    return ", ".join(option.name for option in options) or "none"
