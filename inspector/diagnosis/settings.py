"""What a project says of its diagnosis: findings that are muted, and limits that are changed.

It stands in `inspector.toml`, in the working directory or one above it:

    [diagnosis]
    mute = ["IN403", { rule = "no-gradient", place = "extra.*", reason = "frozen on purpose" }]

    [diagnosis.limits]
    "updates-lost.share" = 0.3
"""

from __future__ import annotations

import reprlib
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from inspector.capture.regular import open_regular
from inspector.diagnosis.rule import RULES, Limit
from inspector.records import Finding
from inspector.records.plain_text import plain_sentence
from inspector.records.unreadable import why_unreadable
from inspector.registry import instead

FILE = "inspector.toml"
LARGEST = 1 << 16
"""Bytes of such a file."""
MOST_TOLD = 200
MOST_DOTS = 1_000
"""In one line: the parser's time grows with the square of the parts of a key, and half a million would take an hour."""


class _Brief(reprlib.Repr):
    """Values in a few words; Python writes no whole number of thousands of digits, which hexadecimals may have."""

    def repr_int(self, x: int, level: int) -> str:
        return super().repr_int(x, level) if x.bit_length() < 4096 else f"a number of {x.bit_length():,} bits"


_BRIEF = _Brief()
_BRIEF.maxstring = _BRIEF.maxother = 80


class SettingsError(ValueError):
    """A project's file that cannot be used; the message is one plain sentence."""

    def __init__(self, text: str) -> None:
        super().__init__(plain_sentence(text))


NAMED = 4
"""Places that are named; of more, their number."""


def places_of(finding: Finding) -> tuple[str, ...]:
    """The places that a finding is about; "" for the model as a whole."""
    return finding.places or (finding.place,)


@dataclass(frozen=True, slots=True)
class Mute:
    """Findings that are not shown: of a rule (its key or id), at places that match a pattern, all of them where a
    finding is about several."""

    rule: str
    place: str = "*"
    reason: str = ""

    def covers(self, finding: Finding) -> bool:
        """Whether it is about a finding, at all its places."""
        return self.rule in (finding.rule, finding.id) and all(self.at(place) for place in places_of(finding))

    def at(self, place: str) -> bool:
        """Whether it is about this place."""
        return fnmatchcase(place, self.place)


@dataclass(frozen=True, slots=True)
class Settings:
    """A project's wishes; without any, every rule is asked with its own limits."""

    muted: tuple[Mute, ...] = ()
    limits: Mapping[str, float] = field(default_factory=dict)
    file: str = ""

    def parted(self, finding: Finding) -> tuple[Finding | None, Finding | None]:
        """A finding as it is told, or else as one that is muted: at all of its places, each by any mute. One that is
        muted at some goes on about the others, and says so."""
        own = [one for one in self.muted if one.rule in (finding.rule, finding.id)]
        every = places_of(finding)
        quiet = tuple(place for place in every if any(mute.at(place) for mute in own))
        if len(quiet) == len(every):
            return None, finding
        if not quiet:
            return finding, None
        left = tuple(place for place in every if place not in quiet)
        named = ", ".join(quiet[:NAMED]) + (f" and {len(quiet) - NAMED} more" if len(quiet) > NAMED else "")
        place = left[0] if finding.place in quiet else finding.place
        return replace(finding, place=place, places=left, message=f"{finding.message} (muted at {named})"), None


def project_file(folder: Path) -> Path | None:
    """The nearest `inspector.toml`, from a folder upwards."""
    return next((place / FILE for place in (folder, *folder.parents) if (place / FILE).is_file()), None)


def read_settings(path: Path) -> Settings:
    """Raises SettingsError, OSError."""
    with open_regular(path) as file:
        content = file.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise SettingsError(f"{path} has more than {LARGEST:,} bytes; expected a short file of settings.")
    if (dots := max((line.count(b".") for line in content.splitlines()), default=0)) > MOST_DOTS:
        raise SettingsError(f"{path} is not read: a line has {dots:,} dots; at most {MOST_DOTS:,} are read.")
    try:
        table = tomllib.loads(content.decode())
    except RecursionError:
        raise SettingsError(f"{path} is not read: its tables lie too deep in each other.") from None
    except ValueError as problem:  # also of bytes that are no text, and of numbers with thousands of digits
        raise SettingsError(f"{path} is not TOML: {why_unreadable(problem)}.") from None
    diagnosis = _table(table.get("diagnosis", {}), "diagnosis", path)
    mutes = diagnosis.get("mute", [])
    if not isinstance(mutes, list):
        raise SettingsError(f"{path}: diagnosis.mute is {_BRIEF.repr(mutes)}; expected a list of rules.")
    limits = {
        name: _limit(name, value, path)
        for name, value in _table(diagnosis.get("limits", {}), "diagnosis.limits", path).items()
    }
    _in_order(limits, path)
    return Settings(tuple(_mute(one, path) for one in mutes), limits, str(path))


def known_limits() -> dict[str, float]:
    """{"rule.limit": value} of every rule."""
    return {name: limit.value for name, limit in _limits().items()}


def _limits() -> dict[str, Limit]:
    return {f"{key}.{limit.name}": limit for key, rule in RULES.items() for limit in rule.limits}


def _table(value: Any, name: str, path: Path) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise SettingsError(f"{path}: {name} is {_BRIEF.repr(value)}; expected a table.")
    return value


def _mute(value: Any, path: Path) -> Mute:
    parts = {"rule": value} if isinstance(value, str) else value
    if not isinstance(parts, dict) or "rule" not in parts or not parts.keys() <= {"rule", "place", "reason"}:
        raise SettingsError(
            f'{path}: {_BRIEF.repr(value)} in diagnosis.mute; expected "RULE" or a table of rule, place, reason.'
        )
    if not all(isinstance(part, str) for part in parts.values()):
        raise SettingsError(f"{path}: {_BRIEF.repr(value)} in diagnosis.mute; expected texts.")
    known = {name for key, rule in RULES.items() for name in (key, rule.id)}
    if parts["rule"] not in known:
        raise SettingsError(
            f"{path}: there is no rule {_BRIEF.repr(parts['rule'])}; {_or_listed(parts['rule'], known)}."
        )
    return Mute(**parts)


def _or_listed(name: str, known: set[str]) -> str:
    """Names that are close, else where all of them are listed: they are hundreds."""
    told = instead(name, known)
    return told if len(told) < MOST_TOLD else "`inspector rules` lists them"


def _limit(name: str, value: Any, path: Path) -> float:
    known = _limits()
    if name not in known:
        raise SettingsError(f"{path}: there is no limit {_BRIEF.repr(name)}; {_or_listed(name, set(known))}.")
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise SettingsError(f"{path}: {name} is {_BRIEF.repr(value)}; expected a number.")
    if not abs(value) <= sys.float_info.max:
        raise SettingsError(
            f"{path}: {name} is {_BRIEF.repr(value)}; expected a number up to {sys.float_info.max:.2g}."
        )
    low, high = known[name].within
    if not low <= value <= high:
        usual = f"{known[name].value:g} {known[name].unit}".strip()
        raise SettingsError(
            f"{path}: {name} is {value:g}; expected {known[name].range} (it is {usual} unless changed)."
        )
    return float(value)


def _in_order(limits: Mapping[str, float], path: Path) -> None:
    """Refuse a lower limit above the upper one, whichever of the two was changed."""
    values = {**known_limits(), **limits}
    for name, limit in _limits().items():
        upper = f"{name.rpartition('.')[0]}.{limit.below}"
        if limit.below and (name in limits or upper in limits) and values[name] > values[upper]:
            said = [f"{each} is {values[each]:g}{'' if each in limits else ' (unchanged)'}" for each in (name, upper)]
            raise SettingsError(
                f"{path}: {said[0]} and {said[1]}; expected the first not to be larger than the second."
            )
