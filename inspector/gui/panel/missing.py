"""What a panel cannot show of a run: the reasons of its empty page, and the line under a figure that shows the rest."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

from inspector.analysis.sequence_table import is_column
from inspector.analysis.warnings_of_shown import is_shown
from inspector.capture import Capture, Difference, Pair
from inspector.gui.panel.availability import why_not
from inspector.gui.panel.empty_page import refused
from inspector.gui.state.background import Rest
from inspector.gui.state.needed import computed_in
from inspector.gui.widgets.cut_label import CutLabel
from inspector.gui.widgets.plain_text import tooltip
from inspector.records import Channel, Refusal

COMPUTED = "It was computed in this run, but nothing in this model is of that kind."
BOTH = "Side by side shows what each of the two runs has."
OPEN_ONE = (
    "This run is of many sequences, and what belongs to a single one is not computed in it: open one "
    "(double-click it in Sequences)."
)
NOTHING = "This run has nothing of it."
ENDED = {
    "failed": "The run failed before it had anything of it",
    "cancelled": "The run was cancelled before it had anything of it",
}
GOES_ON = "The run goes on; what it has for this panel is shown as soon as it is there."
STATE = "h"
"""Signal under which a whole recurrence that was seen and is not shown is reported."""


class Concerned(Protocol):
    """The parts of a panel that are used here."""

    hint: ClassVar[str]
    source: Any
    capture: Capture | None
    extra: ClassVar[tuple[str, ...]]
    shows: ClassVar[tuple[str, ...]]
    needs: tuple[tuple[str, ...], ...]
    computed: bool
    chosen_signal: str
    remaining: Rest
    of_recurrences: ClassVar[bool]

    @property
    def differs(self) -> bool:
        """Whether the difference of two runs is drawn."""

    @classmethod
    def accepts(cls, channel: Channel) -> bool:
        """Whether it shows a channel, judged by its kind and dims."""

    def concerns(self, name: str) -> bool:
        """Whether a channel that could not be computed would have been shown there."""


def is_of_many(capture: Capture) -> bool:
    """Whether a capture is the run of many sequences, which has no steps of its own."""
    known = capture.channels.values()
    return any(map(is_column, known)) and not any("step" in channel.dims for channel in known)


def hint_for(panel: Concerned) -> str:
    """What a panel would show; without what it needs of a model where the run is of many sequences, whatever it has."""
    many = panel.capture is not None and is_of_many(panel.capture)
    return panel.hint.partition(" Needs ")[0] if many else panel.hint


def reasons_for(panel: Concerned) -> list[str]:
    """Why channels of a panel are missing: its own, and for a panel of recurrences all of those that are not shown."""
    refusals = panel.capture.refusals if panel.capture is not None else ()
    return not_compared(panel) + refused(
        one for one in refusals if panel.concerns(one.channel) or _recurrence(panel, one.channel)
    )


def not_compared(panel: Concerned) -> list[str]:
    """Why channels that the panel would show of each of two runs cannot be compared."""
    pair = panel.source
    if not isinstance(pair, Pair) or isinstance(pair, Difference) or not panel.differs:  # of an edit all is said
        return []
    described = {**pair.before.view.channels, **pair.after.view.channels}
    return refused(Refusal(name, reason) for name, reason in pair.refused.items() if panel.accepts(described[name]))


def warnings_for(panel: Concerned) -> list[str]:
    """Those of the reasons that are about something that is shown, which is not what it seems to be."""
    capture = panel.capture
    shown = [one for one in capture.refusals if is_shown(capture, one)] if capture is not None else []
    return refused(one for one in shown if panel.concerns(one.channel) or _recurrence(panel, one.channel))


def why_empty(panel: Concerned) -> tuple[list[str], bool]:
    """What the empty page of a panel says, a line each, and whether it offers to compute something."""
    if panel.capture is not None and is_of_many(panel.capture):
        return [OPEN_ONE], False
    apart = not_compared(panel)
    if apart:
        return [*apart, BOTH], False
    rest = panel.remaining
    if rest.needed.why and not rest.can_be_asked and (panel.extra or panel.shows):
        broken = [rest.broken_off] if rest.broken_off and panel.shows else []
        return [*reasons_for(panel), *broken, rest.sentence or rest.needed.why], False
    reasons, offer = _missing(panel)
    said = [rest.sentence] if rest.sentence else []
    if offer and rest.refused:
        reasons, offer = [*reasons, rest.refused], False
    elif offer and rest.partly:
        reasons = [*reasons, rest.partly]
    if offer and rest.needed.why and not said:
        said = [rest.needed.why]
    offered = bool(rest.offered) or (offer and not (rest.present or rest.waiting))
    told = [*reasons, *said]
    capture = panel.capture
    if not told and not offered and by_its_model(panel):
        return [rest.needed.why], True
    if not told and not offered and panel.shows and capture is not None and capture.stop is not None:
        told = [_nothing_of(capture)]
    if rest.broken_off and not reasons and (panel.shows or not offered):
        told = [rest.broken_off, *said]
    elif not told and not offered and capture is not None and getattr(capture, "status", "") == "running":
        told = [GOES_ON]
    return told, offered


def _nothing_of(capture: Capture) -> str:
    """Why a run that has ended has nothing for a panel, as far as its end says it."""
    stop = capture.stop
    if stop is None or stop.status not in ENDED:
        return NOTHING
    return f"{ENDED[stop.status]}{f': {stop.message}' if stop.status == 'failed' and stop.message else '.'}"


def by_its_model(panel: Concerned) -> bool:
    """Whether the model of a capture, which is not open, may give what the panel shows: none of that was asked for in
    the run. What was computed and gave nothing would give nothing once more."""
    capture, load = panel.capture, panel.remaining.needed.load
    if capture is None or load is None or not panel.shows or isinstance(panel.source, Pair):
        return False
    return capture.stop is not None and computed_in(capture).isdisjoint(panel.shows)


def _missing(panel: Concerned) -> tuple[list[str], bool]:
    """The reasons why a panel is empty, and whether what it shows on request may still be computed."""
    reasons, capture = reasons_for(panel), panel.capture
    if capture is None or not panel.extra:
        return reasons, False
    if reasons:
        return reasons, not panel.computed and _others(panel, capture)
    why = why_not(capture, panel.needs) or (COMPUTED if panel.computed else "")
    return ([why] if why else []), not why


def _others(panel: Concerned, capture: Capture) -> bool:
    """Whether there are recurrences of which nothing says that they cannot be shown."""
    refused_places = {one.channel.rpartition(":")[0] for one in capture.refusals if panel.concerns(one.channel)}
    shown = {channel.place for channel in capture.channels.values() if channel.kind == "state"}
    return panel.of_recurrences and bool(shown - refused_places)


def _recurrence(panel: Concerned, name: str) -> bool:
    return panel.of_recurrences and name.rpartition(":")[2] == STATE


class MissingLine(CutLabel):
    """One line under a figure: what it would also show, and why it does not. Hidden where there is nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("missing")
        self.setContentsMargins(8, 2, 8, 2)
        self.hide()

    def tell(self, panel: Concerned | None) -> None:
        """Show the reasons of a panel, all of them in the tooltip; None for no reasons."""
        reasons = reasons_for(panel) if panel is not None else []
        chosen = f":{panel.chosen_signal}" if panel is not None and panel.chosen_signal else ""
        asked = [one for one in reasons if chosen and chosen in one.partition(": ")[0]]
        warnings = warnings_for(panel) if panel is not None else []
        warnings = [] if asked else warnings
        reasons = list(dict.fromkeys([*asked, *warnings, *reasons]))
        more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
        before = "" if warnings else "Not shown: "
        self.show_text(f"{before}{reasons[0]}{more}" if reasons else "")
        self.setToolTip(tooltip("\n\n".join(reasons)))
        self.setVisible(bool(reasons))
