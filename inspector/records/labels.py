"""Names of label domains (whose names the positions of an axis bear) and the prefixes that two packages share."""

from __future__ import annotations

STEP_DOMAIN = "step"
"""Steps of the input sequence."""
ANSWER_DOMAIN = "answer step"
"""Steps of an answer that has steps of its own (what a decoder says)."""
VOCABULARY_DOMAIN = "vocabulary"
"""Entries of the model's vocabulary, by token id."""
CLASS_DOMAIN = "class"
"""Names of the output classes."""
CARRIED = "carried:"
"""Prefix of the domain that lists all variables that a hand-written recurrence carries on, by its place."""
STATE = "state:"
"""Prefix of the domain that lists the variables taken for the state of a hand-written recurrence, by its place."""
