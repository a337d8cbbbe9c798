"""The overview's pictures of a training that is followed: what goes over it is read again while one frame is shown."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from inspector.capture import Writer, open_capture
from inspector.gui.panel.overview.look_over import LookOver
from inspector.records import Axis, Channel, Frame, Page, Place, RunStart, RunStop

OVER_TRAINING = ("loss", "update-by-layer")


class Training:
    """A capture that grows like one of `inspector.watch`: curves in frame 0, probes in frames of their own."""

    def __init__(self, path: Path) -> None:
        start = RunStart(run="r", title="t", places=(Place(name="", module="Net"),), meta={"training": {}})
        self.writer, self.count = Writer(path, start), 0
        self.writer.write(Axis(name="iteration", title="iteration", unit="iteration"))
        along = {"iteration": "coordinate", "loss": "series"}
        for name, kind in along.items():
            self._has(f"training:{name}", kind, ("iteration",), (None,))
        self._has("training:update/ratio", "series", ("iteration", "parameter"), (None, 2))
        self._has("x:h", "state", ("step", "unit"), (3, 2))

    def _has(self, name: str, kind: str, dims: tuple[str, ...], shape: tuple[int | None, ...]) -> None:
        self.writer.write(Channel(name=name, kind=kind, dims=dims, shape=shape, title=name.split(":")[1]))

    def goes_on(self, count: int) -> None:
        numbers = np.arange(self.count, self.count + count, dtype=np.float32)
        self.writer.write(Page("training:iteration", 0, (self.count,), numbers))
        self.writer.write(Page("training:loss", 0, (self.count,), 1 / (1 + numbers)))
        self.writer.write(Page("training:update/ratio", 0, (self.count, 0), np.ones((count, 2), np.float32)))
        self.count += count
        self.writer.flush()

    def probed(self, frame: int) -> None:
        self.writer.write(Frame(index=frame, label=f"iteration {self.count}", step=self.count))
        self.writer.write(Page("x:h", frame, (0, 0), np.ones((3, 2), np.float32)))
        self.writer.flush()


def ends_of(look: LookOver, key: str) -> tuple[float, float]:
    """The first and the last iteration of a picture."""
    sketch = look.pictures[key].sketch
    assert sketch is not None
    return sketch.ends


@pytest.mark.usefixtures("qapp")
@pytest.mark.parametrize("frame", [-1, 0, 1])
def test_pictures_over_training_are_read_to_its_end_while_one_frame_is_shown(tmp_path: Path, frame: int) -> None:
    training = Training(tmp_path / "a.inspect")
    for probe in (0, 1):
        training.probed(probe)
        training.goes_on(10)
    look = LookOver()
    with open_capture(tmp_path / "a.inspect") as capture:
        look.show(capture, frame)
        look.wait()
        assert [ends_of(look, key) for key in OVER_TRAINING] == [(0.0, 19.0)] * 2
        states = look.pictures["states"]
        training.goes_on(30)
        training.writer.write(RunStop("done"))
        training.writer.close()
        capture.refresh()
        look.grown()
        look.wait()
        assert [ends_of(look, key) for key in OVER_TRAINING] == [(0.0, 49.0)] * 2
        assert look.pictures["states"] is states, "what has not changed is not read again"
        look.close()
