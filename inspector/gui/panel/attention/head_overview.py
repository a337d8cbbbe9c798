"""The thumbnails of all heads: which are shown, in which groups and order, and what is written below each."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QLineEdit

from inspector.analysis.attention.arrangement import LAYER, TOGETHER, ConditionError, Group, arranged
from inspector.analysis.attention.head_table import HeadTable, head_table, of_heads
from inspector.analysis.attention.tables import SCORE, number_of
from inspector.gui.widgets.gaps import Gaps
from inspector.gui.widgets.maps.atlas import Atlas, Picture, Shown
from inspector.gui.widgets.numbers import short
from inspector.gui.widgets.option_menu import OptionMenu
from inspector.gui.widgets.plain_text import clean, tooltip
from inspector.records import Channel

FILTER_WIDTH = 120
NO_TYPE = "none"
HOW = (
    "Only heads that meet all of these conditions, separated by commas: entropy > 2, layer = 0, head < 4, or a word of "
    "a type or place"
)
GapsOf = dict[tuple[int, int], tuple[Gaps, tuple[int, int]]]


class HeadOverview(QObject):
    """The menu *Heads* and the filter beside it; `changed` when either is. Keys come from the channels of heads."""

    changed = Signal()

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self.menu = OptionMenu("Heads", "Order, groups and numbers of the heads")
        self.menu.add_choice("sort", "Sort by", {"": "as in the model"})
        self.menu.add_switch("rising", "Smallest first")
        self.menu.add_choice("group", "Group by", {LAYER: "layer", TOGETHER: "nothing"})
        self.menu.changed.connect(self.changed)
        self.filter = QLineEdit()
        self.filter.setPlaceholderText("Filter heads")
        self.filter.setAccessibleName("Filter heads")
        self.filter.setToolTip(tooltip(HOW))
        self.filter.setMaximumWidth(FILTER_WIDTH)
        self.filter.setClearButtonEnabled(True)
        self.filter.textChanged.connect(self.changed)
        self.table = HeadTable()
        self.groups: tuple[Group, ...] = ()
        self._known: tuple[Any, HeadTable] = (None, HeadTable())

    def forget(self) -> None:
        """Another capture."""
        self._known = (None, HeadTable())

    @property
    def sort(self) -> str:
        """The key by which heads are sorted; "" for as they are."""
        return self.menu.chosen("sort")

    def update(self, view: Any, frame: int, places: Sequence[tuple[str, int]], channels: Sequence[Channel]) -> None:
        """Read the numbers of the heads where there are new ones, and arrange the heads."""
        numbers = [one for one in channels if of_heads(one)]
        seen = (id(view), frame, tuple(places), tuple((one.name, view.revision(one.name, frame)) for one in numbers))
        if self._known[0] != seen:
            self._known = (seen, head_table(view, frame, places, numbers))
        self.table = self._known[1]
        self.menu.offer("sort", {"": "as in the model", **self.table.keys})
        self.menu.offer("group", {LAYER: "layer", TOGETHER: "nothing", **self.table.words, **self.table.keys})
        self._arrange()

    def _arrange(self) -> None:
        """The groups; where the filter cannot be read all heads, and its tooltip says why."""
        how = {
            "sort": self.sort, "descending": not self.menu.on("rising"), "group": self.menu.chosen("group"),
        }  # fmt: skip
        try:
            self.groups, self.problem = arranged(self.table, text=self.filter.text(), **how), ""  # type: ignore[arg-type]
        except ConditionError as problem:
            self.groups, self.problem = arranged(self.table, **how), str(problem)  # type: ignore[arg-type]
        self.filter.setToolTip(tooltip(self.problem or HOW))

    def fill(self, atlas: Atlas, picture: Callable[[str, int], Picture | None], gaps: GapsOf) -> None:
        """Show the heads in an atlas."""
        names = {head.layer: head.place for head in self.table.heads}
        shown = [
            (
                group.title,
                [Shown((one.layer, one.head), picture(one.place, one.head), self._caption(one)) for one in group.heads],
            )
            for group in self.groups
        ]
        atlas.set_heads(
            shown,
            [names[layer] for layer in sorted(names)],
            gaps,
            self._note(),
            layered=self.menu.chosen("group") == LAYER,
        )

    def _caption(self, head: Any) -> str:
        """The number by which heads are sorted; where they are not in their places, or some are left out, also which
        head it is."""
        number = self._number(head)
        own = f"{head.layer}.{head.head}"
        if self.menu.chosen("group") == LAYER and not self._left_out:
            own = str(head.head) if self.sort else ""
        return "  ".join(filter(None, (own, number)))

    def _number(self, head: Any) -> str:
        """The number by which heads are sorted: "none" of the type of a head that is of no type, as its name is, and a
        dash where a head has none."""
        value = number_of(head.numbers, self.sort) if self.sort in head.numbers else ""
        if not isinstance(value, str):
            return "NaN" if math.isnan(value) else short(value, 2)
        return "" if not self.sort else NO_TYPE if self.sort == SCORE and self.sort in head.numbers else "—"

    @property
    def _left_out(self) -> int:
        """How many heads the filter leaves out."""
        return len(self.table.heads) - sum(len(group.heads) for group in self.groups)

    def _note(self) -> str:
        """What is sorted and left out, or why the filter cannot be read."""
        if self.problem:
            return f"not filtered: {clean(self.problem)}"
        sorted_by = f"sorted by {clean(self.table.keys[self.sort])}" if self.sort in self.table.keys else ""
        count = len(self.table.heads)
        left_out = f"{count - self._left_out} of {count} heads" if self._left_out else ""
        return "  ·  ".join(filter(None, (sorted_by, left_out)))
