"""Text from outside as plain text: no character moves a cursor, changes a colour, turns the reading order or hides.

Names, titles, messages and file names come from models, checkpoints, captures and arguments. A terminal obeys what is
in them (ESC sequences rename its window, move the cursor over what was printed, answer with keystrokes), so every
character that is not shown as itself is written as its code: ⟨001b⟩.
"""

from __future__ import annotations

import re

LONGEST_LINE = 2_000
LONGEST_SENTENCE = 800
"""Characters of an error message. The longest message of this package, which lists every quantity, has 740."""
LAST_WORDS = 200
"""Characters kept from the end of a sentence that is cut: what to do about it is often there."""

_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 without tab and line feed, DEL, C1 (0x9b alone begins an escape sequence)
    "\u00ad\u200b-\u200d\u2060-\u2064\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"  # of no width
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\u206a-\u206f"  # what turns the direction of the text around it
    "\u2028\u2029\ud800-\udfff]"  # line and paragraph separator, lone surrogates
)
_SEQUENCE = re.compile("(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]|(?:\x1b\\]|\x9d)[^\x07\x1b\x9c]*(?:\x07|\x1b\\\\|\x9c)")
"""A control sequence (colours, cursor) or an operating system command (titles, links), from ESC or from C1."""
_PLAIN = bytes([9, 10, *range(0x20, 0x7F)])
"""The characters of ASCII that are shown as themselves, tab and line feed."""


def plain_text(text: str, limit: int = LONGEST_LINE) -> str:
    """Invisible characters as their codes and the whole cut at `limit` characters; tabs and line breaks stay."""
    shown = _UNSEEN.sub(_code, text[: limit + 1])  # cut first: a name may have millions of characters
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"


def plain_line(text: str, limit: int = LONGEST_LINE) -> str:
    """The same on one line: line breaks are shown as ↵, tabs as ⇥."""
    return plain_text(_one_line(text[: limit + 1]), limit)


def plain_sentence(text: str, limit: int = LONGEST_SENTENCE) -> str:
    """One line of at most `limit` characters that keeps its end where the middle had to be left out."""
    last = min(LAST_WORDS, limit // 3)
    if len(text) <= limit and len(whole := plain_line(text, limit + 1)) <= limit:
        return whole
    end = plain_line(text[-last:], 8 * last)[-last:]  # the code of a character has at most seven
    return f"{plain_line(text, limit - last - 1).removesuffix('…')}…{end}"


def shortened(text: str, limit: int) -> str:
    """A text for a message, with "…" for what lies behind its first `limit` characters. Else as it stands."""
    return text if len(text) <= limit else f"{text[:limit]}…"


def printed_piece(text: str) -> str:
    """A piece of what a model printed, of any length: colours are left out, line breaks and tabs stay.

    A carriage return would let a line be written over: it ends its line. Most output is plain, which is seen thirty
    times as fast as it is cleaned: a model may print gigabytes.
    """
    if text.isascii() and not text.encode("ascii").translate(None, _PLAIN):
        return text
    whole = _SEQUENCE.sub("", text).replace("\r\n", "\n").replace("\r", "\n")
    return _UNSEEN.sub(_code, whole)


def encodable(text: str, encoding: str | None) -> str:
    """The text as a stream of that encoding can take it: other characters as \\xNN, \\uNNNN."""
    known = encoding or "utf-8"
    try:
        return text.encode(known, "backslashreplace").decode(known)
    except LookupError:
        return text.encode("ascii", "backslashreplace").decode("ascii")


def _code(match: re.Match[str]) -> str:
    return f"⟨{ord(match.group()):04x}⟩"


def _one_line(text: str) -> str:
    return text.replace("\r\n", "↵").replace("\n", "↵").replace("\t", "⇥")
