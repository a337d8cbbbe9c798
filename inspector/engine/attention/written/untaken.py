"""The softmaxes of a run that are not attention, one line for each place and reason."""

from __future__ import annotations

from collections.abc import Iterable

from inspector.engine.attention.written.facts import Origin
from inspector.engine.attention.written.judging import ATTENDING, UNSEEN, UNUSED
from inspector.records import counted

_NAMES = {
    "softmax": ("A softmax", "softmaxes"),
    "linear": ("A linear attention", "linear attentions"),
    "edges": ("A sum over the edges of a graph", "sums over the edges of a graph"),
    "features": ("A product of exponentials, divided by its sum,", "products of exponentials, divided by their sums,"),
    "largest": ("A choice of the largest score", "choices of the largest scores"),
    "exp": ("An exponential of scores", "exponentials of scores"),
}
"""What is listed, by kind: one, several."""
MOST = 40
"""Lines at most; the rest is counted."""
LINE = "{} of {}, over axis {} of {}, {} not taken for attention: {}."


def lines(origins: Iterable[Origin]) -> list[str]:
    """What is said of every softmax that was not taken for attention, in the order of the model."""
    groups: dict[tuple[str, str], list[Origin]] = {}
    for origin in origins:
        if not origin.taken and origin.kind in _NAMES:
            groups.setdefault((origin.place, origin.reason or _unknown(origin)), []).append(origin)
    said = [_line(place, reason, group) for (place, reason), group in groups.items()]
    rest = len(said) - MOST
    return said if rest <= 0 else [*said[:MOST], f"{counted(rest, 'further place')} with a softmax likewise."]


def _unknown(origin: Origin) -> str:
    """The reason where nothing was seen of what became of it."""
    named = any(word in f"{origin.place}.{origin.module}".lower() for word in ATTENDING)
    return UNSEEN if named else UNUSED


def _line(place: str, reason: str, group: list[Origin]) -> str:
    shapes = list(dict.fromkeys(origin.shape for origin in group))
    shape = " × ".join(map(str, shapes[0])) + (" (the first)" if len(shapes) > 1 else "")
    one, several = _NAMES[group[0].kind]
    what = one if len(group) == 1 else f"{len(group)} {several}"
    were = "was" if len(group) == 1 else "were"
    return LINE.format(what, place, group[0].axis, shape, were, reason)
