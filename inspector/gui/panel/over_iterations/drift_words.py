"""How far an answer that a model says by itself drifts from the right one, as sentences."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
GOES_ON = "drift/continued"
"""Signal of what a model that continues texts says of their second halves: no answer is the right one."""


def of_several(signal: str, drift: Array) -> str:
    """How often several sequences are said wrongly, after the model's own tokens and after right ones; of texts that go
    on, how sure the model is in its own ones. `drift` (statistic, sequence)."""
    table: Array = np.ma.filled(np.ma.asarray(drift, dtype=float), np.nan)
    known = table[:, np.isfinite(table[:2]).all(0)]
    if not known.size:
        return ""
    if signal == GOES_ON:
        data, own = (float(known[row].mean()) for row in (1, 3))
        return f"{known.shape[1]} second halves: {own:.3g} nats a token at the end of its own, {data:.3g} of the data."
    forced, free = (100 * float(row.mean()) for row in known[:2])
    return (
        f"Of the tokens of {known.shape[1]} sequences {free:.3g} % are wrong after its own, {forced:.3g} % after the "
        "right ones."
    )


def parted(wrong: Array) -> str:
    """Where the best hypothesis first differs from the right answer; `wrong` (step,) is 0 where it does not."""
    at = np.flatnonzero(wrong)
    if not len(at):
        return "the best hypothesis is right, as far as both go"
    return f"first wrong: token {at[0] + 1} of the best hypothesis"
