"""Elman network with a skip connection through time on the adding problem, S7: h_t also receives h_{t−8}.

The gradient has two paths, one Jacobian a step, or one for eight steps: look at the lag curve's second path, and
compare it with adding-elman. The state handed on is the augmented one, (h_t, …, h_{t−7}).
Trained, its loss is 0.006 (half the squared error), with half the units; always saying 1 costs 1/12 = 0.083.
"""

from __future__ import annotations

from sample_models.adding import adding_sample
from sample_models.base import Sample, seeded
from sample_models.cells import SkipThroughTime, Unrolled

SAMPLE = {
    "name": "skip-elman",
    "row": "S7",
    "title": "Elman network with a skip of eight steps",
    "task": "the sum of the two marked numbers among 20 to 40, asked for at the end",
    "shows": "the Jacobian of the augmented state, and a lag curve with bumps at multiples of eight steps",
}


def build(skip: int = 8) -> Sample:
    """16 tanh units that also see themselves `skip` steps ago, untrained."""
    with seeded():
        return adding_sample("skip-elman", Unrolled(SkipThroughTime(2, 16, skip)))
