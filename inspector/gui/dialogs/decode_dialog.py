"""How an answer is to be searched for: greedily, by chance or by a beam, with the settings of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from PySide6.QtWidgets import QComboBox, QWidget

from inspector.gui.dialogs.options_dialog import OptionsDialog
from inspector.records import Decode, Option
from inspector.records.decoding import HOWS, MOST_LONG, MOST_WIDE

TITLE = "Decode an answer"
WORDS = (
    "The answer to the sequence that stands in the window is searched for token by token. The tree of what was tried "
    "is shown in Decoding; the hypotheses shown are run with every quantity, each as a frame."
)
DRAWN = ("sample",)
_DEFAULT = asdict(Decode())


def _option(name: str, kind: Any, about: str, **more: Any) -> Option:
    return Option(name=name, type=kind, default=_DEFAULT[name], help=about, **more)


OPTIONS = (
    _option("how", "choice", "The likeliest token at each step, draws, or a beam", choices=HOWS),
    _option(
        "width", "int", "Hypotheses of a beam, samples drawn, or tokens noted at each greedy step",
        low=1, high=MOST_WIDE,
    ),
    _option("longest", "int", "Tokens of an answer at most, its end included", low=1, high=MOST_LONG),
    _option("length_penalty", "float", "α of the score ln p / ((5 + tokens) / 6)^α; 0: ln p itself"),
    _option("temperature", "float", "Logits are divided by it", of_value=DRAWN),
    _option("top_k", "int", "Draw from the k likeliest tokens; 0: from all", low=0, of_value=DRAWN),
    _option(
        "top_p", "float", "Draw from the fewest tokens whose probabilities sum to p", low=0, high=1, of_value=DRAWN
    ),
    _option("shown", "int", "How many hypotheses are run with every quantity, each as a frame", low=0),
)  # fmt: skip
"""The settings of a search, as options."""


class DecodeDialog(OptionsDialog):
    """`decode` is the search that was accepted; what it cannot be given is said above the buttons."""

    def __init__(self, values: Mapping[str, Any], parent: QWidget) -> None:
        super().__init__(TITLE, WORDS, OPTIONS, values, parent)
        self.decode = Decode()
        self.how = self.fields.fields["how"]
        assert isinstance(self.how, QComboBox)
        self.how.currentTextChanged.connect(self._arrange)
        self._arrange(self.how.currentText())
        self.setMinimumWidth(460)

    def _arrange(self, how: str) -> None:
        """Only the settings of this kind of search, so that no other is given."""
        self.fields.show_only(how)
        self.adjustSize()

    def _read(self) -> dict[str, Any]:
        values = super()._read()
        self.decode = Decode(**values)
        return values
