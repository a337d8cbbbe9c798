"""A stream of text cut into lines of bounded length, for any output: a gigabyte without a line break, progress bars."""

from __future__ import annotations

MOST_CHARACTERS = 4_000
CUT = " … (the rest of this line is not shown)"


class Lines:
    """`feed(text)` gives the lines that end in it; of the line in progress at most `MOST_CHARACTERS` are stored.

    A carriage return restarts the line, as in a terminal: of a progress bar its last state is left.
    """

    def __init__(self) -> None:
        self._begun = ""
        self._cut = False
        self._returned = False
        """Whether a carriage return came last: it restarts the line only if more than a line break follows."""

    def feed(self, text: str) -> list[str]:
        """The lines that end in `text`, without their line breaks."""
        first, *others = text.split("\n")
        self._go_on(first)
        if not others:
            return []
        *whole, last = others
        plain = "\r" not in text and max(map(len, whole), default=0) <= MOST_CHARACTERS
        lines = [self._end(), *(whole if plain else map(_shown, whole))]
        self._go_on(last)
        return lines

    @property
    def begun(self) -> str:
        """The line in progress, as far as it was received."""
        return self._begun + (CUT if self._cut else "")

    def close(self) -> list[str]:
        """The line in progress, where the stream ends without a line break."""
        return [self._end()] if self._begun else []

    def _go_on(self, part: str) -> None:
        """Add to the line in progress."""
        shown = part.rstrip("\r")
        if not shown:
            self._returned = self._returned or bool(part)
            return
        if self._returned or "\r" in shown:
            self._begun, self._cut = "", False
        self._returned = shown != part
        shown = shown.rpartition("\r")[2]
        room = MOST_CHARACTERS - len(self._begun)
        self._cut = self._cut or len(shown) > room
        self._begun += shown[:room]

    def _end(self) -> str:
        line = self.begun
        self._begun, self._cut, self._returned = "", False, False
        return line


def _shown(line: str) -> str:
    """A complete line as it is shown."""
    if "\r" in line:
        line = line.rstrip("\r").rpartition("\r")[2]
    return line if len(line) <= MOST_CHARACTERS else line[:MOST_CHARACTERS] + CUT
