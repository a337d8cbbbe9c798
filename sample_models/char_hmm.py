"""Hidden Markov model on text, S22: six states that nobody named, trained by the gradient of the log-likelihood.

Trained, they part a word: one state is what stands between words, one begins them, one ends them, others are the
letters inside. Look at the posterior of the states beside the Viterbi path, at the transitions, and at how long a
state lasts.
"""

from __future__ import annotations

from sample_models.base import Sample, seeded
from sample_models.state_space import HiddenMarkov
from sample_models.text import character_sample, vocabulary

SAMPLE = {
    "name": "char-hmm",
    "row": "S22",
    "title": "Hidden Markov model, characters",
    "task": "next character of Alice's Adventures in Wonderland",
    "shows": "the posterior of hidden states against the Viterbi path, transitions, occupancy and dwell times",
}
STATES = 6


def build() -> Sample:
    """Six states, untrained."""
    with seeded():
        model = HiddenMarkov(STATES, len(vocabulary()))
    return character_sample("char-hmm", model, rate=5e-2, steps=1600)
