"""How the maps of attention are drawn: colours, the first key, several heads, profiles, lines, focus."""

from __future__ import annotations

from inspector.gui.widgets.maps.linesview import ABOUT, COUNTS, OF_EACH
from inspector.gui.widgets.option_menu import OptionMenu

AUTO = "about"
BESIDE, MEAN, MAXIMUM = "beside", "mean", "maximum"
MAP, LINES, ALIGNMENT, HEADS = "Map", "Lines", "Alignment", "All heads"
VIEWS = (MAP, LINES, ALIGNMENT, HEADS)


def line_counts() -> dict[str, str]:
    """Key → how many lines. In a causal map the strongest of all are those of the first queries, so that as many of
    each query come first."""
    each = {f"each {count}": f"the {f'{count} ' if count > 1 else ''}strongest of each query" for count in OF_EACH}
    about = {AUTO: f"about {ABOUT}, as many of each query"}
    return {**about, **each, **{str(count): f"the {count} strongest of all" for count in COUNTS}}


def lines_for(key: str, queries: int) -> tuple[int, bool]:
    """(how many lines, whether of each query) a choice means."""
    if key == AUTO:
        return max(1, ABOUT // max(1, queries)), True
    return int(key.removeprefix("each")), key.startswith("each")


def map_menu() -> OptionMenu:
    """The menu, with everything as it is at first."""
    menu = OptionMenu("Map", "Colours and parts of the large map")
    menu.add_switch(
        "log",
        "Logarithmic colours",
        "Five decades below the largest weight; without it colours go with the square root",
    )
    menu.add_switch(
        "without_first", "Hide the first key",
        "The first key is drawn as masked and every row divided by the sum of what is left",
    )  # fmt: skip
    menu.add_switch(
        "profiles",
        "Profiles",
        "Weights of the query below the map and of the key beside it, where there is the height for them",
        on=True,
    )
    menu.add_choice("beside", "Beside it", {"": "nothing"})
    menu.add_choice("cells", "Several weights in a pixel", {"maximum": "the largest", "mean": "their mean"})
    menu.add_choice(
        "several",
        "Several heads (Ctrl + click)",
        {BESIDE: "side by side", MEAN: "their mean", MAXIMUM: "their maximum"},
    )
    menu.add_choice("lines", "Lines", line_counts())
    menu.add_choice("focus", "Focus of an alignment", {"largest": "largest weight", "entropy": "entropy"})
    return menu
