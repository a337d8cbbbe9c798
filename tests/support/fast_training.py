"""Writes what a watched training writes, as fast as it is asked to: `python fast_training.py CAPTURE [FRAMES]`.

Each line of stdin, a number n, makes n iterations: numbers for TABLES, a frame with the states of a probe, a line of
log and now and then an event; one commit. It answers how many iterations there are. An empty line ends it.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from inspector.capture import Writer
from inspector.records import Axis, Channel, Event, Frame, Log, Page, RunStart, RunStop

TABLES = ("training:loss", "training:gradient_norm", "training:learning_rate", "training:update", "training:weights")
STEPS, UNITS, KEPT = 16, 8, 200
"""Of a probe; and how many frames have states unless FRAMES says it: a training keeps so many, and drops others."""


def main() -> None:
    """Until it is told to end."""
    path, random = Path(sys.argv[1]), np.random.default_rng(0)
    kept = int(sys.argv[2]) if len(sys.argv) > 2 else KEPT
    about = {"training": {"can_pause": False}}
    done = frames = 0
    with Writer(path, RunStart(run="soak", title="a training", meta=about)) as writer:
        writer.write(Axis(name="iteration"))
        for name in ("training:iteration", *TABLES):
            writer.write(
                Channel(name=name, kind="series", dims=("iteration",), shape=(None,), dtype="float64", title=name)
            )
        writer.write(Channel(name="rnn.l0:h", kind="state", dims=("step", "unit"), shape=(None, UNITS)))
        writer.write(Frame(index=0))
        for line in sys.stdin:
            count = int(line) if line.strip() else 0
            if not count:
                break
            writer.write(Page("training:iteration", 0, (done,), np.arange(done, done + count, dtype=np.float64)))
            for name in TABLES:
                writer.write(Page(name, 0, (done,), random.random(count)))
            done += count
            if frames < kept:
                frames += 1
                writer.write(Frame(index=frames, step=done))
                writer.write(Page("rnn.l0:h", frames, (0, 0), random.random((STEPS, UNITS)).astype(np.float32)))
            if done % (50 * count) == 0:
                writer.write(Log(f"{done:,} iterations"))
                writer.write(Event(kind="note", iteration=done, text=f"at {done}"))
            writer.flush()
            sys.stdout.write(f"{done}\n")
            sys.stdout.flush()
        writer.write(RunStop("done"))


if __name__ == "__main__":
    main()
