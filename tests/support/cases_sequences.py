"""What is to be read in the panels of many sequences and of dh/dθ: see reading.py."""

from __future__ import annotations

import numpy as np
from panel_captures import channel
from reading import Case

from inspector.records import SEQUENCE_DOMAIN, Labels, Scalar

LAYER = "rnn.l0"
LOSS = np.array([1.5, 4.0, 2.5, 2.0])
HORIZON = np.array([7.0, np.nan, 3.0, 5.0])
SOURCE = np.arange(5)
TERMS = 10.0 ** np.array([-2.0, -1.0, -1.5, 0.0, 0.5])
SEQUENCES = Case(
    "sequences",
    (
        channel("sequences:loss", "sequences", ("sequence",), LOSS, title="mean loss", unit="nat"),
        channel(f"{LAYER}:sequences/horizon", "sequences", ("sequence",), HORIZON, title="horizon of rnn.l0"),
        Labels(SEQUENCE_DOMAIN, ("a", "b", "c", "d"), 0),
    ),
    axes={"distribution.plot": ("sequences", "mean loss [nat]")},
    titles={"distribution.plot": "2.5 ± 1.1"},
    saved={"sequences:loss": LOSS, f"{LAYER}:sequences/horizon": HORIZON},
)
STATE_DERIVATIVES = Case(
    "state_derivatives",
    (
        channel(
            f"{LAYER}:state_derivative/weight_hh/4", "state_derivative", ("step",), TERMS, title="‖∂h[4]/∂weight_hh‖",
            scale="log", compare="ratio",
        ),
    ),
    at={"step": 3},
    axes={"curves.plot": ("norm of the term of dhₜ/dθ", "step")},
    curves=(("curves.legend", "‖∂h[4]/∂weight_hh‖", SOURCE, TERMS),),
    told=((f"‖∂h[4]/∂weight_hh‖ [3]  {LAYER}", "1"),),
    saved={f"{LAYER}:state_derivative/weight_hh/4": TERMS},
)  # fmt: skip
PARTS = np.array([[1.0, 4.0, 0.5], [0.2, 0.9, -0.1], [0.1, 0.3, 0.2]])
BY_STEP = np.array([[np.nan, 1.0, 3.0, 0.2, np.nan], [np.nan, 0.25, 0.75, 0.0, np.nan], [0.0, 0.1, 0.3, 0.01, 0.0]])
STATISTICS = {"statistic": ("norm", "share", "norm at the output")}
SPIKE = Case(
    "spike",
    (
        channel("spike:samples", "spike", ("statistic", "sequence"), PARTS, labels=STATISTICS),
        channel("spike:steps", "spike", ("statistic", "step"), BY_STEP, labels=STATISTICS),
        Scalar("spike:sample", 0, 1.0),
        Scalar("spike:check", 0, 1e-7),
    ),
    at={"step": 2},
    axes={"samples": ("share", "sample"), "of_steps": ("share", "step")},
    titles={"samples": "share of each sample", "of_steps": "share of each loss step, of sample 1"},
    told=(
        ("norm of the loss step [2]", "3"), ("share of the loss step [2]", "0.75"),
        ("norm at the output of the loss step [2]", "0.3"),
    ),
    saved={"spike:samples": PARTS, "spike:steps": BY_STEP},
)  # fmt: skip
CASES = (SEQUENCES, STATE_DERIVATIVES, SPIKE)
