"""The colours that a user has chosen for maps: another map, another range, and what is beyond it marked."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from inspector.gui.widgets.images.quantise import CENTRED, Levels
from inspector.gui.widgets.theme import DIVERGING, SEQUENTIAL

DRAWN, ROBUST, FULL, IN_VIEW, OWN = "", "robust", "full", "view", "own"
RANGES = {
    DRAWN: "As usual", ROBUST: "Robust: without the most extreme 1 %", FULL: "Full: from the least to the largest",
    IN_VIEW: "In view: what each map has in view, following zoom and pan",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ColourChoice:
    """What was chosen for the maps of one scale in the panels of one kind.

    Attributes:
        colours: the name of a map, "" for that of the scale.
        span: which range: DRAWN (what the panel chooses), ROBUST, FULL, IN_VIEW or OWN.
        low, high: the range OWN, as numbers and not as their logarithms.
        marked: whether what is beyond the range has a colour of its own.
    """

    colours: str = ""
    span: str = DRAWN
    low: float = 0.0
    high: float = 1.0
    marked: bool = False

    def of(self, levels: Levels) -> Levels:
        """The levels with what was chosen; a range that is not known stays as it is."""
        chosen = replace(levels, colours=self.colours, marked=self.marked)
        limits = self._limits(levels)
        if limits is None or limits == (levels.low, levels.high):
            return chosen
        # of the numbers only the ends are known here: how many are beyond another range is not told
        return replace(chosen, low=limits[0], high=limits[1], clipped=0.0)

    def _limits(self, levels: Levels) -> tuple[float, float] | None:
        if self.span == OWN:
            if not levels.log:
                return self.low, self.high
            return (math.log10(self.low), math.log10(self.high)) if self.low > 0 else None
        return {ROBUST: levels.robust, FULL: levels.full, IN_VIEW: levels.view}.get(self.span)


AS_USUAL = ColourChoice()


def without_range(choice: ColourChoice) -> ColourChoice:
    """The choice with the usual range where it has two numbers of one's own."""
    return replace(choice, span=DRAWN, low=AS_USUAL.low, high=AS_USUAL.high) if choice.span == OWN else choice


def maps_for(scale: str) -> Mapping[str, str]:
    """The maps that suit a scale: name → what it is called."""
    return DIVERGING if scale in CENTRED else SEQUENTIAL


def why_no_range(low: float, high: float, *, log: bool) -> str:
    """Why two numbers are no range of colours, as one sentence; "" where they are one."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return "Both ends of a range are finite numbers."
    if low >= high:
        return f"A range goes from a smaller to a larger number; {low:g} to {high:g} does not."
    if log and low <= 0:
        return f"These colours go with the logarithm, so the range begins above 0, not at {low:g}."
    return ""


def as_data(choice: ColourChoice) -> dict[str, Any]:
    """What is not as usual, for a file."""
    found: dict[str, Any] = {"colours": choice.colours} if choice.colours else {}
    if choice.span:
        found["range"] = [choice.low, choice.high] if choice.span == OWN else choice.span
    return {**found, "marked": True} if choice.marked else found


def from_data(scale: str, data: Any) -> ColourChoice:
    """A choice out of a file; what is none there is as usual."""
    told = data if isinstance(data, dict) else {}
    colours, span = told.get("colours"), told.get("range")
    choice = ColourChoice(
        colours=colours if isinstance(colours, str) and colours in maps_for(scale) else "",
        marked=told.get("marked") is True,
    )
    if span in (ROBUST, FULL, IN_VIEW):
        return replace(choice, span=str(span))
    numbers = [float(one) for one in span if isinstance(one, int | float)] if isinstance(span, list) else []
    if len(numbers) == 2 and not why_no_range(numbers[0], numbers[1], log=False):
        return replace(choice, span=OWN, low=numbers[0], high=numbers[1])
    return choice


def chosen(item: Any, levels: Levels) -> Levels:
    """The levels of a graphics item with what was chosen for the panel that it is in."""
    choose = getattr(item.scene(), "colours", None)
    found: Levels = levels if choose is None else choose(levels.scale).of(levels)
    return found
