"""GRU as textbooks write it, S9, by hand: h̃ = tanh(x W + (r ⊙ h) U + b), h' = z ⊙ h + (1 − z) ⊙ h̃.

Of the size of char-gru and on the same text, but there r multiplies h U + b (PyTorch), here it multiplies h. r = 1 and
z = 0 make a plain network, r = 0 forgets, z = 1 copies the state.
Trained, it needs 2.52 bits a character on held-out text; counting characters needs 4.7, and char-gru 2.50.
"""

from __future__ import annotations

from sample_models.base import Sample, seeded
from sample_models.cells import TextbookGruCell
from sample_models.text import EMBEDDED, written

SAMPLE = {
    "name": "gru-textbook",
    "row": "S9",
    "title": "GRU as in textbooks, characters",
    "task": "next character of Alice's Adventures in Wonderland",
    "shows": "reset gate inside the product, to be compared with PyTorch's; r, z and the candidate unit by unit",
}


def build() -> Sample:
    """48 units, untrained."""
    with seeded():
        return written("gru-textbook", TextbookGruCell(EMBEDDED, 48))
