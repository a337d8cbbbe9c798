"""Cells of a table whose long words are broken where there is no room for them, and are not cut."""

from __future__ import annotations

import re
from collections.abc import Callable

from PySide6.QtCore import QModelIndex, QPersistentModelIndex
from PySide6.QtWidgets import QStyledItemDelegate, QStyleOptionViewItem

from inspector.gui.widgets.plain_text import MAY_BREAK

RUN, AROUND = 6, 8
"""Characters after which a word may be broken that has no better place; pixels of a cell left and right of its text."""
_NUMBER = re.compile(r"[-+−]?[\d.,]+(e[-+]?\d+)?")
_PLACES = re.compile(r"(?<=[/.:_=|)\]])(?=\w)")


def broken_to_fit(text: str, fits: Callable[[str], bool] = lambda _word: False) -> str:
    """The same text, whose words may be broken after their parts ("gradient/" "arriving") where they do not fit into a
    line; numbers stay whole."""
    words = text.split(" ")
    return " ".join(word if _NUMBER.fullmatch(word) or fits(word) else _broken(word) for word in words)


def in_short_lines(heading: str) -> str:
    """A heading in lines that are hardly longer than its longest word."""
    words = heading.split()
    most = max((len(word) for word in words), default=0)
    lines: list[str] = []
    for word in words:
        if lines and len(lines[-1]) + 1 + len(word) <= most:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return "\n".join(lines)


def _broken(word: str) -> str:
    parts = _PLACES.split(word)
    return MAY_BREAK.join(part[at : at + RUN] for part in parts for at in range(0, max(1, len(part)), RUN))


class BreakingDelegate(QStyledItemDelegate):
    """What is copied or read out is the text itself: only what is drawn has places to break."""

    def initStyleOption(self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> None:
        """The text as it is drawn, and measured."""
        super().initStyleOption(option, index)
        room, metrics = option.rect.width() - AROUND, option.fontMetrics
        if room > 0:
            option.text = broken_to_fit(option.text, lambda word: metrics.horizontalAdvance(word) <= room)
