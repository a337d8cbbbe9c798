"""Statistics of every attention, one number a head and query.

They are computed in one pass over its rows, that of the map where one is written. The results stay in the trace
(heads x queries numbers each), so that each quantity writes its own channel when its turn comes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch

from inspector.engine.attention.ahead import Ahead
from inspector.engine.attention.map_pages import method
from inspector.engine.attention.one_pass import STATISTICS, BlockWriter, Statistic, Statistics, one_pass
from inspector.engine.hooks.heap import GAPS, Heap
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import Describe, Quantity
from inspector.engine.trace.trace import Attention, Trace
from inspector.records.catalogue import ATTENTION

NOT_KNOWN = (
    "The source of the keys of {} is not known: they may be of the queries' own sequence or of another one, so they "
    "have no known positions."
)


@dataclass(slots=True)
class KnownStatistics:
    """Id of an attention of the trace → its statistics, which several quantities write."""

    by_attention: dict[int, Statistics] = field(default_factory=dict)


def per_attention_row(
    describe: Describe,
    *,
    signal: str,
    summary: str,
    order: int = 31,
    default: bool = True,
    self_only: bool = False,
) -> Callable[[Statistic], Quantity]:
    """A quantity `f(block) -> (a, q)`: one number a head and query, of every attention of the selected sample."""

    def wrap(function: Statistic) -> Quantity:
        STATISTICS[signal] = (function, self_only)

        def run(trace: Trace, emit: Emitter) -> None:
            for attention in trace.attentions:
                name = f"{attention.place}:{signal}"
                reason = refusal(attention)
                if reason is None and self_only and not attention.of_itself:
                    reason = (
                        NOT_KNOWN.format(attention.place)
                        if not attention.source_known
                        else (
                            f"{attention.place} attends to another sequence, or to a cache begun elsewhere: its keys "
                            "and queries share no known positions."
                        )
                    )
                if reason is not None:
                    emit.refuse(name, reason)
                    continue
                values = statistics(trace, attention, emit, signal=signal).values[signal]
                channel = describe.channel(
                    name, ("head", "query"), tuple(values.shape), "float32", module=attention.module,
                    domains={"query": attention.queries_from}, method=method(attention, describe.method),
                )  # fmt: skip
                emit.array(channel, values.float())

        return Quantity(summary=summary, order=order, default=default, needs=(ATTENTION,), function=function, run=run)

    return wrap


def statistics(
    trace: Trace, attention: Attention, emit: Emitter, write: BlockWriter | None = None, signal: str = ""
) -> Statistics:
    """The statistics of an attention, from the trace or from one pass over its rows that also calls `write`.

    They are those that the run will compute, and `signal`.
    """
    known = trace.findings.of(KnownStatistics).by_attention
    before = known.get(id(attention))
    if before is None or write is not None or (signal and signal not in before.values):
        wanted = _wanted(trace) | ({signal} if signal else set())
        found = _begun(trace, attention, wanted) if write is None else None
        if found is None:
            with torch.no_grad():
                found = one_pass(attention, trace.look_at, emit.check, wanted, write)
        known[id(attention)] = found
        trace.findings.of(Heap).tidy(GAPS // 4)
    return known[id(attention)]


def with_map(trace: Trace, attention: Attention) -> Statistics | None:
    """The statistics of an attention whose map was written while the model ran; None where it is still to be."""
    found = _begun(trace, attention, _wanted(trace))
    if found is not None:
        trace.findings.of(KnownStatistics).by_attention[id(attention)] = found
    return found


def map_places(trace: Trace) -> frozenset[str]:
    """The places of attentions of which rows of the map were written while the model ran."""
    begun = trace.findings.get(Ahead)
    return frozenset() if begun is None else begun.map_places


def _begun(trace: Trace, attention: Attention, wanted: set[str]) -> Statistics | None:
    begun = trace.findings.get(Ahead)
    return None if begun is None else begun.take(attention, wanted)


def _wanted(trace: Trace) -> set[str]:
    """The statistics that the run will compute."""
    return set(trace.chosen & STATISTICS.keys() if trace.chosen else STATISTICS.keys())


def refusal(attention: Attention) -> str | None:
    """Why nothing of this attention is shown, or None."""
    check = attention.check
    if check is None or check.passed:
        return None
    return (
        f"The recomputed attention of {attention.place} differs from what the {attention.module or 'call'} returned by "
        f"{check.error:.3g} (allowed {check.allowed:.3g}), so it is not shown."
    )
