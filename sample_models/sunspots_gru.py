"""GRU on a real time series, S9: the sunspot numbers of the years 1700 to 2008, the next year from those before.

The cycle of about eleven years has to be carried in the state: look at the units, and at the timescales of the update
gate. The last fifty years were not trained on. Source of the numbers: data/SOURCES.md.
Trained, its error on them is 17 spots (root of the mean square); saying the year before again errs by 30.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
from torch import Tensor, nn

from sample_models.base import FOLDER, Batch, Plain, Sample, Training, seeded
from sample_models.readers import Transducer

SAMPLE = {
    "name": "sunspots-gru",
    "row": "S9",
    "title": "GRU, sunspots by year",
    "task": "next year's sunspot number, in hundreds",
    "shows": "units that follow the eleven-year cycle, gates on a series of real measurements",
}
WINDOW, ROWS, HELD_OUT = 60, 32, 50


@cache
def sunspots() -> Tensor:
    """(309, 1): sunspot numbers in hundreds, 1700 to 2008."""
    table = np.loadtxt(FOLDER / "data" / "sunspots.csv", delimiter=",", skiprows=1, dtype=np.float32)
    return torch.from_numpy(table[:, 1:] / 100)


def draw(generator: torch.Generator) -> Plain:
    """A batch of random windows that end before the last fifty years."""
    starts = torch.randint(0, len(sunspots()) - HELD_OUT - WINDOW, (ROWS, 1), generator=generator)
    return Plain(sunspots()[starts + torch.arange(WINDOW)], torch.full((ROWS,), WINDOW))


def next_value_loss(answers: Tensor, batch: Batch) -> Tensor:
    """(b, t): half the squared error of the prediction of step t + 1; NaN at the last real step and on padding."""
    b, t, _ = answers.shape
    wanted = batch.inputs[:, 1:, 0]
    values = (answers[:, :-1, 0] - wanted) ** 2 / 2
    values = torch.cat((values, values.new_full((b, 1), torch.nan)), dim=1)
    real = torch.nonzero(torch.arange(t)[None] < batch.lengths[:, None] - 1, as_tuple=True)
    return answers.new_full((b, t), torch.nan).index_put(real, values[real])


def build() -> Sample:
    """16 units, untrained."""
    with seeded():
        model = Transducer(nn.GRU(1, 16, batch_first=True), 1)
    years = sunspots().numpy()
    return Sample(
        model=model, name="sunspots-gru", kind="vectors", width=1, loss=next_value_loss,
        training=Training(draw, steps=1600),
        examples={"1700 to 2008": years, "the last 100 years": years[-100:], "1750 to 1850": years[50:151]},
    )  # fmt: skip
