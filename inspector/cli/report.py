"""`inspector diagnose --to REPORT.html`: figures of the window's panels, put into the report of the diagnosis."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from inspector.capture import Capture, CaptureError, LogView, write_atomically
from inspector.cli.demo import no_qt
from inspector.cli.evidence import Evidence
from inspector.cli.fault import Fault
from inspector.diagnosis import Diagnosis
from inspector.diagnosis.report import Figure, Report, Support, compose, page
from inspector.records import Finding, ViewAt

if TYPE_CHECKING:
    from inspector.gui.export.drawn import Drawing

MOST_FIGURES, MOST_OF_A_FINDING = 40, 3
MOST_BYTES = 6_000_000
"""Of figures, beyond which no more are drawn: a report is sent by mail."""
SUFFIXES = (".html", ".htm")


def write_report(opened: Capture | LogView, found: Diagnosis, source: str, run: str | None, to: str) -> list[str]:
    """Write it; returns what it lacks, a sentence each. Raises Fault where it cannot be written."""
    check_target(to)
    drawing, lacking = _drawing(opened)
    evidence = Evidence(opened, source, run, drawn=drawing is not None)
    try:
        report = _report(opened, found, evidence, drawing)
    finally:
        if drawing is not None:
            drawing.close()
    if lacking:
        told = f"There are no figures: {lacking} Tables stand in their place."
        report = replace(report, without_figures=told)
    try:
        write_atomically(Path(to), page(report).encode("utf-8", "replace"))
    except CaptureError as problem:
        raise Fault(str(problem)) from None
    return [f"The report has no figures: {lacking}"] if lacking else []


def check_target(to: str) -> None:
    """Raises Fault, before anything was computed."""
    if Path(to).suffix.lower() not in SUFFIXES:
        raise Fault(f"A report is an HTML page, so --to takes a file that ends with .html, not {Path(to).name}.")


def _drawing(opened: Capture | LogView) -> tuple[Drawing | None, str]:
    """(what draws figures, why there is none)."""
    try:
        from inspector.gui.export.drawn import Drawing

        return Drawing(opened), ""
    except ImportError as problem:
        return None, no_qt(problem)


def _report(opened: Capture | LogView, found: Diagnosis, evidence: Evidence, drawing: Drawing | None) -> Report:
    figures = _Figures(evidence, drawing)
    report = compose(opened, opened.frames, found, evidence.source, figures.support)
    whole = ViewAt(run=evidence.run)
    report = replace(report, opens=evidence.opens(whole))
    if drawing is None:
        return report
    shown = figures.panels
    left = [panel for panel in evidence.panels(-1) if panel.key not in shown]
    drawn = [figures.draw(replace(whole, panel=panel.key)) for panel in left]
    more = [panel.title for panel, figure in zip(left, drawn, strict=True) if figure is None]
    told = f"Not drawn, since the report would be too large or they have nothing to show: {', '.join(more)}."
    remarks = (*report.remarks, told) if more else report.remarks
    return replace(report, figures=tuple(filter(None, drawn)), style=drawing.style, remarks=remarks)


class _Figures:
    """The figures of a report: each is drawn once, and no more when there are many of them or many bytes."""

    def __init__(self, evidence: Evidence, drawing: Drawing | None) -> None:
        self._evidence, self._drawing = evidence, drawing
        self._drawn: dict[tuple[ViewAt, tuple[str, ...]], Figure] = {}
        self._size = 0

    @property
    def panels(self) -> set[str]:
        """Keys of those that were drawn."""
        return {at.panel for at, _ in self._drawn}

    def support(self, finding: Finding) -> Support:
        """Figures of the finding's evidence, those that an earlier finding has, and its command lines."""
        evidence, views = self._evidence, self._evidence.views(finding)
        before = [self._drawn[view] for view in views if view in self._drawn]
        new = [view for view in views if view not in self._drawn][:MOST_OF_A_FINDING]
        figures = [self.draw(at, names, said=at != views[0][0]) for at, names in new]
        first = views[0][0] if views else ViewAt(frame=finding.frame, run=evidence.run)
        draws = [evidence.draws(at) for at, _ in views]
        return Support(
            tuple(filter(None, figures)), tuple(before), evidence.opens(first), (*draws, *evidence.saves(finding))
        )

    def draw(self, at: ViewAt, names: tuple[str, ...] = (), *, said: bool = True) -> Figure | None:
        """A panel as a figure, with the command that opens it where that is `said`; None where it has nothing to show
        or there is no room left."""
        if self._drawing is None or len(self._drawn) >= MOST_FIGURES or self._size > MOST_BYTES:
            return None
        drawn = self._drawing.figure(at)
        if drawn is None:
            return None
        title, markup, lost = drawn
        where = [title, *([at.place] if at.place else []), *([f"step {at.step}"] if at.step is not None else [])]
        caption = ", ".join(where) + (f" ({lost})" if lost else "")
        figure = Figure(caption, markup, self._evidence.opens(at) if said else "", f"figure-{len(self._drawn) + 1}")
        self._drawn[at, names] = figure
        self._size += len(markup)
        return figure
