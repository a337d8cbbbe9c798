"""Attention: thumbnails of all heads, the chosen ones large with tokens on both axes, as lines or as an alignment."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from PySide6.QtCore import Qt
from PySide6.QtGui import QKeyEvent

from inspector.analysis.attention.map_pyramid import How
from inspector.analysis.attention.map_source import MapChoice
from inspector.gui.panel.attention.drawing import (
    count_cells,
    levels_for,
    sides_of_alignment,
    unread_rows,
)
from inspector.gui.panel.attention.on_request import has_source, listed, quantity_of, signals_of
from inspector.gui.panel.attention.parts import ALONE
from inspector.gui.panel.attention.quantities import OF_HEADS, ON_REQUEST, of_attention
from inspector.gui.panel.attention.strip import AttentionStrip
from inspector.gui.panel.channel_choice import distinct
from inspector.gui.panel.key_moves import KEYS
from inspector.gui.panel.map_levels import SMALL
from inspector.gui.panel.map_options import ALIGNMENT, HEADS, LINES, VIEWS, lines_for
from inspector.gui.panel.pointing import plot_at
from inspector.gui.panel.registry import PANELS
from inspector.gui.state.cursor import Position
from inspector.gui.state.pins import pins_of
from inspector.gui.widgets.maps.atlas import Picture
from inspector.gui.widgets.maps.head_map import HeadMap
from inspector.gui.widgets.maps.heads_page import MOST_MAPS
from inspector.gui.widgets.maps.map_plot import DoubleClicks
from inspector.gui.widgets.maps.pin_cells import PinCells
from inspector.records import Channel

Head = tuple[str, int]
"""(place, number)"""
VERY_MANY = 64
"""Heads whose pictures take as long to be laid out and drawn as the rows of tabs do."""
FROM_ANSWER = "Gradients from the answer to the encoder"
FROM_ANSWER_TIP = "A backward pass for each step of the answer: how much its loss would change with each state it read"


@PANELS.register("attention")
class Attention(AttentionStrip):
    """(head, query, key) channels of kind "attention", and numbers of heads, by query or not."""

    tab_order, tab_row = 60, "upper"
    menu_group = "inside"
    key, title = "attention", "Attention"
    hint = "Attention maps of every head of every layer, and their entropy and distance. Needs a model with attention."
    shows = ("attention/maps", *OF_HEADS)
    extra = (*ON_REQUEST, "attention/queries_and_keys", "attention/relevance", "attention/rollout")
    needs_height = 210

    def concerns(self, name: str) -> bool:
        """Maps that could not be computed."""
        return of_attention(name)

    def build(self) -> None:
        """The parts, and what they do."""
        super().build()
        self._empty.offer(FROM_ANSWER, FROM_ANSWER_TIP, lambda: self.wanted.emit((ALONE,)))
        self.options.menu().aboutToShow.connect(self._say_where_there_is_no_room)
        for signal in (
            self.view.currentTextChanged,
            self.which.currentTextChanged,
            self.overview.changed,
            self.options.changed,
        ):
            signal.connect(self.redraw)
        self.options.picked.connect(self._ask_for)
        self.which.activated.connect(self._ask_for_pairs)
        self._timer.timeout.connect(self._read_more)
        self.atlas.chosen.connect(self._chosen)
        self.atlas.added.connect(self._added)
        self.atlas.opened.connect(self._opened)
        self.pin_cells: dict[HeadMap, PinCells] = {}
        self._double = DoubleClicks(self.figure, plot_at, self._double_clicked)

    # -- drawing

    def takes_long(self) -> bool:
        """Also where there are very many heads, each of which has a picture."""
        known = self.maps() if self.capture is not None else []
        return super().takes_long() or sum(map(self._heads, known)) >= VERY_MANY

    def _show_empty(self) -> None:
        """An encoder–decoder without attention has gradients over the same steps, on request."""
        super()._show_empty()
        possible = self.capture is not None and has_source(self.capture) and self.can_ask
        self._empty.action.setVisible(possible)

    def update_contents(self) -> None:
        """Thumbnails, then the chosen heads."""
        maps = self.maps()
        for widget in (self.which, self.overview.menu, self.overview.filter):
            widget.setEnabled(not self._alone)
        places = [] if self._alone else [(channel.place, self._heads(channel)) for channel in maps]
        self.overview.update(self.capture, self.frame, places, self.channels())
        self._fill_atlas(maps)
        self._share_room()
        assert self.capture is not None
        known, refused = self._known_beside(), signals_of(self.capture.refusals)
        without = () if has_source(self.capture) else (ALONE,)
        self.options.offer("beside", listed(known, offered=self.can_ask, refused=refused, without=without))
        self.chosen_signal = self.options.chosen("beside")
        self._offer_strips()
        self._draw_heads()

    def _known_beside(self) -> dict[str, str]:
        return distinct({one.signal: one.title for one in self.beside()})

    def _ask_for(self, choice: str, option: str) -> None:
        """What was chosen to be drawn beside a map and is not there yet is computed, and drawn when it is."""
        wanted = quantity_of(option, self._known_beside()) if choice == "beside" else ""
        if wanted and self.can_ask and (self.capture is None or option not in signals_of(self.capture.refusals)):
            self.wanted.emit((wanted,))

    def _fill_atlas(self, maps: list[Channel]) -> None:
        names = {channel.place: channel.name for channel in maps}
        assert self.capture is not None
        weights = sum(int(math.prod(self.capture.extent(channel.name, self.frame))) for channel in maps)

        def picture(place: str, head: int) -> Picture | None:
            choice = MapChoice(((names[place], head),), self.frame, signed=self.signed(names[place]))
            return self.levels.thumbnail(self.capture, choice, at_once=weights <= SMALL)

        self.overview.fill(self.atlas, picture, self._gaps_of_all(maps))
        self._poll()

    def _draw_heads(self) -> None:
        here = self.here
        if here not in self.picked:
            self.picked = [here]
        self._select()
        choices = self.choices()
        lines = self.view.currentText() == LINES
        drawn = ([choice.heads for _, choice in choices], self.view.currentText())
        anew, self._drawn_heads = drawn != self._drawn_heads, drawn
        made = len(self.page.maps)
        self._alignments.clear()
        self.page.need(len(choices))
        if len(self.page.maps) != made:
            self._list_plots()
            super()._show_fixed(self.looking.cursor.fixed)
        self.page.as_lines, self.page.with_maps, self.page.profiles = lines, bool(choices), self.options.on("profiles")
        self.options.allow("without_first", not self.differs)
        if lines and choices:
            self._draw_lines(choices[0][1])
        else:
            for one, (head, choice) in zip(self.page.shown, choices, strict=False):
                self._draw_map(one, head, choice, anew=anew)
        self._draw_strip(here[1])
        self.page.place()
        self._poll()

    def _say_where_there_is_no_room(self) -> None:
        why = self.page.no_profiles
        self.options.allow("profiles", not why, why)

    def _select(self) -> None:
        """Frame the chosen heads in the atlas."""
        places = [channel.place for channel in self.maps()]
        also = [(places.index(place), head) for place, head in self.picked if place in places]
        if self.place() in places:
            self.atlas.select(places.index(self.place()), self.head(), also)

    def _draw_lines(self, choice: MapChoice) -> None:
        source = self.levels.source(self.capture, choice)
        count, of_each = lines_for(self.options.chosen("lines"), source.shape[0])
        self.lines.set_count(count, of_each=of_each)
        rows = source.rows(0, source.shape[0]) if source.shape[0] * source.shape[1] <= SMALL else np.zeros((0, 0))
        self.lines.set_weights(rows, self._query_names(source.shape[0]), self._key_names(choice, source.shape[1]))

    def _draw_map(self, one: HeadMap, head: Head, choice: MapChoice, *, anew: bool = False) -> None:
        assert self.capture is not None
        pyramid = self.levels.pyramid(self.capture, choice)
        how: How = "mean" if self.options.chosen("cells") == "mean" else "maximum"
        gaps = self._gaps(choice) | unread_rows(pyramid)
        levels = levels_for(self.capture, choice, pyramid, log=self.options.on("log"))
        nan, infinite, _ = pyramid.special
        queries, keys = pyramid.shape
        one.name(self._query_names(queries), self._key_names(choice, keys))
        one.show_map(
            self.levels.look(self.capture, choice, how), (keys, queries), levels,
            self.capture.channel(choice.heads[0][0], self.frame).unit,
            revision=(self.levels.revision(self.capture, choice), pyramid.rows_done, how, self.levels.details),
            special=(nan, infinite), gaps=gaps, anew=anew,
        )  # fmt: skip
        count_cells(one.bar, pyramid, how)
        one.title = f"{head[0]}:attention head {head[1]}"
        self._draw_alignment(one, choice)

    def _draw_alignment(self, one: HeadMap, choice: MapChoice) -> None:
        """Path, coverage and focus of an alignment, which differences of two runs are not; the words of the axes."""
        aligned = self.view.currentText() == ALIGNMENT
        one.plot.label(*(("target (query)", "source (key)") if aligned else ("query", "key")))
        weights = not choice.signed and not self._alone
        found = self.levels.alignment(self.capture, choice) if aligned and weights else None
        one.plot.show_path(found.path if found is not None else None)
        self._alignments.pop(one, None)
        if found is not None:
            self._alignments[one] = found
            one.show_profiles(*sides_of_alignment(found, self.options.chosen("focus")))

    # -- what is read beside the window

    def _poll(self) -> None:
        if self.levels.reader.busy and not self._timer.isActive():
            self._timer.start()

    def _read_more(self) -> None:
        """More of a large map, or more thumbnails, are there."""
        if not self.levels.reader.busy:
            self._timer.stop()
        if self.levels.reader.news() and self.state == "figure" and not self.over.on and self.capture is not None:
            self._fill_atlas(self.maps())
            self._draw_heads()
            self._mark(self.looking.position)

    def complete(self) -> None:
        """Wait for everything that is being read: a figure in a file shows the whole."""
        self.levels.reader.wait()
        self._timer.stop()
        self.redraw()

    # -- cursor

    def _chosen(self, layer: int, head: int) -> None:
        """Another head; a group of several is left."""
        place = self.maps()[layer].place
        if (place, head) not in self.picked or len(self.picked) > 1:
            self.picked = [(place, head)]
        self.looking.move(place=place, head=head)
        if self._drawn_heads is not None and [c.heads for _, c in self.choices()] != self._drawn_heads[0]:
            self.redraw()

    def _point_at(self, figure: Any, point: Any) -> Any:
        """The plot under a point, for the menu there: over a thumbnail its head is the chosen one, so that the menu is
        of that head; several that are side by side stay."""
        at = self.atlas.mapFromScene(figure.mapToScene(point))
        key = self.atlas.head_at(at.x(), at.y()) if figure is self.figure and self.atlas.isVisible() else None
        if key is not None and self.atlas.boundingRect().contains(at):
            one = (self.maps()[key[0]].place, key[1])
            if one in self.picked:
                self.looking.move(place=one[0], head=one[1])
            else:
                self._chosen(*key)
        return super()._point_at(figure, point)

    def _added(self, layer: int, head: int) -> None:
        """One more head beside the others, or one less."""
        one = (self.maps()[layer].place, head)
        if one in self.picked and len(self.picked) > 1:
            self.picked.remove(one)
            if one == self.here:
                self.looking.move(place=self.picked[-1][0], head=self.picked[-1][1])
        elif one not in self.picked:
            self.picked = [*self.picked, one][-MOST_MAPS:] if self._beside else [*self.picked, one]
            if self.here not in self.picked:
                self.looking.move(place=one[0], head=one[1])
        self.redraw()

    def _opened(self, layer: int, head: int) -> None:
        """A head of the overview is drawn large."""
        self._chosen(layer, head)
        if self.view.currentText() == HEADS:
            self.view.setCurrentText(VIEWS[0])

    def follow(self, new: Position, old: Position) -> None:
        """Another head is drawn large; the query and key are marked."""
        if self.here not in self.picked:  # drawing again would reset the zoom of a map
            self._offer_strips()
            self._draw_heads()
        elif (new.place, new.head) != (old.place, old.head):
            self._select()
            self._offer_strips()
            self._draw_strip(self.head())
        self._mark(new)

    def _mark(self, at: Position) -> None:
        """The cursor in maps, lines and profiles."""
        if self._of_pair:
            self._draw_pair(at)
        elif self._against:
            self._draw_against(at)
        self.lines.set_cursor(at.step, at.key)
        for one, (head, choice) in zip(self.page.shown, self.choices(), strict=False):
            one.show_cursor(at.step, at.key)
            if self.view.currentText() not in (LINES, HEADS) and one not in self._alignments and self.page.count == 1:
                one.show_profiles(*self._profiles(choice, at))
            shorter = self._heading(one, head, choice, at, short=True) if one in self._alignments else ""
            one.set_heading(self._heading(one, head, choice, at), shorter)

    def show_pin_cells(self) -> None:
        """The pinned queries and keys, in the map of their head."""
        if self.capture is None or self.state != "figure" or self.over.on:
            return
        for one, (head, _) in zip(self.page.shown, self.choices(), strict=False):
            at = [(pin, pin.position) for pin in pins_of(self.looking).all]
            found = [
                (where.key, where.at(self.looking.axis), pin.number) for pin, where in at
                if (where.place, where.head or 0) == head and where.key is not None
            ]  # fmt: skip
            cells = [(key, step, number) for key, step, number in found if key is not None and step is not None]
            self.pin_cells.setdefault(one, PinCells(one.plot)).show(cells, self.theme)

    def pointed(self, plot: Any, x: float, y: float) -> None:
        """Over a map or the lines: query and key, down and across; over the strip and a profile: one of them."""
        self._move_to(plot, x, y)

    def _show_fixed(self, fixed: bool) -> None:
        super()._show_fixed(fixed)
        if self.state == "figure" and not self.over.on:
            self._mark(self.looking.position)

    def _move_to(self, plot: Any, x: float, y: float) -> None:
        if plot is self.strip:
            self.looking.move(step=round(x))
            return
        shown = next((one for one in self.page.shown if plot in (one.plot, one.below, one.beside)), None)
        heads = {one: head for one, (head, _) in zip(self.page.shown, self.choices(), strict=False)}
        head = heads.get(shown, self.here) if shown is not None else self.here
        channel = self._map(head[0])
        if channel is None or self.capture is None:
            return
        changes: dict[str, Any] = {"place": head[0], "head": head[1]}
        queries, keys = self._shape(channel)
        across, down = plot is not getattr(shown, "beside", None), plot is not getattr(shown, "below", None)
        for name, at, count, meant in (("step", y, queries, down), ("key", x, keys, across)):
            if meant and not math.isnan(at):
                changes[name] = min(max(0, round(at)), count - 1)
        self.looking.move(**changes)

    def _double_clicked(self, plot: Any) -> None:
        if plot is self.lines or any(plot is one.plot for one in self.page.shown):
            self.show_whole()

    def show_whole(self) -> None:
        """Nothing is zoomed."""
        if self.over.on:
            self.redraw()
            return
        self.page.show_whole()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """With Ctrl, left and right move by keys (with Shift too by ten); without, by queries as everywhere. Ctrl+0
        shows the whole map."""
        key, modifiers = Qt.Key(event.key()), event.modifiers()
        control = bool(modifiers & Qt.KeyboardModifier.ControlModifier)
        channel = self._map()
        if key == Qt.Key.Key_0 and control:
            self.show_whole()
        elif key in KEYS and control and channel is not None:
            assert self.capture is not None
            many = 10 if modifiers & Qt.KeyboardModifier.ShiftModifier else 1
            last = self._shape(channel)[1] - 1
            now = self.looking.position.key
            self.looking.move(key=0 if now is None else min(max(0, now + KEYS[key] * many), last))
        else:
            super().keyPressEvent(event)

    def move_by(self, rows: int) -> None:
        """Up and down: the next head."""
        self.looking.move(head=max(0, self.head() + rows))
