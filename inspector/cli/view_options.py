"""Options that say what of a capture is looked at: the same where a figure is drawn and where the window opens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from inspector.cli.fault import Fault
from inspector.records.json_text import read_json
from inspector.records.plain_text import plain_text, shortened

CHOSEN = ("range", "colours", "marked")
"""What can be chosen for a scale of colours (gui/widgets/images/colour_choice.py)."""

OPTIONS = (
    click.option("--panel", default=None, help="A panel, by its key or title; a figure of it: .png .svg .pdf"),
    click.option("--frame", default=-1, help="Index of the frame; -1 is the newest."),
    click.option("--place", default="", help="Which place of the model the panel shows."),
    click.option("--step", type=click.IntRange(min=0), default=None, help="The step of the input under the cursor."),
    click.option("--steps", default=None, metavar="A:B", help="The steps in view, from A to the one before B."),
    click.option("--iterations", default=None, metavar="A:B", help="The same of iterations, in curves over training."),
    click.option("--unit", type=click.IntRange(min=0), default=None, help="The unit under the cursor."),
    click.option("--curve", "curves_of", multiple=True, metavar="NAME", help="A channel whose curves the panel draws."),
    click.option("--map-colours", default="", metavar="JSON", help="Colours chosen for maps, as a session has them."),
    click.option("--head", type=click.IntRange(min=0), default=None, help="The head of attention that is shown."),
)


def view_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options of a command that shows something of a capture."""
    for option in reversed(OPTIONS):
        function = option(function)
    return function


def span(text: str) -> tuple[int, int]:
    """ "A:B" as (A, B), B beyond A. Raises Fault."""
    low, colon, high = text.partition(":")
    if not (colon and low.isdigit() and high.isdigit() and int(low) < int(high)):
        raise Fault(f"{text!r} is no range: A:B is expected, two whole numbers, from A to the one before B.")
    return int(low), int(high)


def steps_of(text: str | None) -> tuple[int, int] | None:
    """The first and last step, or iteration, in view. Raises Fault."""
    if text is None:
        return None
    low, high = span(text)
    return low, high - 1


def colours_in(text: str) -> str:
    """Colours that were chosen, checked to be JSON of panels with nothing that would be passed over. Raises Fault."""
    try:
        found = read_json(text or "{}")
    except ValueError:
        found = None
    scales = [one for panel in _values(found) for one in (_values(panel) if isinstance(panel, dict) else [panel])]
    strange = [name for one in scales if isinstance(one, dict) for name in one if name not in CHOSEN]
    if not isinstance(found, dict) or not all(isinstance(panel, dict) for panel in found.values()) or strange:
        example = '{"states": {"diverging": {"range": "full"}}}'
        what = (
            f"has {plain_text(str(strange[0]), 40)!r}, not one of {', '.join(CHOSEN)}" if strange else "are no colours"
        )
        raise Fault(f"{shortened(text, 80)!r} {what}: JSON by panel and scale is expected, as in {example}.")
    return text


def _values(found: Any) -> list[Any]:
    return list(found.values()) if isinstance(found, dict) else []


def slices_of(texts: tuple[str, ...]) -> dict[str, tuple[int, int]]:
    """ "DIM=A:B" each, by dim. Raises Fault."""
    found = {}
    for text in texts:
        dim, equals, rest = text.partition("=")
        if not equals:
            raise Fault(f"{text!r} is no slice: DIM=A:B is expected, as in step=10:20.")
        found[dim] = span(rest)
    return found
