"""Captures of a few numbers that are known, written without a model, and a panel over them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.capture import Difference, Writer, open_capture
from inspector.gui.export.offscreen import Stage
from inspector.gui.widgets.theme import LIGHT
from inspector.records import Channel, Frame, Labels, Page, Refusal, RunStart, RunStop, Scalar

Written = tuple[Channel, npt.NDArray[Any]]
"""A channel and its whole array. The second of the same name is of the next frame."""
SIZE = (1100, 760)


def channel(name: str, kind: str, dims: Sequence[str], values: npt.NDArray[Any], **more: Any) -> Written:
    """A channel that has the shape and type of its numbers, entitled by its signal."""
    about = {"title": name.rpartition(":")[2], **more}
    return Channel(name=name, kind=kind, dims=tuple(dims), shape=values.shape, dtype=str(values.dtype), **about), values


def write_frames(folder: Path, *parts: Written | Scalar | Labels | Refusal) -> Path:
    """A finished capture of one frame or two."""
    path = folder / "a.inspect"
    counts: dict[str, int] = {}
    with Writer(path, RunStart(run="r", title="t")) as writer:
        names = [part[0].name for part in parts if isinstance(part, tuple)]
        for frame in range(max((names.count(name) for name in names), default=1)):
            writer.write(Frame(index=frame, label=("as it is", "edited")[frame]))
        for part in parts:
            if isinstance(part, tuple):
                frame = counts[part[0].name] = counts.get(part[0].name, -1) + 1
                writer.write(part[0])
                writer.write(Page(part[0].name, frame, (0,) * part[1].ndim, np.ascontiguousarray(part[1])))
            else:
                writer.write(part)
        writer.write(RunStop("done"))
    return path


@contextlib.contextmanager
def shown(
    folder: Path, key: str, *parts: Written | Scalar | Labels | Refusal, difference: bool = False, place: str = ""
) -> Iterator[tuple[Stage, Any]]:
    """A panel over such a capture, or over the difference of its two frames; the stage holds the cursor."""
    with open_capture(write_frames(folder, *parts)) as capture:
        stage = Stage(capture, SIZE, LIGHT)
        try:
            panel: Any = stage.panel(key, place=place)
            if difference:
                panel.set_capture(Difference(capture, 0, 1))
            assert panel.state == "figure", panel._error.toPlainText()
            yield stage, panel
        finally:
            stage.close()
