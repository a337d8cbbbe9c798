"""A capture with numbers that a test chose, and what the rules find in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.capture import Writer, open_capture
from inspector.diagnosis import Diagnosis, diagnose
from inspector.records import Channel, Finding, Frame, Page, RunStart, RunStop, Scalar

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Measured:
    """One channel: its kind and dims, its values, and further fields of its description; `rows` of it are written."""

    kind: str
    dims: tuple[str, ...]
    values: Any
    about: Mapping[str, Any] = field(default_factory=dict)
    rows: int | None = None


def judged(
    path: Path,
    frames: Sequence[Mapping[str, Measured]],
    scalars: Mapping[str, float] | None = None,
    *,
    finished: bool = True,
    more: Sequence[Any] = (),
    steps: Sequence[int] = (),
) -> Diagnosis:
    """The findings of a capture of these frames and `more` records; scalars belong to the last frame.

    steps: the training iteration of each frame.
    """
    with Writer(path, RunStart(run="r", title="t")) as writer:
        for number, channels in enumerate(frames):
            writer.write(Frame(index=number, label=str(number), step=steps[number] if steps else None))
            for name, one in channels.items():
                values = np.asarray(one.values)
                about = {"shape": values.shape, "dtype": str(values.dtype), **one.about}
                writer.write(Channel(name=name, kind=one.kind, dims=one.dims, **about))
                there = values[: one.rows]
                if len(there):
                    writer.write(Page(name, number, (0,) * values.ndim, there))
        for name, value in (scalars or {}).items():
            writer.write(Scalar(name, len(frames) - 1, value))
        for record in more:
            writer.write(record)
        if finished:
            writer.write(RunStop("done"))
    with open_capture(path) as capture:
        found = diagnose(capture, capture.frames)
    assert not found.broken, found.broken
    return found


def of_rule(found: Diagnosis, rule: str) -> list[Finding]:
    """The findings of one rule."""
    return [one for one in found.findings if one.rule == rule]


def severities(found: Diagnosis, rule: str) -> list[str]:
    """How severe the findings of one rule are."""
    return [one.severity for one in of_rule(found, rule)]
