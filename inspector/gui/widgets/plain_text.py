"""The one rule for text from outside: it is plain text, wherever it is shown.

Qt renders text that looks like HTML: `<s>` would vanish and `<img src=…>` would open files. Every label, message box,
tooltip and axis title goes through here.
"""

from __future__ import annotations

import html
import re

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QMessageBox, QWidget

from inspector.records.plain_text import plain_text

MAY_BREAK = "\u200b"
"""A space without width: a line may end there."""
_LONG, _PIECE = re.compile(r"\S{60,}"), re.compile(r"\S{1,24}")
_VISIBLE = {" ": "␣", "\n": "↵", "\t": "⇥", "\r": "␍", "": "∅"}


def clean(text: str) -> str:
    """Invisible characters made visible, overlong text cut; see records/plain_text.py."""
    return plain_text(text)


def breakable(text: str) -> str:
    """Clean text whose very long words (a sequence without spaces, a path) may be broken, so that a label that wraps
    can be narrower than they are."""
    return _LONG.sub(lambda word: MAY_BREAK.join(_PIECE.findall(word.group())), clean(text))


def token(text: str) -> str:
    """A token as it is drawn on an axis: white space is visible, nothing is markup."""
    if text in _VISIBLE:
        return _VISIBLE[text]
    shown = text.replace("\n", "↵").replace("\t", "⇥").replace("\r", "␍")
    if shown != shown.strip(" "):
        stripped = shown.strip(" ")
        before, after = len(shown) - len(shown.lstrip(" ")), len(shown) - len(shown.rstrip(" "))
        shown = "␣" * before + stripped + ("␣" * after if stripped else "")
    return clean(shown)


def escaped(text: str) -> str:
    """Text for the places that always read HTML (pyqtgraph's titles, legends and axis labels)."""
    return html.escape(clean(text), quote=True)


def tooltip(text: str) -> str:
    """Text for a tooltip: marked as HTML and escaped, so that Qt does not guess; lines stay lines."""
    return f"<qt>{escaped(text).replace(chr(10), '<br>')}</qt>" if text else ""


def plain_label(text: str = "", parent: QWidget | None = None) -> QLabel:
    """A label that shows its text as it is."""
    label = QLabel(parent)
    label.setTextFormat(Qt.TextFormat.PlainText)
    label.setText(clean(text))
    return label


def plain_box(parent: QWidget | None, title: str, text: str, details: str = "") -> QMessageBox:
    """A message box whose texts are plain; details can be copied."""
    box = QMessageBox(parent)
    box.setTextFormat(Qt.TextFormat.PlainText)
    box.setWindowTitle(clean(title))
    box.setText(clean(text))
    if details:
        box.setDetailedText(clean_block(details))
    return box


def clean_block(text: str, limit: int = 200_000) -> str:
    """Many lines, each cleaned, the whole cut at `limit` characters."""
    return "\n".join(clean(line) for line in text[:limit].split("\n"))


def running(name: str, spaces: bool) -> str:
    """A token in running text: line breaks are visible; tokens that are words are separated by spaces."""
    text = name if name == " " else token(name)
    return f"{text} " if spaces else text
