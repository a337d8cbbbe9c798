"""Which variables a loop carries: the places where values are made in one iteration and read in a later one, together.

A value that is made at one place and read at another joins the two. All places that are joined are one variable,
whatever its name and wherever it is stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Set

from torch import Tensor

from inspector.engine.recurrent.traced.loops.growing_lists import Site, growing
from inspector.engine.recurrent.traced.loops.iteration_classes import Twins
from inspector.engine.recurrent.traced.loops.loop import Label, Loop

Item = tuple[str, Label, int]
"""("made" or "read", operation of the loop's body, number of its output or input)."""


class Variables:
    """The carried variables of a loop, as groups of places (union-find).
    A group is identified by its representative.

    Attributes:
        lists: for each list of past values the places that read its entries: there the first value is one of them, and
            no reset.
    """

    def __init__(self) -> None:
        self.lists: list[set[Site]] = []
        self._items: dict[Item, Item] = {}
        self._parent: dict[Item, Item] = {}

    def join(self, made: tuple[Label, int], read: tuple[Label, int]) -> None:
        """What is made at one place is read at the other."""
        self._unite(self._of(("made", *made)), self._of(("read", *read)))

    def join_read(self, variable: Item, site: Site) -> None:
        """A place reads this variable, too."""
        self._unite(self._of(("read", *site)), variable)

    def sites(self) -> set[Site]:
        """All places that read a variable."""
        return {(label, n) for kind, label, n in self._items if kind == "read"}

    def made(self, label: Label, n: int) -> Item | None:
        """The variable that output n of an operation is a new value of, or None."""
        item = self._items.get(("made", label, n))
        return None if item is None else self._find(item)

    def read(self, label: Label, n: int) -> Item | None:
        """The variable that input n of an operation is, or None."""
        item = self._items.get(("read", label, n))
        return None if item is None else self._find(item)

    def all(self) -> set[Item]:
        """Every variable."""
        return set(map(self._find, self._items.values()))

    def unite(self, variables: list[Item]) -> None:
        """Make them one."""
        for one in variables[1:]:
            self._unite(one, variables[0])

    def _of(self, item: Item) -> Item:
        return self._items.setdefault(item, item)

    def _find(self, item: Item) -> Item:
        parent = self._parent
        parent.setdefault(item, item)
        while parent[item] is not item:
            parent[item] = parent[parent[item]]
            item = parent[item]
        return item

    def _unite(self, a: Item, b: Item) -> None:
        self._parent[self._find(a)] = self._find(b)


def carried(loop: Loop, twins: Twins) -> Variables:
    """The variables of a loop: floating-point values that an iteration reads and an earlier one made."""
    variables = Variables()
    oldest = 0
    for i in twins.members:
        for label, op in loop.iterations[i]:
            for n, given in enumerate(op.inputs):
                place = twins.source.get(id(given))
                if place is not None and place[0] < i and given.is_floating_point():
                    maker, made = loop.iterations[place[0]][place[1]]
                    variables.join((maker, made.output(given)), (label, n))
                    oldest = max(oldest, i - place[0])
    _take_lists(loop, twins, variables)
    if oldest == 1:
        _unite_taking_turns(loop, twins, variables)
    return variables


def _take_lists(loop: Loop, twins: Twins, variables: Variables) -> None:
    """The first entry of a list of past values is the variable's first value, also where no other entry is ever read.

    That is the tensor from outside that is read elsewhere as the variable, or else the only one in the list.
    Counter-example: a list that begins with one value that is no state (a start token) and of which no other place
    reads the newest entry; it counts as the first state.
    """
    for sites in growing(loop, twins):
        own = {variables.read(*site) for site in sites} - {None}
        if len(own) != 1:  # nothing carried, or states of several layers
            continue
        (variable,) = own
        assert variable is not None
        outside = _from_outside(loop, twins, sites)
        starts = _from_outside(loop, twins, {site for site in variables.sites() if variables.read(*site) == variable})
        first = set(outside) & set(starts) or (set(outside) if len(outside) == 1 and not starts else set())
        shapes = {out.shape for out in _made(loop, twins, variables, variable)}
        for number in first:
            given, places = outside[number]
            if given.shape in shapes:
                for site in places:
                    variables.join_read(variable, site)
        variables.lists.append({site for site in sites if variables.read(*site) is not None})


def _from_outside(loop: Loop, twins: Twins, sites: Set[Site]) -> dict[int, tuple[Tensor, set[Site]]]:
    """Id of each floating-point tensor from outside the loop that is read at these places → it, and where."""
    found: dict[int, tuple[Tensor, set[Site]]] = {}
    for i in twins.members:
        for label, op in loop.iterations[i]:
            for n, given in enumerate(op.inputs):
                if (label, n) in sites and given.is_floating_point() and id(given) not in twins.source:
                    found.setdefault(id(given), (given, set()))[1].add((label, n))
    return found


def _made(loop: Loop, twins: Twins, variables: Variables, variable: Item) -> Iterator[Tensor]:
    """The values of a variable that one iteration of each class makes."""
    for i in twins.members:
        for label, op in loop.iterations[i]:
            yield from (out for n, out in enumerate(op.outputs) if variables.made(label, n) == variable)


def _unite_taking_turns(loop: Loop, twins: Twins, variables: Variables) -> None:
    """Alternating branches (`h = f(h) if t % 2 else g(h)`) each read only what another one made: one variable.

    They are those of which every iteration makes exactly one, where nothing older than one iteration is read.
    Counter-example: two variables of one shape that are both made alternately, as h and c by two LSTMs, stay separate;
    the state then has both halves of each, of which only one is read at a step.
    """
    makes: dict[int, dict[Item, Tensor]] = {}
    for i in twins.members:
        found = makes[i] = {}
        for label, op in loop.iterations[i]:
            for n, out in enumerate(op.outputs):
                variable = variables.made(label, n)
                if variable is not None:
                    found[variable] = out
    by_turns = {one for one in variables.all() if any(one not in found for found in makes.values())}
    own = [[found[one] for one in by_turns & found.keys()] for found in makes.values()]
    if len(by_turns) > 1 and all(len(made) == 1 for made in own) and len({made[0].shape for made in own}) == 1:
        variables.unite(sorted(by_turns))
