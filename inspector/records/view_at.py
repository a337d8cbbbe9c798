"""Where one looks at a capture: what a command line, a link or a window is given so as to show the same again."""

from __future__ import annotations

import shlex
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewAt:
    """A panel and the position of the cursor; every field by default leaves the choice to what shows it.

    Attributes:
        panel: its key.
        frame: its index, -1 for the newest, -2 for the difference of two, where a window shows it.
        place: of the model ("rnn.l0").
        step: of the input, from 0 on. steps: the first and last one in view.
        unit, head: of the place.
        iterations: the first and last one in view, in a panel that draws a training.
        curves: channels whose curves are drawn, in a panel that draws a choice of them.
        run: one of the runs of a log.
        colours: those chosen for maps, as JSON: {panel: {scale: {"colours": map, "range": "robust", "full" or [low,
            high], "marked": true}}}; "" as usual.
    """

    panel: str = ""
    frame: int = -1
    place: str = ""
    step: int | None = None
    steps: tuple[int, int] | None = None
    unit: int | None = None
    head: int | None = None
    iterations: tuple[int, int] | None = None
    curves: tuple[str, ...] = ()
    run: str = ""
    colours: str = ""

    @property
    def words(self) -> list[str]:
        """The same as options of a command."""
        found = ["--panel", self.panel] if self.panel else []
        found += ["--frame", str(self.frame)] if self.frame >= 0 else []
        found += [f"--place={self.place}"] if self.place else []
        for name in ("step", "unit", "head"):
            value = getattr(self, name)
            found += [f"--{name}", str(value)] if value is not None else []
        for option, span in (("--steps", self.steps), ("--iterations", self.iterations)):
            found += [option, f"{span[0]}:{span[1] + 1}"] if span is not None else []
        found += [f"--curve={name}" for name in self.curves]
        found += [f"--map-colours={self.colours}"] if self.colours else []
        return [*found, f"--run={self.run}"] if self.run else found


def command(*words: str) -> str:
    """A command line of this program that a shell reads as these words."""
    return shlex.join(["inspector", *words])
