"""Which parameters changed most, by what captures hold: weight norms at the iterations of frames, paths of checkpoints."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
from captures import START

from inspector.analysis.parameter_norms import checkpoint_of, norm_changes
from inspector.capture import Reference, Writer, open_capture
from inspector.records import Channel, Frame, Labels, Page, RunStop

WEIGHTS = Channel(name="parameters:weight/norm", kind="series", dims=("iteration", "parameter"), shape=(None, None),
                  dtype="float64", title="weight norm")  # fmt: skip
STEPS = Channel(name="training:iteration", kind="coordinate", dims=("iteration",), shape=(None,), dtype="float64")
NORMS = np.array([[1.0, 2.0, 0.0], [1.5, 2.0, 0.0], [3.0, 1.0, 4.0]])


def test_norms_are_those_at_the_iterations_of_the_frames(tmp_path: Path) -> None:
    with Writer(tmp_path / "w.inspect", START) as writer:
        for index, step in enumerate((10, 25, 30)):
            writer.write(Frame(index=index, step=step))
        writer.write(Labels("parameter", ("w", "b", "new")))
        for channel, array in ((STEPS, np.array([10.0, 20.0, 30.0])), (WEIGHTS, NORMS)):
            writer.write(channel)
            writer.write(Page(channel.name, 0, (0,) * array.ndim, array))
        writer.write(RunStop("done"))
    with open_capture(tmp_path / "w.inspect") as capture:
        first, between, last = (Reference(capture, n, str(n)) for n in range(3))
        found = norm_changes(first, last)
        assert [(one.name, one.first, one.second, one.relative) for one in found] == [
            ("new", 0.0, 4.0, math.inf), ("w", 1.0, 3.0, 2.0), ("b", 2.0, 1.0, 0.5),
        ]  # fmt: skip
        assert all(math.isnan(one.change) for one in found)
        assert [one.relative for one in norm_changes(first, between)] == [0.5, 0.0, 0.0]  # the last one before it
        assert checkpoint_of(first) is None


def test_checkpoints_are_those_of_the_frame_else_of_the_run_where_they_still_exist(tmp_path: Path) -> None:
    for name in ("run.pt", "swept.pt"):
        (tmp_path / name).write_bytes(b"x")
    with Writer(tmp_path / "c.inspect", replace(START, checkpoint=str(tmp_path / "run.pt"))) as writer:
        writer.write(Frame(index=0, meta={"sweep": {"path": str(tmp_path / "swept.pt")}}))
        writer.write(Frame(index=1))
        writer.write(Frame(index=2, meta={"sweep": {"path": str(tmp_path / "gone.pt")}}))
        writer.write(RunStop("done"))
    with open_capture(tmp_path / "c.inspect") as capture:
        found = [checkpoint_of(Reference(capture, n)) for n in range(3)]
    assert found == [tmp_path / "swept.pt", tmp_path / "run.pt", None]
