"""How a capture is shown: its growth, the chosen frame, the steps in view, the numbers under the cursor."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QTimer, Slot

from inspector.capture import Difference, Pair, Side, notes
from inspector.gui.panel.colours import colours_of
from inspector.gui.panel.drawn_when_seen import drawn_once
from inspector.gui.state.cursor import Position
from inspector.gui.state.followed_log import as_log
from inspector.gui.state.needed import needed_for
from inspector.gui.state.player import Player
from inspector.gui.state.session import Session
from inspector.gui.state.settings import Settings
from inspector.gui.state.step_axes import places_along
from inspector.gui.widgets.plain_text import clean
from inspector.gui.widgets.theme import Theme
from inspector.gui.window.bars.frame_bar import DIFFERENCE
from inspector.gui.window.docking.docks import ON_OCCASION
from inspector.gui.window.holding import Holding
from inspector.gui.window.keyboard.focus_ring import FocusFollower
from inspector.gui.window.keyboard.stops import Stops
from inspector.gui.window.parts import Parts
from inspector.gui.window.shown_comparison import Comparing
from inspector.gui.window.what_is_shown import BETWEEN, status_of, title_of
from inspector.gui.window.where_shown import OVERVIEW, panel_for
from inspector.records import STEP_DOMAIN, WEIGHTS, Place, split_request

if TYPE_CHECKING:
    from inspector.gui.panel.signals import Lead

OWN_PANELS = ("spike", WEIGHTS)
"""Panels of captures of which nothing else is shown, by what their beginning says."""
READOUT_MS = 60
ON = "on"
NO_STEPS = "There are no steps to play yet."
AROUND = 10.0
"""Iterations before and after one that are shown with it."""


class Showing(Parts):
    """A window that shows the session's capture and follows the cursor."""

    def __init__(self, session: Session, settings: Settings) -> None:
        super().__init__(session, settings)
        self.reader = QTimer(self, interval=READOUT_MS, singleShot=True)
        """Started when the numbers under the cursor may have changed; they are read once for many changes."""
        self.reader.timeout.connect(self._read_out)
        self._places: tuple[Place, ...] = ()
        """The tree of the model that is shown: a new run of the same model keeps the cursor position."""
        self._alone = ""
        """Whether Training was given the room of all panels."""
        self.player = Player(self.looking, self)
        self.stops, self.focus_follower = Stops(self), FocusFollower(self)
        self.comparing = Comparing(self, self.show_frame)
        session.background.looked_at = self.looked_at
        self.looking.moved.connect(self._moved)
        self.holding = Holding(self, self.show_notes, self.read_soon)
        self.frames.chosen.connect(self._choose_frame)
        self.timeline.chosen.connect(self.frames.choose)
        self.timeline.following.connect(self.frames.follow)
        self.timeline.ranged.connect(self._zoom_training)
        self.timeline.whole.connect(self._whole_training)
        self.comparison.first.opened.connect(self.show_iteration)
        self.tree.place_chosen.connect(lambda place: self.looking.move(place=self._captured_place(place)))

    def apply_theme(self, theme: Theme) -> None:
        """Other colours everywhere."""
        super().apply_theme(theme)
        self.comparing.beside.set_theme(theme)

    # -- the capture

    def new_capture(self) -> None:
        """Another capture is shown, or none."""
        capture = self.session.capture
        for panel in self.panels.made.values():
            panel.expect(capture)
        places = capture.start.places if capture is not None else ()
        kept = bool(places) and places == self._places
        another = {} if kept else {"place": "", "unit": None, "head": None, "key": None}
        if another:
            self.holding.release()
            colours_of(self.looking).forget_ranges()
        self._places = places
        self.looking.move(frame=-1, **another, steps=dict.fromkeys(self.looking.position.elsewhere))
        (self.steps.forget if another else self.steps.keep)()
        self.steps.set_lengths({})
        self.sequences.forget()
        self.frames.begin(another=bool(another))
        weights = capture is not None and WEIGHTS in capture.start.meta
        self._show_alone("training" if as_log(capture) is not None else WEIGHTS if weights else "")
        self.comparing.another(capture)
        self._say_what_is_shown()
        for key in OWN_PANELS:
            if capture is not None and key in capture.start.meta and key in self.docks:
                self.docking.show_panel(key)
        self.panels.source = capture
        with drawn_once(self.panels.made.values()):
            for panel in self.panels.made.values():
                panel.set_capture(capture)
            self.say_what_was_computed()
            self.say_what_remains()
            self.grown(frozenset(capture.channels) if capture is not None else frozenset())
            if self.comparing.other.capture is not None:
                self.show_frame()

    def _show_alone(self, key: str) -> None:
        """A log and a list of weights have nothing for the other panels: the panel `key` gets their room (of a log the
        overview first), until something else is shown; "": nothing is alone."""
        if self._alone and key != self._alone:
            if self.docking.enlarged == self._alone:
                self.docking.restore()
            if self._alone in ON_OCCASION:
                self.docks[self._alone].hide()
            self._alone = ""
        if not key or key not in self.docks:
            return
        if key != WEIGHTS:
            self.show_overview()
        if (key == WEIGHTS or not self.opens_on_overview) and not self.docking.enlarged:
            self.docking.show_panel(key)
            self.docking.enlarge(key)
        self._alone = key

    def _say_what_is_shown(self) -> None:
        """The title and the status row name what is shown; of what is named too often nothing is drawn again."""
        capture = self.session.capture
        if capture is None:
            return
        against = f"{BETWEEN}compared with {other}" if (other := self.comparing.named) else ""
        title = f"{clean(title_of(capture, self.frames.current) + against)} — inspector"
        if title != self.windowTitle():
            self.setWindowTitle(title)
        self.status.show_what(status_of(capture, self.frames.current))

    def show_opened(self) -> None:
        """A capture was opened: its panels are drawn one after the other, with events between them."""
        for place, panel in enumerate(panel for panel in self.panels.made.values() if panel.on_screen):
            panel.draw_in_turn(place)
        self.new_capture()
        self.show_overview()
        self.docking.label_tabs()

    def show_overview(self) -> None:
        """The overview in front: the first thing that is seen of what was opened."""
        capture = self.session.capture
        wanted = self.opens_on_overview and OVERVIEW in self.docks
        if wanted and capture is not None and not any(key in capture.start.meta for key in OWN_PANELS):
            self.docking.show_panel(OVERVIEW)

    @property
    def opens_on_overview(self) -> bool:
        """Whether what is opened is shown on its overview first; else the panels stay as they are. Remembered."""
        return self.settings.text("overview", ON) == ON

    def choose_overview(self, *, on: bool) -> None:
        """Open captures and logs on their overview, or not."""
        self.settings.set_text("overview", ON if on else "off")

    def say_what_was_computed(self) -> None:
        """Tell the panels that offer to compute more whether it was computed."""
        for panel in self.panels.made.values():
            panel.say_computed(self.has_computed(panel.extra))

    def say_what_remains(self) -> None:
        """Tell the panels what the run that is shown has not computed of theirs."""
        stop = self.session.capture.stop if self.session.capture is not None else None
        self.panels.left = frozenset(split_request(request)[0] for request in (stop.left if stop is not None else ()))
        made = list(self.panels.made.values())
        rests = self.session.background.rests([((*panel.shows, *panel.extra), panel.extra) for panel in made])
        needed = needed_for(self.session)
        question = tuple(split_request(request)[0] for request in self.session.question)
        broken = self.session.shown.broken_off
        for panel, rest in zip(made, rests, strict=True):
            first = needed if needed.why else rest.needed
            panel.say_remaining(replace(rest, needed=first, question=question, broken_off=broken))
        usable = not needed.why or self.session.opening is not None or bool(self.session.subject)
        self.compute_menu.say_needed(needed, usable=usable)

    def looked_at(self) -> set[str]:
        """Keys of the quantities that the panels on screen show."""
        kinds = self.panels.kinds
        return {quantity for key in self.docking.seen if key in kinds for quantity in kinds[key].shows}

    def has_computed(self, keys: Collection[str]) -> bool:
        """Whether some quantities, one at least, were computed for the run that is shown."""
        return bool(keys) and set(keys) <= set(self.session.computed)

    def grown(self, changed: frozenset[str]) -> None:
        """Some channels of the capture have more data."""
        capture = self.session.capture
        if capture is None:
            return
        lengths = self.comparing.lengths(capture)
        self.steps.set_lengths(lengths, growing=capture.stop is None)
        self.looking.set_lengths(lengths)
        before = self.frames.current
        self.runs.show_capture(capture)
        self.frames.show_capture(capture)
        self.frames.plain.setVisible(self.session.can_run_again)
        if self.frames.current != before:
            self._choose_frame(self.frames.current)
        elif self.comparing.pair is not None and self.comparing.source(capture, before) is not self.panels.source:
            self._choose_frame(before)  # tokens came that are to be aligned
        self.comparing.beside.refresh(changed)
        self.comparing.more()
        self.tree.show_capture(capture)
        self._show_timeline()
        self._say_what_is_shown()
        self.sequences.grown(self.comparing.seen(capture), lengths, changed)
        self.sequences.mark(notes(capture))
        for panel in self.panels.made.values():
            panel.refresh(changed)
        self.reader.start()

    @Slot(int)
    def _choose_frame(self, frame: int) -> None:
        capture = self.session.capture
        if capture is None:
            return
        if frame == DIFFERENCE:
            self.comparing.end()
            shown: Any = Difference(capture, capture.frames[0].index, capture.frames[1].index)
        else:
            shown = self.comparing.source(capture, frame) or capture
        self._show_source(shown)
        self.looking.move(frame=frame if frame >= 0 else -1)
        self._say_what_is_shown()
        self.sequences.show_difference(shown if isinstance(shown, Pair) else None)
        self.comparing.settle()
        self._show_timeline()
        self.reader.start()

    def _show_source(self, shown: Any) -> None:
        """The panels show a capture, a comparison, or one of two sides; a capture's frames follow the cursor."""
        self.panels.source = shown
        for panel in self.panels.made.values():
            if panel.source is not shown and any(isinstance(one, (Pair, Side)) for one in (shown, panel.source)):
                panel.set_capture(shown)

    def show_frame(self, ending: bool = False) -> None:
        """Show the chosen frame again: compared with another one, with another one than before, or no longer."""
        capture = self.session.capture
        if capture is None:
            return
        if ending:
            self._show_source(capture)
            self._say_what_is_shown()
        else:
            self._choose_frame(self.frames.current)
        lengths = self.comparing.lengths(capture)
        self.steps.set_lengths(lengths)
        self.looking.set_lengths(lengths)
        self.sequences.grown(self.comparing.seen(capture), lengths, frozenset(capture.channels))
        self.sequences.show_difference(self.panels.source if isinstance(self.panels.source, Pair) else None)
        self.docking.label_tabs()
        self.reader.start()

    # -- the timeline

    def _show_timeline(self) -> None:
        """The timeline with the frame that is shown."""
        capture, shown = self.session.capture, self.frames.current
        newest = capture.frames[-1].index if capture is not None and capture.frames else -1
        self.timeline.show_capture(capture, shown if shown >= 0 else newest, follow=self.frames.following)

    @Slot(float, float)
    def _zoom_training(self, low: float, high: float) -> None:
        """A range was chosen on the timeline."""
        panel = self.panels.get("training")
        if panel is not None and hasattr(panel, "show_range"):
            panel.show_range(low, high)

    @Slot(float, str)
    def show_iteration(self, iteration: float, place: str) -> None:
        """Show a part of the model, and the first frame that is not before an iteration; without frames its curves."""
        capture = self.session.capture
        if capture is None:
            return
        if place:
            self.looking.move(place=self._captured_place(place))
        if math.isnan(iteration):
            return
        later = [frame for frame in capture.frames if frame.step is not None and frame.step >= iteration]
        if later and len(capture.frames) > 1:
            assert later[0].step is not None
            self.comparing.choose_step(later[0].step)
            self.frames.choose(later[0].index)
        else:
            self.docking.show_panel("training")
            self._zoom_training(iteration - AROUND, iteration + AROUND)

    # -- where panels lead

    @Slot(object)
    def go_to(self, lead: Lead) -> None:
        """Show a place in the panel that draws it: frame, layer, and the steps or iterations in view."""
        capture = self.session.capture
        if capture is None:
            return
        if lead.frame >= 0 and any(one.index == lead.frame for one in capture.frames):
            self.frames.choose(lead.frame)
        key = lead.panel or panel_for(capture, lead, self.panels.kinds)
        if key:
            self.docking.show_panel(key)
            if self._alone and not self.docking.enlarged:
                self.docking.enlarge(key)
            panel = self.panels.get(key)
            if lead.curves and panel is not None and hasattr(panel, "prefer"):
                panel.redraw()  # which lists the curves
                panel.prefer(lead.curves, lead.place)
        axis = lead.axis or places_along(capture).get(lead.place, STEP_DOMAIN)
        place = {"place": lead.place} if lead.place else {}
        self.looking.move(**place, steps={axis: lead.steps[0]} if lead.steps else {})
        if lead.steps:
            self.steps.along(axis).set(min(lead.steps) - AROUND, max(lead.steps) + AROUND)
        if lead.iterations:
            self._show_iterations(lead)

    def _show_iterations(self, lead: Lead) -> None:
        around = (min(lead.iterations) - AROUND, max(lead.iterations) + AROUND) if lead.around is None else lead.around
        if around:
            self._zoom_training(min(around), max(around))
        else:
            self._whole_training()
        panel = self.panels.get("training")
        if panel is not None and hasattr(panel, "point_at"):
            panel.point_at(float(lead.iterations[0]))

    @Slot()
    def show_notes(self) -> None:
        """A note was written: mark it where it is."""
        capture = self.session.capture
        if capture is not None:
            self._show_timeline()
            self.sequences.mark(notes(capture))

    @Slot()
    def _whole_training(self) -> None:
        panel = self.panels.get("training")
        if panel is not None and hasattr(panel, "show_whole"):
            panel.show_whole()

    # -- cursor

    @Slot()
    def read_soon(self) -> None:
        """The numbers under the cursor may have changed."""
        if not self.reader.isActive():
            self.reader.start()

    def _captured_place(self, place: str) -> str:
        """A module's own channels, or those of its first layer (`rnn` → `rnn.l0`)."""
        capture = self.session.capture
        places = list(dict.fromkeys(c.place for c in capture.channels.values())) if capture is not None else []
        return next((p for p in places if p == place or p.startswith(f"{place}.l")), place)

    @Slot(object, object)
    def _moved(self, new: Position, old: Position) -> None:
        if new.frame != old.frame and new.frame >= 0 and self.frames.current not in (new.frame, DIFFERENCE):
            self.frames.choose(new.frame)  # a panel over training was clicked
        for axis, step in new.steps.items():
            steps = self.steps.along(axis)
            low, high = steps.bounds
            if step != old.at(axis) and not self.looking.settling and not low <= step <= high:
                steps.set(step - (high - low) / 2, step + (high - low) / 2)
        self.reader.start()

    @Slot()
    def _read_out(self) -> None:
        from inspector.gui.window.reading_out import read_out

        read_out(self, self.comparing)

    def show_all_steps(self) -> None:
        """The whole of every axis."""
        for steps in self.steps.every.values():
            steps.show_whole()
        for key in self.docking.seen & set(self.panels.made):  # maps and curves with axes of their own
            self.panels[key].reset_view()
        for twin in self.comparing.beside.panels:
            twin.reset_view()

    def play(self) -> None:
        """Play along the axis in focus, or stop."""
        if not self.looking.length_of(self.looking.focused):
            self.say(NO_STEPS)
            return
        self.player.toggle()
