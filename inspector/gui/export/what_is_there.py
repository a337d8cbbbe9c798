"""Whether a capture has the place, unit and head that are asked for: else another one would be drawn, unsaid."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from inspector.capture import CaptureError
from inspector.capture.curves import names_of_columns
from inspector.records import Channel, ViewAt

if TYPE_CHECKING:
    from inspector.gui.panel.base import Panel

MOST_NAMED = 12
"""Places that a message names."""


def check_view(view: Any, at: ViewAt, kind: type[Panel] | None = None) -> None:
    """Raises CaptureError, with what there is, for the first that a panel, or any of them, does not have."""
    for _, problem in _missing(view, at, kind):
        raise CaptureError(problem)


def known_part(view: Any, at: ViewAt, kind: type[Panel] | None = None) -> ViewAt:
    """The same position without what there is not."""
    return replace(at, **{name: getattr(ViewAt(), name) for name, _ in _missing(view, at, kind)})


def _missing(view: Any, at: ViewAt, kind: type[Panel] | None) -> Iterator[tuple[str, str]]:
    """(field, what is wrong with it)."""
    shown = _shown(view, at.frame, kind)
    if at.place and (problem := _strange_place(view, at, kind, shown)):
        yield "place", problem
    for name, number in (("unit", at.unit), ("head", at.head)):
        count = _count(view, at, name, shown) or _count(view, at, name, view.channels.values())
        if number is not None and not 0 <= number < count:
            there = f"they are numbered 0 to {count - 1}" if count else f"this capture has no {name}s"
            yield name, f"There is no {name} {number}{f' of {at.place}' if at.place and count else ''}: {there}."


def _shown(view: Any, frame: int, kind: type[Panel] | None) -> list[Channel]:
    """What a panel shows of a frame, where it shows one place; nothing where it goes by no place."""
    return kind.found_in(view, frame) if kind is not None and kind.by_steps else []


def _strange_place(view: Any, at: ViewAt, kind: type[Panel] | None, shown: Sequence[Channel]) -> str:
    """What is wrong with the place; "" for nothing."""
    own = _places(shown)
    if own and kind is not None:
        return "" if at.place in own else f"{kind.title} shows no place {at.place!r}: it has {_named(own)}."
    places = _places(view.channels.values())
    modules = [one.name for one in getattr(view.start, "places", ()) if one.name]
    if at.place in places or at.place in modules or at.place in _columns(view):
        return ""
    return f"There is no place {at.place!r} in this capture: it has {_named(places or modules) or 'none'}."


def _places(channels: Iterable[Channel]) -> list[str]:
    return list(dict.fromkeys(one.place for one in channels if one.place))


def _columns(view: Any) -> set[str]:
    """Parameters and modules that are columns of tables over a training."""
    found: set[str] = set()
    for one in view.channels.values():
        if one.dims[-1:] in (("parameter",), ("module",)):
            with suppress(CaptureError):
                found.update(names_of_columns(view, one))
    return found


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMED:,} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


def _count(view: Any, at: ViewAt, dim: str, channels: Iterable[Channel]) -> int:
    """How many units or heads there are, of the place where one is asked for that has some."""
    along = [one for one in channels if dim in one.dims]
    here = [one for one in along if one.place == at.place]
    return max((_extent(view, one, at.frame)[one.dims.index(dim)] for one in here or along), default=0)


def _extent(view: Any, channel: Channel, frame: int) -> tuple[int, ...]:
    extent: tuple[int, ...] = view.extent(channel.name, frame)
    return extent if all(extent) else view.extent(channel.name)
