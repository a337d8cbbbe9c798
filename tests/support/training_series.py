"""A capture of a training with series that a test chose, and what the rules find in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.capture import Writer, open_capture
from inspector.diagnosis import RULES, Diagnosis, Settings, diagnose
from inspector.records import Channel, Finding, Labels, Page, RunStart, RunStop

Floats = npt.NDArray[np.float64]
N = 400
RNG = np.random.default_rng(7)
NOISE = RNG.normal(size=N)


def falling(noise: float = 0.02) -> Floats:
    """A loss as a healthy training has it."""
    return 0.1 + 2.0 * np.exp(-np.arange(N) / 80) + noise * NOISE


def judged(
    path: Path,
    loss: Floats | None = None,
    tables: Mapping[str, Floats] | None = None,
    names: tuple[str, ...] = ("a.weight", "b.weight", "b.bias"),
    about: Mapping[str, Any] | None = None,
    settings: Settings | None = None,
    more: Sequence[Any] = (),
) -> Diagnosis:
    """What the rules find in a capture of a training with these series, one column a name, and `more` records."""
    meta = {} if about is None else {"training": dict(about)}
    with Writer(path, RunStart(run="r", title="t", meta=meta)) as writer:
        if loss is not None:
            writer.write(series("training:loss", ("iteration",), "loss"))
            writer.write(Page("training:loss", 0, (0,), loss))
        for name, table in (tables or {}).items():
            dims = ("iteration",) if table.ndim == 1 else ("iteration", "parameter")
            writer.write(series(name, dims, name))
            writer.write(Page(name, 0, (0,) * table.ndim, table))
        writer.write(Labels("parameter", names))
        for record in more:
            writer.write(record)
        writer.write(RunStop("done"))
    with open_capture(path) as capture:
        found = diagnose(capture, capture.frames, settings)
    assert not found.broken, found.broken
    return found


def series(name: str, dims: tuple[str, ...], title: str) -> Channel:
    return Channel(name=name, kind="series", dims=dims, shape=(None,) * len(dims), dtype="float64", title=title)


def of(found: Diagnosis, rule: str) -> list[Finding]:
    return [finding for finding in found.findings if finding.rule == rule]


def one(found: Diagnosis, rule: str) -> Finding:
    (finding,) = of(found, rule)
    assert finding.id == RULES[rule].id and finding.frame == -1 and finding.reference and finding.remedy
    assert finding.sure and finding.unless
    return finding


def ones(*columns: float) -> Floats:
    return np.tile(np.array(columns, np.float64), (N, 1))
