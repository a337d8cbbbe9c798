"""The choice of one channel of a place in a combo box.

A person reads titles; what is chosen is the channel's signal. Titles are no keys: two channels may have the same one,
and one channel has other titles in other frames (the gate of an edited run), where the choice must stay.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from PySide6.QtWidgets import QComboBox

from inspector.gui.widgets.plain_text import clean
from inspector.records import Channel


def offer(box: QComboBox, texts: Mapping[str, str]) -> None:
    """Offer these texts, by key. The key that is chosen stays where it still exists; no signal is sent."""
    present = [(box.itemData(i), box.itemText(i)) for i in range(box.count())]
    if present == list(texts.items()):
        return
    kept = box.currentData()
    box.blockSignals(True)
    box.clear()
    for key, text in texts.items():
        box.addItem(text, key)
    box.setCurrentIndex(list(texts).index(kept) if kept in texts else 0)
    box.blockSignals(False)


def offer_channels(box: QComboBox, channels: Sequence[Channel]) -> None:
    """Offer the channels of one place."""
    offer(box, distinct({channel.signal: channel.title for channel in channels}))


def chosen(box: QComboBox, channels: Iterable[Channel]) -> Channel | None:
    """The one of some channels of a place that was chosen; None where it is not among them."""
    return next((channel for channel in channels if channel.signal == box.currentData()), None)


def distinct(texts: Mapping[str, str]) -> dict[str, str]:
    """Texts that can be shown, by key; where two of them are equal, their keys."""
    cleaned = {key: clean(text) for key, text in texts.items()}
    counts = Counter(cleaned.values())
    return {key: text if counts[text] == 1 else clean(key) for key, text in cleaned.items()}
