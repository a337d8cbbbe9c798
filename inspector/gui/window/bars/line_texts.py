"""What the line beside a kind of sequence has when somebody chooses another kind: never the text of another one."""

from __future__ import annotations

EXAMPLE, PATHS = "example", ("file", "several")
"""Forms of inputs beside which the line shows an example's text, or is a path."""


class LineTexts:
    """Texts that were typed, put aside for each use of the line."""

    def __init__(self) -> None:
        self._before, self._now, self._text = "", "", ""
        self._aside: dict[str, str] = {}

    def note(self, form: str, text: str) -> None:
        """A kind of this form is shown from now on; the line has had this text until now."""
        self._before, self._now, self._text = self._now, form, text

    def chosen(self, example: str, shown: str, *, typed: bool) -> str | None:
        """The text for what was chosen: `example` beside an example, else what was typed for this form, and no text as
        a path. None where it stays, as what has not run yet does (`typed`), but for an example."""
        before, now = self._before, self._now
        self._before = now  # the same entry may be chosen again
        if before == now or (typed and now != EXAMPLE):
            return None
        self._aside[before] = self._text
        return example if now == EXAMPLE else self._aside.get(now, "" if now in PATHS else shown)
