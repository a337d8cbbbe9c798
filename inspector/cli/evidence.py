"""Where a finding shows: which panel, at which position, and the command lines that open, draw and export it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from inspector.analysis.iterations_in_view import AROUND, LONG, iterations_around
from inspector.capture import Capture, LogView
from inspector.diagnosis import is_trend
from inspector.records import STEP_DOMAIN, Channel, Finding, ViewAt, command

if TYPE_CHECKING:
    from inspector.gui.export.panels_of import Filled

TRAINING = "training"
"""The panel that draws a choice of curves."""


class Evidence:
    """The findings of one capture or log. `source` is its path as it was given; without panels there are numbers only.

    Which panels have something depends on the frame, and is found out once for each.
    """

    def __init__(self, opened: Capture | LogView, source: str, run: str | None, *, drawn: bool = True) -> None:
        self.opened, self.source, self.run, self._drawn = opened, source, run or "", drawn
        self._panels: dict[int, list[Filled]] = {}

    def panels(self, frame: int) -> list[Filled]:
        """Those that have something to show of a frame."""
        if not self._drawn:
            return []
        if frame not in self._panels:
            from inspector.gui.export.headless import panels_in

            self._panels[frame] = panels_in(self.opened, frame)
        return self._panels[frame]

    def views(self, finding: Finding) -> list[tuple[ViewAt, tuple[str, ...]]]:
        """Each panel that draws some of the evidence, at the finding's position, with the channels that it draws; the
        panel of the first channel comes first."""
        from_panel: dict[str, list[str]] = {}
        for name in finding.evidence:
            if key := self._panel_for(finding.frame, name):
                from_panel.setdefault(key, []).append(name)
        return [(self._at(finding, key, names), tuple(names)) for key, names in from_panel.items()]

    def _panel_for(self, frame: int, name: str) -> str:
        panels = self.panels(frame)
        if not panels:
            return ""
        from inspector.gui.export.panels_of import panel_for

        return panel_for(panels, name)

    def _at(self, finding: Finding, panel: str, names: Sequence[str]) -> ViewAt:
        channel = self.opened.channel(names[0], finding.frame)
        over = "step" in channel.dims and channel.domain("step") == STEP_DOMAIN
        length = self.opened.extent(channel.name, finding.frame)[channel.dims.index("step")] if over else 0
        inside = [step for step in finding.steps if 0 <= step < length]
        series = panel == TRAINING
        at = ViewAt(
            panel=panel, frame=finding.frame, place="" if series else channel.place, run=self.run,
            curves=tuple(names) if series else (),
        )  # fmt: skip
        if series and not is_trend(finding.rule):
            span = iterations_around(self.opened, channel, finding.frame, finding.iterations)
            at = replace(at, iterations=span)
        if not inside:
            return at
        low, high = max(0, min(inside) - AROUND), min(length - 1, max(inside) + AROUND)
        return replace(at, step=inside[0], steps=(low, high) if length > LONG and high - low < length // 2 else None)

    # -- command lines

    def opens(self, at: ViewAt) -> str:
        """The window, where the same is shown."""
        return command(self.source, *at.words)

    def draws(self, at: ViewAt) -> str:
        """The figure as a file."""
        return command("export", self.source, *at.words, "--to", f"{at.panel}.png")

    def saves(self, finding: Finding) -> list[str]:
        """The numbers of each channel of the evidence as a file."""
        known = [self.opened.channels[name] for name in finding.evidence if name in self.opened.channels]
        return [self._save(channel, finding.frame) for channel in known]

    def _save(self, channel: Channel, frame: int) -> str:
        at = ["--frame", str(frame)] if frame >= 0 else []
        run, name = self.run, channel.name
        if isinstance(self.opened, LogView) and self.opened.run is None:  # of several runs the place is that of one
            run, name = channel.place, channel.signal
        of = [f"--run={run}"] if run else []
        return command("export", self.source, f"--channel={name}", *at, *of, "--to", f"{_file_name(channel.name)}.json")

    def as_data(self, finding: Finding) -> dict[str, Any]:
        """The same for a program."""
        views = [
            {
                "panel": at.panel, "frame": at.frame, "place": at.place, "curves": list(at.curves), "step": at.step,
                "steps": _span(at.steps), "iterations": _span(at.iterations),
                "channels": list(names), "open": self.opens(at), "draw": self.draws(at),
            }
            for at, names in self.views(finding)
        ]  # fmt: skip
        return {"views": views, "export": self.saves(finding)}


def _span(ends: tuple[int, int] | None) -> list[int] | None:
    """From the first to the one before the second."""
    return None if ends is None else [ends[0], ends[1] + 1]


def _file_name(channel: str) -> str:
    """A file's name of letters, digits and hyphens."""
    return "".join(c if c.isascii() and c.isalnum() else "-" for c in channel).strip("-") or "channel"
