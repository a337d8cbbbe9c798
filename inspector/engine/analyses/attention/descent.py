"""Which attentions are layers, one after the other, and which are heads beside each other in one layer.

Read off what each was computed from (`trace/attention.py: Lineage`), never off names. In the stream of one sequence a
layer follows another where its weights or its values were made of that one's result. Attention to another sequence is
followed through its queries alone: what it attends to is another stream. Heads of one layer are made of the same
sequence and the same layers, and the same layers are made of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from inspector.engine.errors import Unsupported
from inspector.engine.trace.attention import Lineage
from inspector.engine.trace.trace import Attention

UNKNOWN = (
    "Of what {} was computed could not be read off autograd's graph, so it is not known which layers it follows and "
    "beside which heads it is."
)
UNDECIDED = "Whether {} and {} are heads of one layer or parts of two could not be read off autograd's graph."
BESIDE = "{} and {} are neither heads of one layer nor computed one from the other, so there is no single chain."
CUT = (
    "{} attends within numbers that autograd does not follow, so it is not known whether they come from a layer before "
    "it."
)


@dataclass(frozen=True, slots=True)
class Layer:
    """Attentions whose heads are those of one layer: one, or several beside each other."""

    heads: tuple[Attention, ...]

    @property
    def first(self) -> Attention:
        """That which ran first."""
        return self.heads[0]

    @property
    def name(self) -> str:
        """Its place; of several the first and the last."""
        return self.first.place if len(self.heads) == 1 else f"{self.first.place} … {self.heads[-1].place}"


class Descent:
    """What follows what, among the attentions of one run, in the order in which they ran."""

    def __init__(self, attentions: Sequence[Attention], known: Mapping[str, Lineage | None]) -> None:
        self._known = {one.place: known.get(one.place) for one in attentions}
        self._all = {one.place: one for one in attentions}
        self._streams: dict[str, frozenset[str]] = {}

    def lineage(self, attention: Attention) -> Lineage:
        """Of one attention. Raises Unsupported where it is not known."""
        found = self._known.get(attention.place)
        if found is None or found.before is None:
            raise Unsupported(UNKNOWN.format(attention.place))
        return found

    def follows(self, later: Attention, earlier: Attention) -> bool:
        """Whether one was computed from the other in the stream of its sequence."""
        return earlier.place in self.stream(later)

    def stream(self, attention: Attention) -> frozenset[str]:
        """The places of all that come before one in its stream."""
        found = self._streams.get(attention.place)
        if found is None:
            found = self._streams[attention.place] = self.behind(self._near(attention)) - {attention.place}
        return found

    def of_values(self, attention: Attention) -> frozenset[str]:
        """The places of all that come before the values of one, in their stream."""
        return self.behind(self.lineage(attention).of_values) - {attention.place}

    def behind(self, calls: int) -> frozenset[str]:
        """The places of some calls and of all before them."""
        waiting, found = list(self._places(calls)), set[str]()
        while waiting:
            place = waiting.pop()
            if place not in found:
                found.add(place)
                waiting.extend(self._places(self._near(self._all[place])))
        return frozenset(found)

    def _near(self, attention: Attention) -> int:
        """The calls nearest before one in its stream; none of one whose graph is not known."""
        lineage = self._known.get(attention.place)
        if lineage is None or lineage.before is None:
            return 0
        return lineage.before if attention.of_itself else lineage.before & ~lineage.of_values

    def _places(self, calls: int) -> Iterator[str]:
        for place, lineage in self._known.items():
            if lineage is not None and lineage.own & calls:
                yield place


@dataclass(slots=True)
class Stack:
    """Layers of which each was computed from another one, or another one from it."""

    descent: Descent
    layers: list[Layer] = field(default_factory=list)

    @property
    def first(self) -> Attention:
        """That which ran first."""
        return min((layer.first for layer in self.layers), key=lambda one: one.order)

    def in_order(self) -> list[Layer]:
        """The lowest first. Raises Unsupported where they are no chain."""
        return in_turn(self.descent, self.layers, BESIDE)


def in_turn(descent: Descent, layers: Sequence[Layer], why: str) -> list[Layer]:
    """The lowest first. Raises Unsupported with `why` and the names of two of which neither follows the other."""
    names = {one.place for layer in layers for one in layer.heads}
    found = sorted(layers, key=lambda one: (len(descent.stream(one.first) & names), one.first.order))
    for below, above in pairwise(found):
        if not all(descent.follows(above.first, one) for one in below.heads):
            raise Unsupported(why.format(below.name, above.name))
    return found


def stacks(descent: Descent, attentions: Sequence[Attention]) -> list[Stack]:
    """All stacks of some attentions, in the order in which they began. Raises Unsupported."""
    found: list[Stack] = []
    for layer in heads_together(descent, attentions):
        joined = [one for one in found if any(_related(descent, layer, other) for other in one.layers)]
        if not joined and found and descent.lineage(layer.first).unfollowed:
            raise Unsupported(CUT.format(layer.name))
        found = [one for one in found if one not in joined]
        found.append(Stack(descent, [*(other for one in joined for other in one.layers), layer]))
    return sorted(found, key=lambda one: one.first.order)


def _related(descent: Descent, one: Layer, other: Layer) -> bool:
    return descent.follows(one.first, other.first) or descent.follows(other.first, one.first)


def heads_together(descent: Descent, attentions: Sequence[Attention]) -> list[Layer]:
    """Attentions that are heads of one layer, together. Raises Unsupported where that is undecided."""
    names = {one.place for one in attentions}
    above = {one.place: descent.stream(one) & names for one in attentions}
    below = {place: frozenset(other for other, own in above.items() if place in own) for place in names}
    found: dict[tuple[object, ...], list[Attention]] = {}
    for one in attentions:
        found.setdefault((above[one.place], below[one.place], one.of_itself), []).append(one)
    layers = [layer for some in found.values() for layer in _of_one_sequence(descent, some)]
    return sorted(layers, key=lambda one: one.first.order)


def _of_one_sequence(descent: Descent, attentions: Sequence[Attention]) -> Iterator[Layer]:
    """Of some that have the same before and behind them, those that attend to the same."""
    sources = [descent.lineage(one).source for one in attentions]
    unknown = next((number for number, source in enumerate(sources) if source is None), None)
    if unknown is not None and len(attentions) > 1:
        other = attentions[0 if unknown else 1]
        raise Unsupported(UNDECIDED.format(*sorted((other.place, attentions[unknown].place))))
    found: dict[object, list[Attention]] = {}
    for one, source in zip(attentions, sources, strict=True):
        found.setdefault(source, []).append(one)
    yield from (Layer(tuple(some)) for some in found.values())
