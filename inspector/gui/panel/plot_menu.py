"""The menu of a panel: its numbers, its picture, the curves and colours of its plots, what they show. By mouse at the
place under it, by keyboard (Menu, Shift+F10) at the cursor."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from textwrap import shorten
from typing import Any

from PySide6.QtGui import QAction, QActionGroup, QGuiApplication
from PySide6.QtWidgets import QMenu

from inspector.gui.panel.colours import colours_of
from inspector.gui.state.pins import pins_of
from inspector.gui.widgets.images.colour_choice import AS_USUAL, IN_VIEW, OWN, RANGES, ColourChoice, maps_for
from inspector.gui.widgets.images.quantise import Levels
from inspector.gui.widgets.maps.colourbar import ColourBar
from inspector.gui.widgets.plain_text import clean
from inspector.gui.widgets.plots.legend import Legend, legends_in
from inspector.gui.widgets.theme import MAPS
from inspector.records.edits import HEAD

MOST_NUMBERS, TITLE = 12, 44
NUMBER = re.compile(r"[-−+]?(?:\d[\d,]*\.?\d*(?:e[+-]?\d+)?|∞|NaN)")
WORDS = {
    "sequential": "Colours", "diverging": "Colours about 0", "log": "Colours by the logarithm",
    "ratio": "Colours of ratios", "attention": "Colours of attention",
}  # fmt: skip

FULL_OF_ALL = "Full, of all maps here: the same numbers in each"


def text_of(words: str) -> str:
    """Text from outside as the text of an action, in which "&" is no mnemonic."""
    return clean(words).replace("&", "&&")


class PlotMenu(QMenu):
    """Of a Panel: filled for one of its plots, or None where there is none under the mouse."""

    def __init__(self, panel: Any, plot: Any = None) -> None:
        super().__init__(panel)
        self.panel, self.plot = panel, plot
        self.setObjectName("plotmenu")
        self.setAccessibleName(f"Menu of {panel.title}")
        drawn = panel.state == "figure"
        if drawn:
            self._numbers()
            self._picture()
            self.addSeparator()
            self._place()
            self._parts()
            self.addSeparator()
        self._end(drawn)

    def _add(self, text: str, do: Any, menu: QMenu | None = None) -> QAction:
        action = (menu or self).addAction(text)
        action.triggered.connect(lambda _checked=False: do())
        return action

    def _checked(self, menu: QMenu, text: str, on: bool, do: Any, group: QActionGroup | None = None) -> None:
        action = self._add(text, do, menu)
        action.setCheckable(True)
        action.setChecked(on)
        if group is not None:
            group.addAction(action)

    # -- numbers and pictures

    def _numbers(self) -> None:
        """The number under the cursor, with all digits; of several each, and all as a table."""
        rows = self.panel.labelled_readout()
        if len(rows) == 1:
            self._copy_of(rows[0], self, f"Copy {rows[0][1]}")
        elif rows:
            menu = self.addMenu("Copy &number")
            for row in rows[:MOST_NUMBERS]:
                self._copy_of(row, menu, f"{row[0]}   {row[1]}")
            menu.addSeparator()
            every = "\n".join(f"{what}\t{value}" for what, value in rows)
            self._add(f"All {len(rows)}, as a table", partial(copy_text, every), menu)

    def _copy_of(self, row: tuple[str, str], menu: QMenu, words: str) -> None:
        self._add(text_of(words), partial(copy_text, plain_number(row[1])), menu)

    def _picture(self) -> None:
        for text, what in (("&Copy picture", "copy"), ("&Save picture…", "save"), ("Save n&umbers…", "numbers")):
            self._add(text, partial(self.panel.picturing.emit, what))

    # -- what is under the mouse

    def _place(self) -> None:
        """Pin and edit."""
        panel = self.panel
        position = panel.looking.position
        if position.steps:
            self._add("&Pin here", partial(pins_of(panel.looking).add, panel.looking.cursor.position))
        channel = None if self.plot is None else panel.clampable(self.plot)
        if channel is not None and position.unit is not None:
            words = f"Edit this unit of the {channel.title} from here…"
            self._add(text_of(words), partial(panel.editing.emit, channel.name))
        head = panel.head_here()
        if head is not None:
            words = f"Ablate head {head[1]} of {shorten(head[0], TITLE)}…"
            self._add(text_of(words), partial(panel.editing.emit, f"{head[0]}:{HEAD}"))

    # -- curves, colours, sides

    def _parts(self) -> None:
        scene = self.panel.scene
        legends = [one for one in legends_in(scene) if any(map(one.can_switch, range(len(one.entries))))]
        for legend in legends:
            self._curves(legend, alone=len(legends) == 1)
        bars = [bar for bar in scene.items() if isinstance(bar, ColourBar) and bar.isVisible()]
        for scale in MAPS:
            if of_scale := [bar for bar in bars if bar.given.scale == scale]:
                self._colours(scale, of_scale)
        if self.panel.squares():
            self._checked(self, "&Equal sides", self.panel.equal_sides, self.panel.turn_sides)

    def _curves(self, legend: Legend, *, alone: bool) -> None:
        """Its entries, under the title of its plot where there are several legends."""
        lines = getattr(legend.plot.titleLabel, "lines", ())
        title = shorten(lines[0], TITLE, placeholder=" …") if lines and not alone else ""
        menu = self.addMenu(text_of(f"Curves of {title}") if title else "Curves")
        one_alone = QMenu("Alone", menu)
        for n, (_, name) in enumerate(legend.entries):
            if legend.can_switch(n):
                self._checked(menu, text_of(name), not legend.is_hidden(n), partial(legend.switch, n))
                self._add(text_of(name), partial(legend.switch, n, alone=True), one_alone)
        menu.addSeparator()
        menu.addMenu(one_alone)
        self._add("All", legend.show_every, menu)

    def _colours(self, scale: str, bars: Sequence[ColourBar]) -> None:
        """Map and range, for all panels of this kind."""
        store, key, bar = colours_of(self.panel.looking), self.panel.key, bars[-1]
        now, menu = store.of(key, scale), self.addMenu(WORDS[scale])

        def choose(choice: ColourChoice) -> None:
            store.choose(key, scale, choice)

        maps = QActionGroup(menu)
        for name, words in maps_for(scale).items():
            usual = name == MAPS[scale]
            words = f"{words} (as usual)" if usual else words
            mine = "" if usual else name
            self._checked(menu, words, now.colours == mine, partial(choose, replace(now, colours=mine)), maps)
        menu.addSeparator()
        spans = QActionGroup(menu)
        for span, words in RANGES.items():
            known = span != "robust" or bar.given.robust is not None
            known &= span != "full" or bar.given.full is not None
            known &= span != IN_VIEW or any(one.map is not None for one in bars)
            if known:
                self._checked(menu, words, now.span == span, partial(choose, replace(now, span=span)), spans)
        whole = full_of_all([one.given for one in bars if one.unit == bar.unit])
        every = replace(now, span=OWN, low=whole[0], high=whole[1]) if whole is not None else None
        if every is not None:
            self._checked(menu, FULL_OF_ALL, now == every, partial(choose, every), spans)
        self._checked(
            menu, "Own range…", now.span == OWN and now != every, partial(self._ask_range, bar, choose, now), spans
        )
        if here := [one for one in bars if one.map is not None]:
            own = next((one for one in here if one.map.getViewBox() is getattr(self.plot, "vb", None)), here[-1])
            self._add("Own range: what is in view now", partial(own.keep_view, now), menu)
        menu.addSeparator()
        marked = replace(now, marked=not now.marked)
        self._checked(menu, "Mark what is beyond", now.marked, partial(choose, marked))
        self._add("Reset", partial(choose, AS_USUAL), menu).setEnabled(now != AS_USUAL)

    def _ask_range(self, bar: ColourBar, choose: Any, now: ColourChoice) -> None:
        levels = bar.levels
        low, high = ((10**end if levels.log else end) for end in (levels.low, levels.high))

        def then(low: float, high: float) -> None:
            choose(replace(now, span=OWN, low=low, high=high))

        self.panel.ranging.emit((low, high, levels.log, then))

    # -- the view, and what it is

    def _end(self, drawn: bool) -> None:
        if drawn:
            self._add("&Reset view\tCtrl+0", self.panel.reset_view)
        self._add(
            "&What is this?", partial(self.panel.explaining.emit, self.panel.title, self.panel.explained(self.plot))
        )


def full_of_all(given: Sequence[Levels]) -> tuple[float, float] | None:
    """From the least to the largest number of several maps of one scale, so that their colours can be compared; None
    where there are not several of which both are known."""
    found = [(levels.full, levels.log) for levels in given if levels.full is not None]
    if len(given) < 2 or len(found) < len(given) or len({log for _, log in found}) > 1:
        return None
    low, high = min(full[0] for full, _ in found), max(full[1] for full, _ in found)
    return (10.0**low, 10.0**high) if found[0][1] else (low, high)


def plain_number(text: str) -> str:
    """The number of a text, as programs read it, without its unit; a text without one as it is."""
    found = NUMBER.match(text.strip())
    if found is None:
        return text
    return found[0].replace("−", "-").replace(",", "").replace("∞", "inf").replace("NaN", "nan")


def copy_text(text: str) -> None:
    """Put a text on the clipboard."""
    QGuiApplication.clipboard().setText(text)
