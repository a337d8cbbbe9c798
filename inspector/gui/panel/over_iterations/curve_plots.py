"""Which curves are drawn at first, and which of them share a plot."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from inspector.capture import Curve
from inspector.capture.curves import AS_LOGGED, TABLE

FIRST_ROLES = (
    "loss",
    "validation loss",
    "gradient norm",
    "learning rate",
    "validation accuracy",
    "accuracy",
    "perplexity",
)
"""What is drawn of a run in which nobody has chosen anything, in this order."""
MOST_FIRST, MOST_OF_A_ROLE, MOST_RUNS = 6, 2, 12
TOGETHER = {"validation loss": "loss", "validation accuracy": "accuracy"}
"""Roles that are read against another one, in its plot."""


@dataclass(frozen=True, slots=True)
class Group:
    """Curves of one plot: its title, its unit, and the name of each curve in the legend ("" where it is alone)."""

    key: str
    title: str
    unit: str
    curves: tuple[Curve, ...]
    names: tuple[str, ...]


def in_order(curves: Sequence[Curve]) -> list[Curve]:
    """The same with the groups first that have a loss, a gradient norm, a learning rate; of an older history as it
    is."""
    rank: dict[str, int] = {}
    for curve in curves:
        own = FIRST_ROLES.index(curve.role) if curve.role in FIRST_ROLES and not curve.run else len(FIRST_ROLES)
        rank[curve.group] = min(rank.get(curve.group, own), own)
    if any(curve.channel.kind == TABLE for curve in curves):
        return list(curves)
    return sorted(curves, key=lambda curve: rank[curve.group])


def first_choice(curves: Sequence[Curve]) -> list[str]:
    """Keys of the curves that are drawn before anybody has chosen: those that have roles, else the first ones; of an
    older history all."""
    history = [curve.key for curve in curves if curve.channel.kind == TABLE]
    names: list[str] = []
    roles: list[str] = []
    for role in FIRST_ROLES:
        own = [curve for curve in curves if curve.role == role]
        shared = _in_every_run(own)
        if shared is None:
            names += list(dict.fromkeys(curve.name for curve in own))[:MOST_OF_A_ROLE]
        else:
            roles += shared
    runs = list(dict.fromkeys(curve.run for curve in curves))[:MOST_RUNS]
    if not (names or history or roles):
        names = list(dict.fromkeys(curve.name for curve in curves))
    with_roles = [curve for curve in curves if curve.role] or list(curves)
    found = [one.key for one in with_roles if one.name in names[:MOST_FIRST] and one.run in runs]
    return list(dict.fromkeys([*history, *found, *roles]))


def _in_every_run(curves: Sequence[Curve]) -> list[str] | None:
    """Keys of the first curve of a role in each of some runs, where they do not call it by the same name; else None."""
    first: dict[str, Curve] = {}
    for curve in curves:
        first.setdefault(curve.run, curve)
    if len(first) < 2 or (len({one.name for one in first.values()}) == 1 and curves[0].channel.method == AS_LOGGED):
        return None
    return [one.key for one in list(first.values())[:MOST_RUNS]]


def groups_of(curves: Iterable[Curve]) -> list[Group]:
    """Curves put together into plots, in order.

    The same curve of several runs is one plot. Columns of one quantity share a plot, a loss and its validation loss,
    and those of an older history of which the part before a colon is the same. All others stand alone: numbers that a
    user logs have nothing in common.
    """
    found: dict[str, list[Curve]] = {}
    for curve in curves:
        found.setdefault(_plot_of(curve), []).append(curve)
    return [_group(key, own) for key, own in found.items()]


def _plot_of(curve: Curve) -> str:
    if curve.run and curve.role:
        return TOGETHER.get(curve.role, curve.role)
    if curve.run:
        return f"{curve.name} of all runs"
    if curve.channel.kind == TABLE:
        return f"history/{curve.name.partition(': ')[0]}"
    if curve.shared:
        return curve.channel.name
    role = TOGETHER.get(curve.role, curve.role)
    if role in TOGETHER.values():
        return role
    return curve.key


def _group(key: str, curves: list[Curve]) -> Group:
    first = curves[0]
    unit = first.channel.unit if len({one.channel.unit for one in curves}) == 1 else ""
    if first.run:
        names = list(dict.fromkeys(one.name for one in curves))
        told = tuple(one.run if len(names) == 1 else f"{one.run}: {one.name}" for one in curves)
        return Group(key, names[0] if len(names) == 1 else key, unit, tuple(curves), told)
    if first.channel.kind == TABLE:
        title = first.name.partition(": ")[0]
        return Group(key, title, unit, tuple(curves), tuple(one.name.partition(": ")[2] for one in curves))
    if first.shared:
        return Group(key, first.channel.titled, unit, tuple(curves), tuple(one.name for one in curves))
    if len(curves) == 1:
        return Group(key, first.name, unit, tuple(curves), ("",))
    names = [one.name for one in curves]
    told = tuple(one.name if names.count(one.name) == 1 else f"{one.group}: {one.name}" for one in curves)
    return Group(key, key, unit, tuple(curves), told)
