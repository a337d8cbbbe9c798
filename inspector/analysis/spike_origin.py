"""Which sample, which step of the loss and which source step made the gradient of an iteration."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from inspector.analysis.verdict import Verdict
from inspector.capture import Capture
from inspector.capture.view import View
from inspector.records import counted

Floats = npt.NDArray[np.float64]
SAMPLES, STEPS = "spike:samples", "spike:steps"
STATISTICS = ("norm", "share", "norm at the output")
CHECK, SAMPLE = "spike:check", "spike:sample"
"""Scalars: the largest relative difference from the gradient norms that were recorded, and the sample that is shown."""
KIND = "spike"
MOST = 0.5
MOST_LISTED = 8
EQUAL = 1e-3
"""Relative difference from the recorded norms up to which it is the same step: other kernels round otherwise."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Shares of samples (b,) and of the loss steps of the sample that is shown (t,), the norms by source step (s,) of
    the loss step with the largest share; None where there are none. `broken` samples and `broken_steps` of the one that
    is shown have a gradient that is not finite."""

    samples: Floats | None = None
    steps: Floats | None = None
    sources: Floats | None = None
    sample: int = 0
    check: float = math.nan
    broken: tuple[int, ...] = ()
    broken_steps: tuple[int, ...] = ()


def origin_verdict(origin: Origin) -> Verdict:
    """One sentence; "one" where one sample has more than half of the gradient, "several", "not finite" or "unknown"."""
    if origin.broken:
        return _broken(origin)
    if origin.samples is None or not np.isfinite(origin.samples).any():
        why = "which sample made the gradient cannot be told: the output has no samples, or is not finite"
        return Verdict("unknown", why)
    share = float(origin.samples[origin.sample])
    count = len(origin.samples)
    numbers = {"sample": float(origin.sample), "share": share}
    said = [f"sample {origin.sample} of {count} (the first is 0) has {_percent(share)} of the gradient"]
    if origin.steps is not None and np.isfinite(origin.steps).any():
        step = int(np.nanargmax(origin.steps))
        numbers |= {"step": float(step), "step share": float(origin.steps[step])}
        said.append(f"of which loss step {step} has {_percent(float(origin.steps[step]))}")
    if origin.sources is not None and np.nansum(origin.sources) > 0:
        source = int(np.nanargmax(origin.sources))
        numbers |= {"source": float(source)}
        part = float(origin.sources[source] / np.nansum(origin.sources))
        said.append(f"and in that the weights' use at step {source} the largest part, {_percent(part)} of the norms")
    word = "one" if share > MOST else "several"
    return Verdict(word, ", ".join(said), numbers)


def _broken(origin: Origin) -> Verdict:
    count = len(origin.samples) if origin.samples is not None else 0
    said = f"the gradient is not finite in {len(origin.broken)} of {counted(count, 'sample')}: {_listed(origin.broken)}"
    steps = origin.broken_steps
    if steps:
        said += f"; of sample {origin.sample} at {counted(len(steps), 'loss step')}: {_listed(steps)}"
    return Verdict("not finite", said, {"sample": float(origin.sample), "samples": float(len(origin.broken))})


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers[:MOST_LISTED])) + (" …" if len(numbers) > MOST_LISTED else "")


def check_sentence(check: float) -> str:
    """Whether it is the step that was made."""
    if math.isnan(check):
        return "no recorded gradient norms to compare with"
    if check <= EQUAL:
        return f"the recorded gradient norms are met within {max(check, 1e-12):.1g}"
    return (
        f"gradient norms differ from the recorded ones by up to {check:.2g}: the loss has a part that the output does "
        "not show (a penalty on weights), the code has changed, or several processes made the gradient"
    )


def read_origin(view: Capture, frame: int = -1) -> Origin:
    """Of a capture of such a run. Raises CaptureError."""
    scalars = {one.name: one.value for one in view.scalars if frame in (-1, one.frame)}
    (samples, broken), (steps, broken_steps) = _shares(view, SAMPLES, frame), _shares(view, STEPS, frame)
    sources = None
    if steps is not None and np.isfinite(steps).any():
        sources = _sources(view, int(np.nanargmax(steps)), frame)
    sample, check = int(scalars.get(SAMPLE, 0)), scalars.get(CHECK, math.nan)
    return Origin(samples, steps, sources, sample, check, broken, broken_steps)


def _shares(view: View, name: str, frame: int) -> tuple[Floats | None, tuple[int, ...]]:
    """(shares, the parts whose gradient is not finite)."""
    if name not in view.channels:
        return None, ()
    table = np.asarray(view.array(name, frame), dtype=np.float64)
    broken = np.flatnonzero(np.isinf(table[STATISTICS.index("norm")]))
    return table[STATISTICS.index("share")], tuple(int(n) for n in broken)


def _sources(view: View, step: int, frame: int) -> Floats | None:
    """(s,) root of the summed squares over parameters of what a loss step adds to the use of the weights at each step:
    of the recurrence where that is largest."""
    by_place: dict[str, Floats] = {}
    for name, channel in view.channels.items():
        if channel.kind == "bptt" and channel.dims == ("step", "source") and view.extent(name, frame)[0] > step:
            row = np.nan_to_num(np.asarray(view.array(name, frame)[step], dtype=np.float64))
            before = by_place.get(channel.place, np.zeros_like(row))
            by_place[channel.place] = before + row**2
    return np.sqrt(max(by_place.values(), key=lambda one: float(one.sum()))) if by_place else None


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"
