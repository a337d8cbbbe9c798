"""A report made from a diagnosis and the view that was diagnosed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from inspector.capture import LogView, summary
from inspector.diagnosis.diagnose import Diagnosis
from inspector.diagnosis.report.about import about
from inspector.diagnosis.report.added import notes_of, split, tried_of
from inspector.diagnosis.report.contents import Report, Shown, Support
from inspector.diagnosis.report.numbers import numbers_of
from inspector.diagnosis.rule import RULES, Captured
from inspector.diagnosis.scarce import scarce
from inspector.diagnosis.words import NotLooked, Repeated, in_a_sentence, in_frames, not_looked, told_once
from inspector.records import Finding, Frame, command
from inspector.workspace.its_model import words_of

OF_A_LOG = (
    "This is a log that another tool wrote: it has curves and nothing of the inside of a model, so only the rules that "
    "read curves could judge."
)


def compose(
    view: Captured, frames: Sequence[Frame], found: Diagnosis, source: str, support: Callable[[Finding], Support]
) -> Report:
    """The report without the figures of the whole; `support` is asked for those of every finding, the worst first."""
    notes = notes_of(view)
    labels = {frame.index: frame.label or str(frame.index) for frame in frames} if len(frames) > 1 else {}
    shown = tuple(
        Shown(
            one.finding, _where(one, labels), numbers_of(view, one.finding), support(one.finding),
            split(notes, one.finding),
        )
        for one in told_once(found.findings)
    )  # fmt: skip
    lacking = not_looked(found, view, RULES)
    told = {note for one in shown for note in one.notes}
    return Report(
        title=view.start.title or source,
        sentence=in_a_sentence(found, lacking),
        about=tuple(about(view, frames, source)),
        findings=shown,
        clear=tuple(key for key in found.asked if key not in {one.rule for one in found.findings}),
        unseen=tuple(_unseen(found, lacking, view)),
        notes=tuple(note for note in notes if note not in told),
        tried=tuple(tried_of(view)),
        remarks=tuple(_remarks(view, found)),
    )


def _where(one: Repeated, labels: dict[int, str]) -> str:
    """The place and, of several frames, in which."""
    parts = [one.finding.place or "the model as a whole", in_frames(one, labels)]
    if len(one.frames) > 1:
        parts.append(f"the numbers are of {labels[one.finding.frame]}")
    return "; ".join(part for part in parts if part)


def _remarks(view: Captured, found: Diagnosis) -> Iterator[str]:
    if isinstance(view, LogView):
        yield OF_A_LOG
    if few := scarce(view, found):
        yield few


def _unseen(found: Diagnosis, lacking: Sequence[NotLooked], view: Captured) -> Iterator[tuple[str, str]]:
    """(rule, why it has not judged, with the damage or the command that would change that)."""
    damage = {one.rule: summary(one.damage) for one in found.unjudged}
    for line in found.broken:
        origin, _, reason = line.partition(": ")
        yield origin, f"it failed: {reason}"
    for one in lacking:
        rule = RULES[one.key]
        needs = [need for need in rule.needs if need] if one.why.endswith("not computed") else []
        asked = [word for need in needs for word in ("--with", need)]
        more = f": {command('run', *words_of(view.start), *asked)}" if asked else ""
        more += f": {damage[one.key]}" if one.key in damage else ""
        yield f"{rule.id} {one.key}: {rule.title}", one.why + more
