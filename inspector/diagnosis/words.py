"""What is said of a diagnosis as a whole: findings that repeat over frames told once, and which rules have not looked
and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from inspector.diagnosis.diagnose import SEVERITIES, Diagnosis
from inspector.diagnosis.rule import RULES, Rule
from inspector.records import Finding, counted, split_request

WORDS: Mapping[str, str] = {"error": "Error", "warning": "Warning", "info": "Information"}
"""Severities as they are shown."""
TOOK = "run:seconds/"
"""Before the key of a quantity: the scalar with the seconds that it took."""


@dataclass(frozen=True, slots=True)
class Repeated:
    """One finding of one rule at one place, as it is in the last frame in which it is worst.

    Attributes:
        finding: that one.
        frames: all in which there is one, in order; () for a training as a whole.
        turn: which of the rule's findings at that place it is, from 0: a rule may say several things of one place.
    """

    finding: Finding
    frames: tuple[int, ...]
    turn: int = 0

    @property
    def name(self) -> str:
        """What it is called in all files about captures of one model: "IN406@rnn.l0", "IN303@#2"."""
        more = f"#{self.turn + 1}" if self.turn else ""
        return f"{self.finding.id or self.finding.rule}@{self.finding.place}{more}"


@dataclass(frozen=True, slots=True)
class NotLooked:
    """A rule that has not judged.

    Attributes:
        key: of the rule; why: as the end of a sentence; pending: whether it may still judge by itself.
        needs: quantities that it needs and that were not computed.
    """

    key: str
    why: str
    pending: bool = False
    needs: tuple[str, ...] = ()


def told_once(findings: Sequence[Finding]) -> list[Repeated]:
    """Findings of one rule at one place that repeat from frame to frame as one, the worst first. Several in one frame
    stay several: the first of each frame is one finding, the second another."""
    groups: dict[tuple[str, str, int], list[Finding]] = {}
    turns = Counter[tuple[str, str, int]]()
    for finding in findings:
        what = finding.id or finding.rule, finding.place
        turn = turns[(*what, finding.frame)]
        turns[(*what, finding.frame)] += 1
        groups.setdefault((*what, turn), []).append(finding)
    found = []
    for (_rule, _place, turn), group in groups.items():
        worst = max(group, key=lambda one: (SEVERITIES.index(one.severity), one.frame))
        frames = sorted({one.frame for one in group if one.frame >= 0})
        found.append(Repeated(worst, tuple(frames), turn))
    return sorted(found, key=lambda one: (-SEVERITIES.index(one.finding.severity), one.finding.id))


def in_frames(one: Repeated, labels: Mapping[int, str]) -> str:
    """In which of several frames a finding is: "iteration 8", "3 of 9 frames, iteration 2 to iteration 8"; "" where it
    belongs to none, or `labels`, the names of all frames, says that there is one only."""
    if not one.frames or len(labels) < 2:
        return ""
    first, last = (labels.get(frame) or f"frame {frame}" for frame in (one.frames[0], one.frames[-1]))
    return first if len(one.frames) == 1 else f"{len(one.frames)} of {len(labels)} frames, {first} to {last}"


def not_looked(
    diagnosis: Diagnosis, view: Any, asked: Collection[str], *, again: bool = False, coming: Collection[str] = ()
) -> list[NotLooked]:
    """The rules that have not judged all that they look at, with the reason; `asked` are keys of those that have been
    asked so far, the others are pending. `again`: there is more by now, about which all will be asked again; `coming`:
    keys of quantities that are being computed for a run that has ended."""
    running = again or (view.stop is None and view.status == "running")
    requests = view.stop.left if view.stop is not None else ()
    left = {*(split_request(request)[0] for request in requests), *coming}
    short = {one.partition(" (")[0]: one.partition(" (")[2].rstrip(")") for one in diagnosis.short}
    damaged = {one.rule for one in diagnosis.unjudged}
    found = []
    for key, rule in RULES.items():
        if key not in asked:
            found.append(NotLooked(key, "not asked yet", pending=True))
        elif key in short:
            found.append(NotLooked(key, f"too few points: {short[key]}", pending=running))
        elif key in damaged:
            found.append(NotLooked(key, "part of what it reads is damaged"))
        elif key in diagnosis.silent:
            found.append(_silent(key, rule, view, left, running=running))
        elif key not in diagnosis.asked:
            found.append(NotLooked(key, "it failed"))
    return found


def _silent(key: str, rule: Rule, view: Any, left: Collection[str], *, running: bool) -> NotLooked:
    """Why a rule had nothing to look at."""
    waiting = tuple(need for need in rule.needs if need in left)
    if waiting:
        return NotLooked(key, "not computed yet", pending=True, needs=waiting)
    if running:
        return NotLooked(key, "nothing to look at yet", pending=True)
    kinds = {channel.kind for channel in view.channels.values()}
    if rule.scope == "training" and not kinds & {"series", "training"}:
        return NotLooked(key, "no training was recorded")
    if not view.start.places:
        log = "log" in view.start.meta
        return NotLooked(key, "a log has no states, gradients or weights" if log else "no model was recorded")
    lacking = tuple(need for need in rule.needs if need not in _computed(view))
    if lacking and not (rule.scope == "training" or kinds & set(rule.reads)):
        return NotLooked(key, "not computed", needs=lacking)
    return NotLooked(key, "the model has nothing of the kind, or it was not recorded")


def _computed(view: Any) -> set[str]:
    """Keys of the quantities that the run has computed, also where they had nothing to say: it notes what each took."""
    return {one.name.removeprefix(TOOK) for one in view.scalars if one.name.startswith(TOOK)}


def by_reason(some: Sequence[NotLooked]) -> list[tuple[str, list[str]]]:
    """(reason, titles of the rules) for each reason, in the order of the rules; with what they need in brackets."""
    found: dict[str, list[str]] = {}
    for one in some:
        needs = f" ({', '.join(one.needs)})" if one.needs else ""
        found.setdefault(one.why, []).append(RULES[one.key].title + needs)
    return list(found.items())


def in_a_sentence(diagnosis: Diagnosis, lacking: Sequence[NotLooked]) -> str:
    """What all of it comes to. "Nothing" is said only where no rule has still to judge."""
    pending = sum(one.pending for one in lacking)
    others = len(lacking) - pending
    looked = f"{counted(len(diagnosis.asked), 'rule')} looked"
    looked += f", {others} could not" if others else ""
    counts = {word: sum(one.finding.severity == word for one in told_once(diagnosis.findings)) for word in WORDS}
    parts = [
        f"{count} for information" if word == "info" else counted(count, WORDS[word].lower())
        for word, count in counts.items()
        if count
    ]
    muted = f"; {counted(len(diagnosis.muted), 'finding')} muted by the project" if diagnosis.muted else ""
    waiting = f"; {counted(pending, 'rule')} not evaluated yet" if pending else ""
    if parts:
        return f"{', '.join(parts)}; {looked}{waiting}{muted}"
    if pending:
        return f"No finding so far; {looked}{waiting}{muted}"
    if not diagnosis.asked:
        return f"No rule had anything to look at{muted}"
    return f"Nothing found by the rules that looked: {looked}{muted}"
