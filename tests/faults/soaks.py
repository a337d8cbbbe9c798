"""What goes on for long, in fast time: memory, descriptors, threads and references to None are flat after a warm-up.

Each case is a process of its own (`support/soaking.py`) that does one thing a number of times and samples itself: a
window follows a training, ticks, and draws; a training is watched; a model is watched again and again; workers are
killed and started again.
"""

from __future__ import annotations

import itertools
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from campaign import HERE, Outcome, Section

PROGRAM = HERE.parent / "support" / "soaking.py"
SHORT = {"following": 15_000, "drawing": 120, "attaching": 15, "ticks": 36_000, "watching": 10_000, "workers": 4}
"""Ticks of ten minutes, sixty a second."""
LONG = {
    "following": 1_000_000, "ticks": 1_000_000, "drawing": 10_000, "watching": 100_000, "attaching": 50, "workers": 20,
}  # fmt: skip
MOST_MEGABYTES = 2.0
"""Growth for 10,000 iterations, ticks or pictures after the warm-up, and for all attachments or workers."""
MOST_USED = 0.5
"""The same of what was asked for and not given back, which no allocator's habits change."""
SHORT_FACTOR = 2.0
"""So many times as much for a training that is followed for less than 10,000 iterations: it grew by 0.3 MB in
5 s, and by 2.4 to 2.6 MB, 0.6 of them in use, in 50 s on a busy machine, whose samples count what is read aside."""
FILLS = {"following": 7 * 8 * 1e4 / 1e6, "watching": 2.0}
"""Megabytes by which 10,000 iterations of a short training may grow besides: the numbers of one that is followed, which
are in its file once there are many; the cache of the index of one that is watched, which SQLite fills up to 2 MB."""
GROUPS = 6
"""Parts in which growth is looked for after the warm-up: a leak grows from most of them to the next; an arena that a
thread gets, or a module that is imported late, is one step."""
MOST_NONE = 2_000
"""References to None that may be lost: a binding that drops one a call loses as many as there were calls."""
SECONDS = 7_200.0


def cases(count: int, _seed: int) -> Iterator[dict[str, Any]]:
    """Each thing for a short time; then each for long."""
    every = [{"what": what, "number": n} for numbers in (SHORT, LONG) for what, n in numbers.items()]
    yield from every[:count]


def attempt(case: dict[str, Any], _prepared: None, scratch: Path) -> Outcome:
    """Let it run; judge its samples."""
    here = os.pathsep.join(map(str, (HERE.parent.parent, HERE.parent / "support")))
    done = subprocess.run(
        [sys.executable, str(PROGRAM), case["what"], str(case["number"]), str(scratch)], capture_output=True, text=True,
        timeout=SECONDS, check=False,
        env={**os.environ, "PYTHONPATH": here, "OMP_NUM_THREADS": "1", "PYTHONMALLOC": "malloc"},
    )  # fmt: skip
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    samples = [line for line in lines if "number" in line]
    if done.returncode or "Traceback" in done.stderr or len(samples) < 4:
        return Outcome("lost", f"ended with {done.returncode}: {done.stderr.strip()[-400:]}")
    what, number = case["what"], case["number"]
    factor = SHORT_FACTOR if what == "following" and number < 10_000 else 1.0
    problems, growth = judged(samples, factor, FILLS.get(what, 0.0) if number < 100_000 else 0.0)
    if problems:
        return Outcome("lost", "; ".join(problems))
    last = samples[-1]
    return Outcome(
        "survived",
        f"{last['megabytes']:.0f} MB, {growth:+.2f} MB for 10,000 (or all), {last['descriptors']} descriptors, "
        f"{last['threads']} threads, {lines[-1].get('seconds', 0):.0f} s",
    )


def judged(samples: list[dict[str, Any]], factor: float = 1.0, fills: float = 0.0) -> tuple[list[str], float]:
    """What grew after the first third of them, and by how many megabytes memory did; it may by `factor` of the most, and
    by what `fills` besides."""
    warm = samples[len(samples) // 3 :]
    part = max(1, len(warm) // 4)
    first, last = warm[:part], warm[-part:]
    times = max(1.0, (warm[-1]["number"] - warm[0]["number"]) / 1e4)
    memory, inside = (grown([one.get(name, 0.0) for one in warm]) / times for name in ("megabytes", "used"))
    problems = [f"memory grew by {memory:.2f} MB"] * (memory > factor * MOST_MEGABYTES + fills)
    problems += [f"what is in use grew by {inside:.2f} MB"] * (inside > factor * MOST_USED + fills)
    for name in ("descriptors", "threads"):
        before, after = max(one[name] for one in first), min(one[name] for one in last)
        problems += [f"{name}: {before} before, {after} after"] * (after > before)
    lost = statistics.median(one["none"] for one in first) - statistics.median(one["none"] for one in last)
    return problems + [f"{lost:.0f} references to None are lost"] * (lost > MOST_NONE), memory


def grown(values: list[float]) -> float:
    """How much a series grows steadily: the middle step between its parts, so that one that jumps or falls counts for
    nothing, times the number of steps."""
    parts = min(GROUPS, len(values))
    ends = [round(n * len(values) / parts) for n in range(parts + 1)]
    levels = [statistics.median(values[a:b]) for a, b in itertools.pairwise(ends)]
    return statistics.median_low(b - a for a, b in itertools.pairwise(levels)) * (parts - 1)


SECTIONS = [
    Section(
        "soak", "a day's worth of ticks, iterations, pictures, attachments and workers, in fast time", len(SHORT),
        len(SHORT) + len(LONG), cases, lambda _folder: None, attempt, seconds=SECONDS + 60,
    )
]  # fmt: skip
