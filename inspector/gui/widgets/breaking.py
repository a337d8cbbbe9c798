"""Cells of a table whose long words are broken where there is no room for them, and are not cut."""

from __future__ import annotations

import re

from PySide6.QtCore import QModelIndex, QPersistentModelIndex
from PySide6.QtWidgets import QStyledItemDelegate, QStyleOptionViewItem

MAY_BREAK = "\u200b"
"""A space without width: a line may end there."""
WHOLE, RUN = 14, 10
"""Characters of a word that stays whole, and those after which a longer one may be broken that has no better place."""
_NUMBER = re.compile(r"[-+−]?[\d.,]+(e[-+]?\d+)?")
_PLACES = re.compile(r"(?<=[/.:_=|)\]])(?=\w)")


def breakable(text: str) -> str:
    """The same text, whose long words may be broken after their parts ("gradient/" "arriving"); numbers stay whole."""
    words = text.split(" ")
    return " ".join(word if len(word) <= WHOLE or _NUMBER.fullmatch(word) else _broken(word) for word in words)


def _broken(word: str) -> str:
    parts = _PLACES.split(word)
    return MAY_BREAK.join(part[at : at + RUN] for part in parts for at in range(0, max(1, len(part)), RUN))


class BreakingDelegate(QStyledItemDelegate):
    """What is copied or read out is the text itself: only what is drawn has places to break."""

    def initStyleOption(self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> None:
        """The text as it is drawn, and measured."""
        super().initStyleOption(option, index)
        option.text = breakable(option.text)
