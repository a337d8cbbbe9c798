"""A capture with every kind of channel that a panel draws."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from channels_of_runs import (
    put_bptt,
    put_clipping,
    put_depth,
    put_latent,
    put_openers,
    put_paths,
    put_residual,
    put_words,
)
from channels_of_steps import HOSTILE, Put, put_attention, put_lags, put_output, put_spectra, put_states, put_ways

from inspector.capture import Writer
from inspector.capture.older import SEPARATE
from inspector.records import STEP_DOMAIN, Channel, Frame, Labels, Page, Place, RunStart, RunStop


def make_capture(
    path: Path, steps: int, units: int, *, nan: bool = False, hostile: bool = False, domain: str = STEP_DOMAIN
) -> Path:
    """A capture with every kind of channel, its numbers from a seeded walk, over the input's or the answer's steps."""
    random = np.random.default_rng(0)
    places = (Place(name="", module="Model"), Place(name="rnn", module="LSTM", parameters=3))
    with Writer(path, RunStart(run="r", title="<b>a run</b>", places=places)) as writer:
        writer.write(Frame(index=0))
        names = [HOSTILE[i % len(HOSTILE)] if hostile else chr(97 + i % 26) for i in range(steps)]
        for start in range(0, steps, 4096):
            writer.write(Labels(domain, tuple(names[start : start + 4096]), 0, start))
        writer.write(Labels("vocabulary", ("<s>", "a", "b", "c"), -1))
        put = putter(writer, domain)
        state = put_states(put, random, steps, units, nan)
        put_paths(put, random, steps, units, nan)
        put_openers(put, writer, random, steps, units, hostile)
        put_lags(put, writer, random, steps, nan)
        put_depth(put, state, steps, nan)
        put_spectra(put, writer, random, state)
        put_ways(put, writer, random, state)
        put_attention(put, random, steps)
        put_output(put, random, steps)
        put_residual(put, random, steps, nan)
        put_latent(put, writer, steps, units, nan)
        put_words(put, steps, nan)
        put_bptt(put, writer, min(steps, 300))
        put_clipping(put, writer, units, hostile, nan)
        put_health(put, units, nan)
        writer.write(RunStop("done"))
    return path


def putter(writer: Writer, domain: str) -> Put:
    """Writes a channel over the steps of a domain, its values in three pages."""

    def put(channel: Channel, values: np.ndarray) -> None:
        apart = channel.kind in SEPARATE
        channel = replace(channel, compare="separate" if apart else "ratio" if channel.scale == "log" else "difference")
        writer.write(channel if domain == STEP_DOMAIN else channel.over(domain))
        size = max(1, -(-len(values) // 3))
        for start in range(0, len(values), size):
            writer.write(Page(channel.name, 0, (start, *[0] * (values.ndim - 1)), values[start : start + size]))

    return put


def put_health(put: Put, units: int, nan: bool) -> None:
    """Counts of what is not finite."""
    put(Channel(name="rnn.l0:health/h", kind="health", dims=("count",), shape=(7,), dtype="int64", title="health",
                labels={"count": ("-inf", "<0", "0", ">0", "+inf", "nan", "first_bad_step")}),
        np.array([0, 5, 1, 7, int(nan), int(nan) * units, 0 if nan else -1]))  # fmt: skip
