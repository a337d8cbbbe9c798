"""Which curves are drawn at first, and which of them share a plot."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from inspector.capture import Curve
from inspector.capture.curves import TABLE

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
MOST_FIRST, MOST_OF_A_ROLE = 6, 2
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


def first_choice(curves: Sequence[Curve]) -> list[str]:
    """Keys of the curves that are drawn before anybody has chosen: those that have roles, else the first ones; of an
    older history all."""
    history = [curve.key for curve in curves if curve.channel.kind == TABLE]
    found: list[str] = []
    for role in FIRST_ROLES:
        found += [curve.key for curve in curves if (curve.role == role and not curve.shared) or _is_total(curve, role)][
            :MOST_OF_A_ROLE
        ]
    found = found[:MOST_FIRST]
    rest = [curve.key for curve in curves[:4]] if not found and not history else []
    return list(dict.fromkeys([*history, *found, *rest]))


def _is_total(curve: Curve, role: str) -> bool:
    """A column of a table that stands for the whole model: the gradient norm before and after clipping."""
    return curve.role == role and curve.shared


def groups_of(curves: Iterable[Curve]) -> list[Group]:
    """Curves put together into plots, in order.

    Columns of one quantity share a plot, a loss and its validation loss, and those of an older history of which the
    part before a colon is the same. All others stand alone: numbers that a user logs have nothing in common.
    """
    found: dict[str, list[Curve]] = {}
    for curve in curves:
        found.setdefault(_plot_of(curve), []).append(curve)
    return [_group(key, own) for key, own in found.items()]


def _plot_of(curve: Curve) -> str:
    if curve.channel.kind == TABLE:
        return f"history/{curve.name.partition(': ')[0]}"
    if curve.shared:
        return curve.channel.name
    role = TOGETHER.get(curve.role, curve.role)
    return role if role in TOGETHER.values() else curve.key


def _group(key: str, curves: list[Curve]) -> Group:
    first = curves[0]
    unit = first.channel.unit if len({one.channel.unit for one in curves}) == 1 else ""
    if first.channel.kind == TABLE:
        title = first.name.partition(": ")[0]
        return Group(key, title, unit, tuple(curves), tuple(one.name.partition(": ")[2] for one in curves))
    if first.shared:
        return Group(key, first.channel.title, unit, tuple(curves), tuple(one.name for one in curves))
    if len(curves) == 1:
        return Group(key, first.name, unit, tuple(curves), ("",))
    return Group(key, key, unit, tuple(curves), tuple(one.name for one in curves))
