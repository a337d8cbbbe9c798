"""Linear recurrences that run as parallel scans or long convolutions: what the search in the recording found of them.

The recording is that of hand-written recurrences, whose probe starts the search (engine/scans/): a scan in rounds of
shifts is a loop too, and must not be taken for a recurrence over its rounds.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn

from inspector.engine.registries import PROBES
from inspector.engine.scans.search import Scans
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.trace import Attention, Trace
from inspector.records import Log

TOO_LARGE = (
    "The map that the scan in {0} stands for has {1:,} × {1:,} entries a channel, too many; a shorter sequence has one."
)


@PROBES.register("scans")
class ScanProbe:
    """Puts what the scans of a run stand for into the trace, and lists those that were seen and not recognised."""

    summary = "Linear recurrences without a loop: parallel scans (S4D, LRU, Mamba, minGRU), long convolutions"

    def attach(self, model: nn.Module, trace: Trace, emit: Emitter) -> None:
        """Nothing: the operations are recorded for hand-written recurrences already."""

    def detach(self) -> None:
        """Nothing."""

    def finish(self, trace: Trace, emit: Emitter) -> None:
        """Put the maps beside those of attention, and say which scans were seen and not recognised."""
        scans = trace.findings.get(Scans)
        if scans is None:
            return
        for one in scans.found:
            if one.attention is not None and not _is_shown(one.attention, trace.attentions):
                trace.attentions.append(_placed(one.attention, {other.place for other in trace.attentions}))
            if one.attention is None and one.passed:
                emit.refuse(f"{one.place}:attention", TOO_LARGE.format(one.place, one.steps))
        for line in (*scans.unmapped.values(), *scans.unshown):
            emit.sink.write(Log(line, "info", "engine"))


def _is_shown(found: Attention, others: Sequence[Attention]) -> bool:
    """Whether the place has a map of as many heads already: linear attention that is divided by its weights' sum."""
    assert found.weights is not None
    shape = found.weights.shape[1:]
    return any(
        one.place == found.place and one.weights is not None and one.weights.shape[1:] == shape for one in others
    )


def _placed(found: Attention, taken: set[str]) -> Attention:
    """Under a name that no other attention has."""
    place, number = found.place, 2
    while found.place in taken:
        found.place, number = f"{place}#{number}", number + 1
    return found
