"""What a rule reads of a run while it judges, and what of that is damaged: no rule has to look for itself."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from inspector.capture.damage import Damage
from inspector.diagnosis.rule import Captured, Rule

NUMBERS = frozenset({"array", "block", "overview", "known", "holes", "extent", "channel"})
"""Methods of a run that tell of one channel in one frame."""
WORDS = frozenset({"scalars", "labels", "label_domains", "axes", "axis", "logs", "refusals"})
"""What stands in a run's notes; of a note that is lost nobody knows what it said."""


class Evidence:
    """A run as one rule reads it: everything is passed on, and noted.

    Attributes:
        read: (channel, frame) of all that was asked for, also where nothing was there.
        short: (points, points needed) of the shortest series that was too short to be judged; None where none was.
        something: whether anything was there; else the rule had nothing to look at.
    """

    def __init__(self, run: Captured, limits: Callable[[], Mapping[str, float]] = dict) -> None:
        self._run = run
        self._limits = limits
        self._notes = False
        self.something = False
        self.short: tuple[int, float] | None = None
        self.read: set[tuple[str, int]] = set()

    def __getattr__(self, attribute: str) -> Any:
        """An attribute of the run."""
        if attribute in WORDS:
            self._notes = self.something = True
        found = getattr(self._run, attribute)
        if attribute not in NUMBERS:
            return found

        def asked(name: str, frame: int = -1, *more: Any, **named: Any) -> Any:
            self.something = True
            self.read.add((name, self._run.frame_of(name, frame)))
            return found(name, frame, *more, **named)

        return asked

    def limit(self, name: str) -> float:
        """A limit of the rule that judges."""
        return self._limits()[name]

    def too_few(self, points: int, needed: float) -> bool:
        """Whether there are fewer points than a rule needs, which is noted."""
        if points < needed:
            self.short = min(self.short or (points, needed), (points, needed))
        return points < needed

    def training(self) -> Mapping[str, Any]:
        """What a watched run said of itself; empty where nothing was."""
        said = self._run.start.meta.get("training")
        if not isinstance(said, Mapping):
            return {}
        self._notes = self.something = True
        return said

    def revision(self, name: str, frame: int = -1) -> int:
        """As the run says. A rule that asks passes over a channel without pages; they may have been lost."""
        found = self._run.revision(name, frame)
        if not found:
            self.read.add((name, self._run.frame_of(name, frame)))
        return found

    def damage(self, rule: Rule, frames: Collection[int]) -> tuple[Damage, ...]:
        """What is lost, or may be, of what the rule has read, and of what it reads in frames that are lost."""
        return tuple(one for one in self._run.damage if self._concerns(one, rule, frames))

    def _concerns(self, one: Damage, rule: Rule, frames: Collection[int]) -> bool:
        if one.anywhere or (self._notes and not one.channel):
            return True
        if any(one.concerns(*place) for place in self.read):
            return True
        known = self._run.channels.get(one.channel)
        return known is not None and one.frame not in frames and (not rule.reads or known.kind in rule.reads)
