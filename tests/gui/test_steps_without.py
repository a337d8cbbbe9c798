"""In the strip, NaN of a step that carries no loss has no colour; NaN that a model made has that of NaN."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from inspector.capture import Difference, Writer, open_capture
from inspector.gui.window.bars.steps_without import steps_without
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


def test_a_change_of_the_loss_has_no_colour_where_neither_run_has_a_loss(tmp_path: Path) -> None:
    path, losses = tmp_path / "a.inspect", ([NAN, 1, 2, 3], [NAN, 1, NAN, 4])
    channel = Channel(name="output:loss", kind="output", dims=("step",), shape=(4,), title="loss", compare="difference")
    counts = Channel(name="output:health/loss", kind="health", dims=("count",), shape=(2,), dtype="int64",
                     title="counts", labels={"count": ("inf", "nan")})  # fmt: skip
    about = Channel(name="output:entropy", kind="output", dims=("step",), shape=(4,), title="entropy")
    with Writer(path, RunStart(run="r", title="t")) as writer:
        for frame, (loss, nans, entropy) in enumerate(
            zip(losses, (0, 1), ([NAN, 1, 1, 1], [NAN, 1, NAN, 1]), strict=True)
        ):
            writer.write(Frame(index=frame))
            for one, numbers in ((channel, loss), (counts, [0, nans]), (about, entropy)):
                writer.write(one)
                writer.write(Page(one.name, frame, (0,), np.asarray(numbers, one.dtype)))
        writer.write(RunStop("done"))
    with open_capture(path) as capture:
        both = Difference(capture, 0, 1)
        values = np.asarray(both.array(channel.name, 1))
        assert np.isnan(values).tolist() == [True, False, True, False]
        found = steps_without(both, both.channels[channel.name], 1, values)
        assert found.tolist() == [True, False, False, False], "the second run's model made NaN of the third step"
