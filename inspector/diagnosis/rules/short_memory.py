"""A gated layer that forgets within a few steps of a long sequence."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from inspector.analysis.influence import SAID, Past
from inspector.diagnosis.rule import RULES, Limit, Run, Scope, Trust, scalar
from inspector.diagnosis.units import of_how_many
from inspector.records import Channel, Finding

THOUSANDTH = math.log(1000.0)
BIAS = (1.2, 1.8)
"""Steps: a gate near σ(0) = ½ has τ = 1.44, and weights of a usual initialisation spread it by about a quarter."""


class ShortMemory:
    """Reads the time constant τ of each unit's memory gate beside the length of the sequence.

    Said only where `influence` has measured that the loss depends on earlier inputs, or that it is no better with the
    past than without (nothing was learned from it); and, where neither was measured, of gates near ½ as they are before
    training: a trained gate that forgets may be what the task wants.
    Counter-example: a task that needs the last few steps only, or one for which the state is carried through the
    candidate in place of the gate; so it is information.
    """

    id = "IN406"
    title = "Gates that forget within a few steps"
    summary = "No unit of a gated layer keeps its state for more than a small part of the sequence."
    trust: Trust = "descriptive"
    scope: Scope = "frame"
    reads = ("unit",)
    needs = ("timescale",)
    limits = (
        Limit(
            "times",
            4.0,
            "The sequence is so many times longer than a thousandth of any unit's state lasts (6.9 τ); "
            "where the past was measured, once.",
        ),
    )
    reference = "Tallec & Ollivier 2018, arXiv 1804.11188; a bias of 1: Jozefowicz et al. 2015; Gers et al. 2000"

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """At most one for each gated layer."""
        for channel in run.channels.values():
            if (
                channel.dims == ("unit",)
                and channel.signal.endswith("/timescale")
                and run.revision(channel.name, frame)
            ):
                yield from self._of(channel, run, frame)

    def _of(self, channel: Channel, run: Run, frame: int) -> Iterable[Finding]:
        times = np.ma.filled(np.ma.asarray(run.array(channel.name, frame), np.float64), np.nan)
        gate = run.channels.get(channel.name.removesuffix("/timescale"))
        if gate is None or not run.revision(gate.name, frame) or np.isnan(times).any() or not len(times):
            return
        length, longest = run.extent(gate.name, frame)[0], float(times.max())
        if THOUSANDTH * longest >= length:
            return
        lasts, needed = math.ceil(THOUSANDTH * longest), scalar(run, "input:influence/reach", frame)
        fresh = BIAS[0] <= float(np.median(times)) <= BIAS[1] and longest <= 2 * BIAS[1]
        past = Past.read(lambda name: scalar(run, name, frame))
        beyond, unlearned = needed > lasts, past.useful is False  # both are false where it was not measured
        far = THOUSANDTH * longest * run.limit("times") < length
        if not beyond and not unlearned and (not fresh or not far or needed <= lasts):
            return
        name = channel.signal.removeprefix("gate/").removesuffix("/timescale")
        yield Finding(
            rule="short-memory", severity="info", place=channel.place,
            message=f"by its gate {name} no unit keeps a thousandth of its state for more than "
            f"{lasts} steps (longest τ {longest:.3g}); the sequence has {length:,}"
            + (f", the loss depends on inputs {int(needed):,} steps back" if beyond else "")
            + (f", the loss {SAID[False]} {past.losses}" if unlearned else "")
            + ("; the gate is near ½, as with a bias of 0" if fresh else ""),
            evidence=(channel.name, gate.name),
            sure=f"exact for the path through the gate, over {of_how_many(channel)}",
            unless="the task needs the last few steps only, or the state is carried through the candidate",
            remedy="Where earlier steps are needed begin with a bias that keeps: 1 for a forget gate, or ln(T − 1) of "
            "the lags T that are needed. `--with influence` measures how far back the loss depends on the input.",
            code="nn.init.constant_(rnn.bias_hh_l0[hidden:2 * hidden], 1.0)  # nn.LSTM: forget gate",
        )  # fmt: skip


RULES.register("short-memory")(ShortMemory())
