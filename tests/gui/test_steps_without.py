"""In the strip, NaN of a step that carries no loss has no colour; NaN that a model made has that of NaN."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from inspector.capture import Writer, open_capture
from inspector.gui.window.steps_without import steps_without
from inspector.records import Channel, Frame, Page, RunStart, RunStop

NAN = float("nan")


@pytest.mark.parametrize(
    ("loss", "entropy", "nans", "expected"),
    [
        ([NAN, 1, 2, 3], [1, 1, 1, 1], 0, [True, False, False, False]),
        ([NAN, NAN, NAN, 3], [1, 1, 1, 1], 0, [True, True, True, False]),
        ([NAN, 1, NAN, NAN], [1, 1, NAN, NAN], 8, [True, False, False, False]),
        ([NAN, NAN, NAN, 3], None, 0, [True, True, True, False]),
        ([NAN, 1, NAN, NAN], None, 8, [False, False, False, False]),
        ([1, 1, 2, 3], [1, 1, 1, 1], 0, [False, False, False, False]),
    ],
    ids=["first", "last only", "diverged", "vectors", "vectors diverged", "all"],
)
@pytest.mark.parametrize("signal", ["loss", "surprise"])
def test_steps_that_carry_no_loss(
    tmp_path: Path, signal: str, loss: list[float], entropy: list[float] | None, nans: int, expected: list[bool]
) -> None:
    channel = Channel(name=f"output:{signal}", kind="output", dims=("step",), shape=(4,), title=signal)
    with Writer(tmp_path / "a.inspect", RunStart(run="r", title="t")) as writer:
        writer.write(Frame(index=0))
        writer.write(channel)
        writer.write(Page(channel.name, 0, (0,), np.asarray(loss, np.float32)))
        if entropy is not None:
            about = Channel(name="output:entropy", kind="output", dims=("step",), shape=(4,), title="entropy")
            writer.write(about)
            writer.write(Page(about.name, 0, (0,), np.asarray(entropy, np.float32)))
        counts = Channel(name="output:health/output", kind="health", dims=("count",), shape=(2,), dtype="int64",
                         title="counts", labels={"count": ("inf", "nan")})  # fmt: skip
        writer.write(counts)
        writer.write(Page(counts.name, 0, (0,), np.array([0, nans])))
        writer.write(RunStop("done"))
    with open_capture(tmp_path / "a.inspect") as capture:
        values = np.asarray(loss, np.float32)
        assert steps_without(capture, channel, 0, values).tolist() == expected
        state = Channel(name="a:h", kind="state", dims=("step",), shape=(4,))
        assert not steps_without(capture, state, 0, values).any(), "of any other quantity NaN is what the model made"
