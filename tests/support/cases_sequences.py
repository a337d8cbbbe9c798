"""What is to be read in the panels of many sequences and of dh/dθ: see reading.py."""

from __future__ import annotations

import numpy as np
from panel_captures import channel
from reading import Case

from inspector.records import SEQUENCE_DOMAIN, Labels

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
CASES = (SEQUENCES, STATE_DERIVATIVES)
